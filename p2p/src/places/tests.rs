//! Nobody holds the places of others by asking and not reading.

use super::*;

const BOUNDS: Bounds = Bounds { shared: 6, named: 2, of_peer: 4, first: 2 };

struct Desk {
    places: Places<u64>,
    next: u64,
    now: Instant,
}

impl Desk {
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
    let mut desk = Desk::new();
    let taken: usize = (0..9).map(|_| desk.ask(PeerId::random(), false).len()).sum();
    assert_eq!(BOUNDS.shared, taken);
    assert_eq!(BOUNDS.named, desk.ask(PeerId::random(), true).len());
}

#[test]
fn a_peer_gets_more_places_with_each_answer_that_it_takes() {
    let (mut desk, peer) = (Desk::new(), PeerId::random());
    for expected in [2, 4, 4] {
        let open = desk.ask(peer, false);
        assert_eq!(expected, open.len());
        for id in open {
            desk.places.left(id, Left::Taken, desk.now);
        }
    }
}

#[test]
fn who_takes_no_answer_rests_longer_each_time() {
    let (mut desk, peer) = (Desk::new(), PeerId::random());
    for times in [1, 2, 4] {
        let open = desk.ask(peer, false);
        for id in open.iter().take(1) {
            desk.places.left(*id, Left::Unread, desk.now);
        }
        for id in open.iter().skip(1) {
            desk.places.left(*id, Left::Neither, desk.now);
        }
        assert!(desk.ask(peer, false).is_empty());
        assert_eq!(2, desk.ask(PeerId::random(), false).len(), "others have room");
        desk.places.open.clear();
        desk.now += REST * times - Duration::from_millis(1);
        assert!(desk.ask(peer, false).is_empty(), "{times}");
        desk.now += Duration::from_millis(1);
    }
    assert_eq!(1, desk.ask(peer, false).len(), "it begins with one");
}

#[test]
fn an_answer_that_drips_until_its_stream_ends_is_unread() {
    let (mut desk, peer) = (Desk::new(), PeerId::random());
    let timed_out = || Left::by(&InboundFailure::Timeout);
    // This node did not come to answer.
    for id in desk.ask(peer, false) {
        desk.places.left(id, timed_out(), desk.now);
    }
    let open = desk.ask(peer, false);
    assert_eq!(BOUNDS.first, open.len());
    desk.places.answered(&open[0]);
    desk.places.left(open[0], timed_out(), desk.now);
    desk.places.left(open[1], Left::Neither, desk.now);
    assert!(desk.ask(peer, false).is_empty(), "it rests");
    desk.now += REST;
    let open = desk.ask(peer, false);
    assert_eq!(1, open.len(), "it begins with one");
    // A stream that the peer gives up is no way out.
    desk.places.answered(&open[0]);
    let reset = InboundFailure::Io(io::ErrorKind::ConnectionReset.into());
    desk.places.left(open[0], Left::by(&reset), desk.now);
    desk.now += REST;
    assert!(desk.ask(peer, false).is_empty(), "it rests for longer");
}

#[test]
fn a_question_without_an_answer_frees_its_place_and_changes_nothing() {
    let (mut desk, peer) = (Desk::new(), PeerId::random());
    for id in desk.ask(peer, false) {
        desk.places.left(id, Left::Neither, desk.now);
    }
    assert_eq!(BOUNDS.first, desk.ask(peer, false).len());
    assert!(desk.places.conduct.is_empty());
}
