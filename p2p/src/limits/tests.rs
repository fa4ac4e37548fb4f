//! Nobody gets more connections than its share, and nothing is kept of who is gone.

use libp2p::core::ConnectedPoint;
use libp2p::swarm::behaviour::ConnectionClosed;

use super::*;

fn limits(change: impl FnOnce(&mut Limits)) -> Behaviour {
    let mut limits = Limits::default();
    change(&mut limits);
    Behaviour::new(limits)
}

fn id(connection: usize) -> ConnectionId {
    ConnectionId::new_unchecked(connection)
}

fn enter(limit: &mut Behaviour, connection: usize, ip: &str) -> bool {
    limit.enter(id(connection), Some(ip.parse().unwrap())).is_ok()
}

fn establish(limit: &mut Behaviour, connection: usize, peer: PeerId, ip: &str) -> bool {
    let address = format!("/ip4/{ip}/tcp/1").parse().unwrap();
    limit.establish(id(connection), peer, &address).is_ok()
}

/// A connection of somebody whom nobody has seen before.
fn meet(limit: &mut Behaviour, connection: usize, ip: &str) -> bool {
    enter(limit, connection, ip) && establish(limit, connection, PeerId::random(), ip)
}

#[test]
fn an_address_gets_its_share_and_room_again_when_one_closes() {
    let mut limit = limits(|limits| (limits.per_address_max, limits.per_group_max) = (2, 3));
    assert!(enter(&mut limit, 1, "192.0.2.1"));
    assert!(enter(&mut limit, 2, "192.0.2.1"));
    assert!(!enter(&mut limit, 3, "192.0.2.1"), "a third connection of one address");
    assert!(enter(&mut limit, 4, "192.0.2.2"));
    assert!(!enter(&mut limit, 5, "192.0.2.3"), "a fourth connection of one group");
    assert!(enter(&mut limit, 6, "192.0.3.1"));
    limit.leave(id(3));
    assert!(!enter(&mut limit, 7, "192.0.2.1"), "a refused connection gives no room back");
    limit.leave(id(1));
    assert!(enter(&mut limit, 8, "192.0.2.1"));
}

#[test]
fn a_named_peer_counts_only_until_it_has_shown_who_it_is() {
    let mut limit = limits(|limits| {
        (limits.per_address_max, limits.per_group_max, limits.inbound_max) = (1, 1, 0);
    });
    let peer = PeerId::random();
    limit.bypass(peer);
    for connection in 0..20 {
        assert!(enter(&mut limit, connection, "127.0.0.1"), "{connection}");
        assert!(establish(&mut limit, connection, peer, "127.0.0.1"), "{connection}");
    }
    assert!(enter(&mut limit, 20, "127.0.0.1"));
    assert!(!enter(&mut limit, 21, "127.0.0.1"));
    limit.leave(id(20));
    limit.count_again(&peer);
    assert!(!enter(&mut limit, 22, "127.0.0.1"));
}

#[test]
fn the_connections_in_each_direction_and_of_a_peer_have_a_bound() {
    let mut limit = limits(|limits| (limits.inbound_max, limits.outbound_max) = (1, 1));
    for connection in 0..=8 {
        let ip = format!("192.0.{connection}.1");
        assert!(meet(&mut limit, connection, &ip), "{connection}");
    }
    assert!(!meet(&mut limit, 9, "198.51.100.1"), "all places and those of the coming are taken");
    limit.leave(id(9));
    let dial = |limit: &mut Behaviour, connection| {
        let pending =
            limit.handle_pending_outbound_connection(id(connection), None, &[], Endpoint::Dialer);
        pending.is_ok() && establish(limit, connection, PeerId::random(), "192.0.2.1")
    };
    assert!(dial(&mut limit, 10));
    assert!(!dial(&mut limit, 11));
    let (mut limit, peer) = (limits(|_| {}), PeerId::random());
    for connection in 0..3 {
        assert!(enter(&mut limit, connection, "192.0.2.1"));
        let is_let_in = establish(&mut limit, connection, peer, "192.0.2.1");
        assert_eq!(connection < 2, is_let_in, "{connection}");
    }
}

#[test]
fn nothing_is_kept_of_a_peer_that_is_gone() {
    let mut limit = limits(|_| {});
    let address: Multiaddr = "/ip4/192.0.2.1/tcp/1".parse().unwrap();
    for connection in 0..1_000 {
        let peer_id = PeerId::random();
        assert!(enter(&mut limit, connection, "192.0.2.1"), "{connection}");
        assert!(establish(&mut limit, connection, peer_id, "192.0.2.1"), "{connection}");
        let endpoint = ConnectedPoint::Listener {
            local_addr: address.clone(),
            send_back_addr: address.clone(),
        };
        limit.on_swarm_event(FromSwarm::ConnectionClosed(ConnectionClosed {
            peer_id,
            connection_id: id(connection),
            endpoint: &endpoint,
            cause: None,
            remaining_established: 0,
        }));
    }
    assert!(limit.links.is_empty());
}

#[test]
fn who_opens_connections_and_never_says_who_it_is_keeps_out_nobody_else() {
    let mut limit = limits(|limits| (limits.opening_max, limits.opening_per_group_max) = (20, 3));
    for connection in 0..3 {
        assert!(enter(&mut limit, connection, "192.0.2.1"), "{connection}");
    }
    assert!(!enter(&mut limit, 4, "192.0.2.2"), "a fourth of the group");
    assert!(enter(&mut limit, 5, "192.0.3.1"), "another group");
    for connection in 10..14 {
        assert!(enter(&mut limit, connection, "10.0.0.1"), "{connection}");
        assert!(enter(&mut limit, connection + 10, "127.0.0.1"), "{connection}");
    }
    assert!(establish(&mut limit, 0, PeerId::random(), "192.0.2.1"));
    assert!(enter(&mut limit, 6, "192.0.2.2"), "a handshake makes room");
}

#[test]
fn half_open_connections_never_keep_a_named_peer_out_that_was_there_before() {
    let mut limit = limits(|limits| (limits.opening_max, limits.opening_per_group_max) = (4, 4));
    let peer = PeerId::random();
    limit.bypass(peer);
    assert!(enter(&mut limit, 0, "192.0.2.7"));
    assert!(establish(&mut limit, 0, peer, "192.0.2.7"));
    limit.leave(id(0));
    for connection in 1..=4 {
        assert!(enter(&mut limit, connection, "192.0.2.1"), "{connection}");
    }
    assert!(!enter(&mut limit, 5, "198.51.100.1"));
    assert!(enter(&mut limit, 6, "192.0.2.7"));
    limit.leave(id(6));
    limit.count_again(&peer);
    assert!(!enter(&mut limit, 7, "192.0.2.7"), "it is no longer named");
}
