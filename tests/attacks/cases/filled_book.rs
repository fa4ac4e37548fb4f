//! Peers tell a node of hundreds of others that do not exist, with names that come first in every
//! list. Then two honest nodes that know only that node want to find each other.

use std::time::Duration;

use anyhow::Context as _;
use libp2p::Multiaddr;
use libp2p::core::PeerRecord;
use libp2p::identity::Keypair;
use testkit::harness::{Plan, Question, Rogue, Town};
use testkit::net::Network;
use testkit::suite::say;

use super::PEERS;
use super::peers::within;

/// Peers that lie, and of how many each tells: more than a node remembers.
const LIARS: usize = 10;
const TOLD: usize = 32;
/// The first byte of a key, and so of a name, that comes before almost all others.
const FIRST: u8 = 8;
/// How soon the honest nodes have to find each other.
const FOUND_MAX: Duration = Duration::from_secs(20);

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let mut town = Town::make(1, 2)?;
    let hub = town.node(0)?.p2p_address(Network::Gossip);
    town.node_mut(0)?.environment.push((PEERS.to_owned(), "[]".to_owned()));
    for at in [1, 2] {
        town.node_mut(at)?.environment.push((PEERS.to_owned(), format!("[{hub:?}]")));
    }
    town.node_mut(0)?.start()?;
    for _ in 0..LIARS {
        let (plan, records) = (Plan::gossip(town.node(0)?, "peers")?, records()?);
        let told = Box::new(move |_: &Question| Some(records.clone()));
        let liar = Rogue::start_with(plan, std::slice::from_ref(&hub), told)?;
        within("the question whom it knows", Duration::from_secs(20), || {
            Ok(liar.asked("peers") > 0)
        })?;
    }
    town.node_mut(1)?.start()?;
    town.node_mut(2)?.start()?;
    let took = within("finding each other over a lied-to node", FOUND_MAX, || {
        let peers = |at: usize| town.node(at)?.metric("ombra_p2p_peers");
        Ok(peers(1)? >= 2 && peers(2)? >= 2)
    })?;
    say(&format!("   {LIARS} liars: two nodes found each other over the third in {took:.1?}"));
    Ok(())
}

/// Records of nodes that are nowhere, as an answer.
fn records() -> anyhow::Result<Vec<u8>> {
    let mut answer = Vec::new();
    for number in 0..TOLD {
        let key = std::iter::repeat_with(Keypair::generate_ed25519).find(|key| {
            let public = key.public().try_into_ed25519();
            public.is_ok_and(|public| public.to_bytes()[0] < FIRST)
        });
        let address: Multiaddr = format!("/ip4/127.0.0.1/tcp/{}", 100 + number).parse()?;
        let record = PeerRecord::new(&key.context("a key")?, vec![address])?;
        let bytes = record.into_signed_envelope().into_protobuf_encoding();
        answer.extend_from_slice(&u32::try_from(bytes.len())?.to_le_bytes());
        answer.extend_from_slice(&bytes);
    }
    Ok(answer)
}
