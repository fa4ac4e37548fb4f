//! Peers that flood the network for transactions: with forged signatures, and with well-signed
//! transactions of accounts that have nothing.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use testkit::actor::{Actor, transfer};
use testkit::net::Network;
use testkit::node::wait_until;
use types::{Keypair, Params, Signature, SizeLimits, Transaction};

use crate::Extent;
use testkit::harness::{Load, Plan, Rogue, Town};
use testkit::suite::say;

const ALL: &[usize] = &[0, 1, 2, 3];
/// Transactions in one message.
const PACK: usize = 100;
const PACKS: u64 = 200;
const PACKS_FULL: u64 = 5_000;

pub(crate) fn run(extent: Extent) -> anyhow::Result<()> {
    let town = Town::start(4, 0)?;
    let load = Load::start(&town.net, ALL, 4, Duration::ZERO)?;
    load.confirms(10)?;
    let node = town.node(0)?;
    let flood = |packs: u64, is_forged: bool| -> anyhow::Result<Rogue> {
        let plan = Plan::gossip(node, "pool")?;
        let topic = plan.topics.first().context("a topic")?.clone();
        let rogue = Rogue::start(plan, &[node.p2p_address(Network::Gossip)])?;
        wait_until("the first message of the flood to go out", || {
            rogue.publish(&topic, pack(u64::MAX, is_forged));
            Ok(rogue.published() > 0)
        })?;
        for number in 0..packs {
            rogue.publish(&topic, pack(number, is_forged));
        }
        Ok(rogue)
    };
    let forger = flood(20, true)?;
    wait_until("the forger to be kept out", || Ok(node.metric("ombra_p2p_bans_total")? > 0))?;
    wait_until("the forger to be cut off", || Ok(forger.connected() == 0))?;

    let packs = extent.pick(PACKS, PACKS_FULL);
    let poor = flood(packs, false)?;
    let went_on = town.goes_on(ALL, 10)?;
    load.confirms(40)?;
    let dropped = node.metric("ombra_p2p_messages_no_room_total")?;
    say(&format!(
        "   forged: cut off; {} packs of {PACK} from nobody's accounts: ten blocks in {went_on:.1?}, {dropped} messages found no room",
        poor.published()
    ));
    ensure!(load.ledger().failures().is_empty(), "clients noticed: {:?}", load.ledger().failures());
    town.check(&*load.stop()?)
}

/// Transactions that no other pack has.
fn pack(number: u64, is_forged: bool) -> Vec<u8> {
    let seed = types::Hash::digest(&number.to_be_bytes());
    let mut actor = Actor::new(Keypair::from_seed(seed.as_bytes()));
    let body = transfer(actor.address(), 1);
    let mut bytes = Vec::new();
    for _ in 0..PACK {
        let limits = SizeLimits::from(&Params::default());
        let Ok(tx) = Transaction::parse(actor.sign(&body).as_bytes(), &limits) else { continue };
        let payload = tx.payload();
        let length = u32::try_from(payload.len()).unwrap_or(0);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(payload.as_bytes());
        let signature = if is_forged { Signature::new([7; 64]) } else { tx.signature() };
        bytes.extend_from_slice(signature.as_bytes());
    }
    bytes
}
