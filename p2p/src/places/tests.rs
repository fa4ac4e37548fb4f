//! Nobody holds the places of others by asking and not reading.

use std::net::Ipv4Addr;

use super::*;

const BOUNDS: Bounds = Bounds { shared: 6, of_group: 4, named: 2, of_peer: 4, first: 2 };

struct Asking {
    places: Places<u64>,
    next: u64,
    now: Instant,
}

impl Asking {
    fn new() -> Self {
        Self { places: Places::new(BOUNDS), next: 0, now: Instant::now() }
    }

    /// Has a peer ask until it is refused; answers the questions that have a place. Its group is its
    /// own.
    fn ask(&mut self, peer: PeerId, is_named: bool) -> Vec<u64> {
        let own = Ipv4Addr::from(0xc000_0000 + u32::try_from(self.next << 8).unwrap());
        self.ask_from(own, peer, is_named)
    }

    fn ask_from(&mut self, ip: Ipv4Addr, peer: PeerId, is_named: bool) -> Vec<u64> {
        let address = Multiaddr::from(ip);
        let asker = Asker { peer, group: sharing(Some(&address)), is_named };
        let mut open = Vec::new();
        loop {
            self.next += 1;
            if !self.places.enter(self.next, asker, self.now) {
                return open;
            }
            open.push(self.next);
        }
    }
}

#[test]
fn whoever_asks_and_does_not_read_leaves_room_for_named_peers() {
    let mut asking = Asking::new();
    let taken: usize = (0..9).map(|_| asking.ask(PeerId::random(), false).len()).sum();
    assert_eq!(BOUNDS.shared, taken);
    assert_eq!(BOUNDS.named, asking.ask(PeerId::random(), true).len());
}

#[test]
fn strangers_of_one_address_group_hold_no_more_than_their_share_of_places() {
    let (mut asking, crowd) = (Asking::new(), Ipv4Addr::new(192, 0, 2, 1));
    let taken: usize = (0..9).map(|_| asking.ask_from(crowd, PeerId::random(), false).len()).sum();
    assert_eq!(BOUNDS.of_group, taken);
    assert_eq!(
        4,
        asking.ask_from(crowd, PeerId::random(), true).len(),
        "a named peer of the group"
    );
    let mut asking = Asking::new();
    let named = asking.ask_from(crowd, PeerId::random(), true);
    assert_eq!(4, named.len());
    let stranger = asking.ask_from(crowd, PeerId::random(), false);
    assert_eq!(BOUNDS.first, stranger.len(), "named peers do not count");
}

#[test]
fn private_addresses_share_nothing_because_anybody_may_come_from_there() {
    for ip in [Ipv4Addr::LOCALHOST, Ipv4Addr::new(172, 17, 0, 1)] {
        let mut asking = Asking::new();
        let taken: usize = (0..9).map(|_| asking.ask_from(ip, PeerId::random(), false).len()).sum();
        assert_eq!(BOUNDS.shared, taken, "{ip}");
    }
}

#[test]
fn a_peer_gets_more_places_with_each_answer_that_it_takes_quickly() {
    let (mut asking, peer) = (Asking::new(), PeerId::random());
    let (same, more) = ([2, 2], [2, 4, 4]);
    for (time, rooms) in [(QUICK, same.as_slice()), (QUICK - Duration::from_millis(1), &more)] {
        for expected in rooms {
            let open = asking.ask(peer, false);
            assert_eq!(*expected, open.len(), "{time:?}");
            for id in &open {
                asking.places.answered(id, asking.now);
            }
            asking.now += time;
            for id in open {
                asking.places.left(id, Left::Taken, asking.now);
            }
        }
    }
}

#[test]
fn who_takes_no_answer_rests_longer_each_time() {
    let (mut asking, peer) = (Asking::new(), PeerId::random());
    for times in [1, 2, 4] {
        let open = asking.ask(peer, false);
        for id in open.iter().take(1) {
            asking.places.left(*id, Left::Unread, asking.now);
        }
        for id in open.iter().skip(1) {
            asking.places.left(*id, Left::Neither, asking.now);
        }
        assert!(asking.ask(peer, false).is_empty());
        assert_eq!(2, asking.ask(PeerId::random(), false).len(), "others have room");
        asking.places.open.clear();
        asking.now += REST * times - Duration::from_millis(1);
        assert!(asking.ask(peer, false).is_empty(), "{times}");
        asking.now += Duration::from_millis(1);
    }
    assert_eq!(1, asking.ask(peer, false).len(), "it begins with one");
}

#[test]
fn an_answer_that_drips_until_its_stream_ends_is_unread() {
    let (mut asking, peer) = (Asking::new(), PeerId::random());
    let timed_out = || Left::by(&InboundFailure::Timeout);
    // This node did not come to answer.
    for id in asking.ask(peer, false) {
        asking.places.left(id, timed_out(), asking.now);
    }
    let open = asking.ask(peer, false);
    assert_eq!(BOUNDS.first, open.len());
    asking.places.answered(&open[0], asking.now);
    asking.places.left(open[0], timed_out(), asking.now);
    asking.places.left(open[1], Left::Neither, asking.now);
    assert!(asking.ask(peer, false).is_empty(), "it rests");
    asking.now += REST;
    let open = asking.ask(peer, false);
    assert_eq!(1, open.len(), "it begins with one");
    // A stream that the peer gives up is no way out.
    asking.places.answered(&open[0], asking.now);
    let reset = InboundFailure::Io(io::ErrorKind::ConnectionReset.into());
    asking.places.left(open[0], Left::by(&reset), asking.now);
    asking.now += REST;
    assert!(asking.ask(peer, false).is_empty(), "it rests for longer");
}

#[test]
fn a_question_without_an_answer_frees_its_place_and_changes_nothing() {
    let (mut asking, peer) = (Asking::new(), PeerId::random());
    for id in asking.ask(peer, false) {
        asking.places.left(id, Left::Neither, asking.now);
    }
    assert_eq!(BOUNDS.first, asking.ask(peer, false).len());
    assert!(asking.places.conduct.is_empty());
}
