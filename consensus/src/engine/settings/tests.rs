//! The engine's configuration for some of ours.

use super::*;

fn domain(chain_id: &str, genesis_hash: Hash) -> Domain {
    Domain { chain_id: chain_id.into(), genesis_hash, v7_from: None }
}

fn config(chain_id: &str, network: Network) -> Config {
    Config {
        domain: domain(chain_id, Hash::ZERO).into(),
        moniker: "node".to_owned(),
        directory: "unused".into(),
        network,
        block_bytes_max: 5_000_000,
        timeouts: Timeouts::default(),
    }
}

fn peers(listen: &str, peer: &str, open: bool) -> Network {
    Network::Peers { listen: listen.to_owned(), peers: vec![peer.to_owned()], open }
}

fn settings(network: Network) -> Result<Settings, StartError> {
    let named = named(&network)?;
    Settings::new(&config("chain", network), named)
}

const LISTEN: &str = "/ip4/0.0.0.0/tcp/7100";
const PEER: &str = "/ip4/10.0.0.1/tcp/7100";

#[test]
fn a_node_alone_listens_on_loopback_and_admits_nobody() {
    let settings = settings(Network::Alone).expect("settings");
    let p2p = &settings.consensus().p2p;
    assert_eq!(p2p.listen_addr.to_string(), "/ip4/127.0.0.1/tcp/0");
    assert!(p2p.persistent_peers.is_empty() && p2p.persistent_peers_only);
    assert!(!settings.value_sync().enabled);
}

#[test]
fn a_node_among_others_has_its_addresses_and_syncs() {
    for open in [false, true] {
        let settings = settings(peers(LISTEN, PEER, open)).expect("settings");
        let p2p = &settings.consensus().p2p;
        assert_eq!(p2p.listen_addr.to_string(), LISTEN);
        assert_eq!(p2p.persistent_peers[0].to_string(), PEER);
        assert_eq!(p2p.persistent_peers_only, !open);
        assert!(settings.value_sync().enabled && !p2p.discovery.enabled);
        assert!(p2p.rpc_max_size.as_u64() > 10_000_000, "two full blocks fit");
        let sync = settings.value_sync();
        let per_window = u128::from(sync.max_inbound_requests_per_window);
        let statuses =
            sync.inbound_request_rate_limit_window.as_millis() / STATUS_INTERVAL.as_millis();
        assert!(per_window >= 2 * statuses, "who is behind asks with each status");
        assert_eq!(1, sync.max_concurrent_inbound_requests);
        assert_eq!(sync.request_timeout, Timeouts::default().propose * 3);
    }
}

#[test]
fn a_bad_address_is_named() {
    for network in [peers("here", PEER, false), peers(LISTEN, "here", false)] {
        let error = settings(network).expect_err("an error");
        assert!(matches!(error, StartError::Multiaddr { text } if text == "here"));
    }
}

#[test]
fn chains_do_not_share_protocols() {
    let names = |chain, genesis| protocol_names(&domain(chain, Hash::new([genesis; 32]))).consensus;
    assert_ne!(names("one", 1), names("two", 1));
    assert_ne!(names("one", 1), names("one", 2));
    assert!(names("one", 1).starts_with("/ombra/"));
}
