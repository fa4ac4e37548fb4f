//! Peers that flood the network for transactions: with forged signatures, and with well-signed
//! transactions of accounts that have nothing.

use anyhow::ensure;
use fixtures::parsed;
use testkit::actor::{Actor, transfer};
use testkit::node::wait_until;
use types::{Keypair, Signature};

use crate::{ALL, Extent};
use testkit::harness::{Load, Rogue, Town, packed};
use testkit::suite::say;

/// Transactions in one message.
const PACK: usize = 100;
const PACKS: u64 = 200;
const PACKS_FULL: u64 = 5_000;

pub(crate) fn run(extent: Extent) -> anyhow::Result<()> {
    let town = Town::start(4, 0)?;
    let load = Load::full(&town.net, ALL, 4)?;
    let node = town.node(0)?;
    let flood = |packs: u64, is_forged: bool| -> anyhow::Result<Rogue> {
        let (rogue, topic) = Rogue::publisher(node)?;
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
        let tx = parsed(&actor.sign(&body));
        let signature = if is_forged { Signature::new([7; 64]) } else { tx.signature() };
        bytes.extend(packed(&tx, &signature));
    }
    bytes
}
