//! What the attacks on money have in common: the connection over which several accounts send, and texts that
//! offer something for their place.

use testkit::actor::{Actor, plain_step, tool_call};
pub(super) use testkit::senders::{Asked, Senders};
use testkit::workload::envelope;
use types::build::{Envelope, build_tx};
use types::tx::{AgentStep, Protection};
use types::{Amount, Bid, Body, Hash, Keypair};

/// Micro-OMBRA of an OMBRA.
const OMBRA: i128 = 1_000_000;

/// A signed text with the next nonce that offers something for its place: micro beyond the base fee.
pub(super) fn tipping(actor: &mut Actor, body: &Body, tip: u64) -> String {
    let tip = (tip > 0).then_some(Amount::new(tip));
    let bid = Bid { max_base_fee: Some(Amount::new(1_000_000)), tip };
    let text = build_tx(&actor.key, body, &Envelope { bid, ..envelope(actor.nonce) });
    actor.nonce += 1;
    text
}

/// A step of a run, by its index, that calls of tools make as large as it should be.
pub(super) fn padded_step(
    actor: &mut Actor,
    (run, index): (Hash, u64),
    tip: u64,
    bytes: usize,
) -> String {
    let with = |actor: &mut Actor, names: &[usize]| {
        let calls = names.iter().map(|name| tool_call(&"x".repeat(*name))).collect();
        let step = AgentStep { tool_calls: Some(calls), ..plain_step(run, index, 0) };
        tipping(actor, &Body::AgentStep(step), tip)
    };
    let size = |names: &[usize]| payload_bytes(&with(&mut actor.clone(), names));
    let mut names = Vec::new();
    while size(&[&names[..], &[1]].concat()) <= bytes {
        names.push(1);
    }
    let mut room = bytes.saturating_sub(size(&names));
    for name in &mut names {
        let more = room.min(NAME_BYTES_MAX - *name);
        *name += more;
        room -= more;
    }
    with(actor, &names)
}

/// The longest name of a tool.
const NAME_BYTES_MAX: usize = 256;

/// The size of a text by docs/protocol.md section 15: in the text, hash and signature stand as hex.
pub(super) const fn payload_bytes(text: &str) -> usize {
    text.len().saturating_sub(217 - 64)
}

/// Claims a run, and waits until that is in a block.
pub(super) fn claim(senders: &mut Senders, miner: &mut Actor, run: Hash) -> anyhow::Result<()> {
    let text = miner.sign(&Body::AgentClaim(miner.claim(run)));
    senders.include(&[text])
}

/// A run of so many steps of somebody who asks for it and claims it.
pub(super) fn own_run(
    senders: &mut Senders,
    actor: &mut Actor,
    max_steps: u64,
) -> anyhow::Result<Hash> {
    let (max_fee, protection) = (max_steps * 100, Protection::default());
    let run = senders.request(actor, &Asked { prompt: "mine", max_fee, max_steps, protection })?;
    claim(senders, actor, run)?;
    Ok(run)
}

/// What all of these have together, in micro.
pub(super) fn wealth(senders: &mut Senders, keys: &[Keypair]) -> anyhow::Result<i128> {
    keys.iter().map(|key| senders.wealth_of(key.address())).sum()
}

/// Micro as OMBRA, for people.
pub(super) fn ombra(micro: i128) -> String {
    format!("{}.{:06}", micro / OMBRA, micro % OMBRA)
}
