//! Nobody holds the places of others by asking and not reading.

use super::*;

const BOUNDS: Bounds = Bounds { shared: 6, named: 2, of_peer: 4, first: 2 };

struct Asking {
    places: Places<u64>,
    next: u64,
    now: Instant,
}

impl Asking {
    fn new() -> Self {
        Self { places: Places::new(BOUNDS), next: 0, now: Instant::now() }
    }

    /// Has a peer ask until it is refused; answers the questions that have a place.
    fn ask(&mut self, peer: PeerId, is_named: bool) -> Vec<u64> {
        let mut open = Vec::new();
        loop {
            self.next += 1;
            if !self.places.enter(self.next, peer, is_named, self.now) {
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
fn a_peer_gets_more_places_with_each_answer_that_it_takes() {
    let (mut asking, peer) = (Asking::new(), PeerId::random());
    for expected in [2, 4, 4] {
        let open = asking.ask(peer, false);
        assert_eq!(expected, open.len());
        for id in open {
            asking.places.left(id, Left::Taken, asking.now);
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
    asking.places.answered(&open[0]);
    asking.places.left(open[0], timed_out(), asking.now);
    asking.places.left(open[1], Left::Neither, asking.now);
    assert!(asking.ask(peer, false).is_empty(), "it rests");
    asking.now += REST;
    let open = asking.ask(peer, false);
    assert_eq!(1, open.len(), "it begins with one");
    // A stream that the peer gives up is no way out.
    asking.places.answered(&open[0]);
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
