//! Static peers are dialled when due, and less often the longer they fail.

use super::*;

fn address(text: &str) -> Multiaddr {
    text.parse().unwrap()
}

fn nobody(_: &PeerId) -> bool {
    false
}

#[test]
fn waits_grow_to_their_maximum_and_differ_by_chance() {
    assert_eq!(Duration::from_millis(375), wait(0, 0));
    assert_eq!(Duration::from_millis(500), wait(0, 128));
    assert_eq!(Duration::from_millis(4_000), wait(3, 128));
    assert_eq!(WAIT_MAX, wait(50, 128));
    assert!(wait(50, 255) <= WAIT_MAX * 5 / 4);
}

#[test]
fn a_failed_attempt_is_repeated_after_a_wait() {
    let start = Instant::now();
    let mut targets = Targets::new(PeerId::random());
    assert!(targets.add(address("/dns4/node0/tcp/1"), start));
    let attempt = targets.due(start, nobody).pop().expect("it is due at once").connection_id();
    assert!(targets.due(start, nobody).is_empty(), "it is being dialled");
    assert!(targets.failed(attempt, start).is_some());
    assert!(targets.due(start, nobody).is_empty(), "it waits");
    assert_eq!(1, targets.due(start + WAIT_MIN * 5 / 4, nobody).len());
}

#[test]
fn a_connected_node_is_left_alone_until_it_is_lost() {
    let start = Instant::now();
    let mut targets = Targets::new(PeerId::random());
    targets.add(address("/ip4/192.0.2.1/tcp/1"), start);
    let peer = PeerId::random();
    let attempt = targets.due(start, nobody).pop().expect("it is due at once").connection_id();
    targets.connected(attempt, peer);
    assert!(targets.due(start, |it| *it == peer).is_empty());
    targets.lost(&peer, start);
    assert_eq!(1, targets.due(start + WAIT_MIN * 5 / 4, nobody).len());
}

#[test]
fn the_own_address_and_known_ones_are_not_added() {
    let own = PeerId::random();
    let start = Instant::now();
    let mut targets = Targets::new(own);
    assert!(!targets.add(address(&format!("/ip4/192.0.2.1/tcp/1/p2p/{own}")), start));
    assert!(targets.add(address("/ip4/192.0.2.1/tcp/1"), start));
    assert!(!targets.add(address("/ip4/192.0.2.1/tcp/1"), start));
}

#[test]
fn a_node_is_removed_by_its_id_or_address() {
    let start = Instant::now();
    let peer = PeerId::random();
    let mut targets = Targets::new(PeerId::random());
    targets.add(address(&format!("/ip4/192.0.2.1/tcp/1/p2p/{peer}")), start);
    targets.add(address("/ip4/192.0.2.2/tcp/1"), start);
    assert_eq!(vec![peer], targets.remove(|it, _| it == Some(&peer)));
    let other = address("/ip4/192.0.2.2/tcp/1");
    assert_eq!(Vec::<PeerId>::new(), targets.remove(|_, address| *address == other));
    assert!(targets.due(start, nobody).is_empty());
}
