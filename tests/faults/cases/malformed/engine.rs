//! The same on the engine's network, on each of its channels; the node's log says what reached it.

use anyhow::{Context as _, ensure};
use testkit::net::{Member, Network};
use testkit::node::wait_until;

use super::{OVERSIZED, ask, bare, rubbish};
use crate::Extent;
use testkit::harness::engine_wire::{Answer, broadcast, counted, framed, question, status};
use testkit::harness::{BROADCAST, Load, PROOF, Plan, Rogue, Town};
use testkit::suite::say;

const REST: &[usize] = &[0, 1, 2];
/// The validator whose key for the network the rogue has.
const STOLEN: usize = 3;
/// Topics, and what a node logs when it cannot read what was published there.
const TOPICS: &[(&str, &str)] = &[
    ("/consensus", "Failed to decode consensus message"),
    ("/proposal_parts", "Failed to decode stream message"),
    ("/liveness", "Failed to decode liveness message"),
];
/// The longest proof that is read.
const PROOF_BYTES_MAX: usize = 1_024;

/// A node, and the stolen key.
struct Target<'a> {
    node: &'a Member,
    key: [u8; 32],
}

/// What sends rubbish on a channel.
type Sending<'a> = fn(&Target<'a>) -> anyhow::Result<()>;

pub(crate) fn run(_: Extent) -> anyhow::Result<()> {
    let mut town = Town::start(4, 0)?;
    let load = Load::steady(&town.net, REST, 4)?;
    town.kill(STOLEN)?;
    let target = Target { node: town.node(0)?, key: town.node(STOLEN)?.node_key()? };
    let channels: [(&str, Sending<'_>); 6] = [
        ("gossip", Target::publish_all),
        ("status", Target::status),
        ("questions for blocks", Target::questions),
        ("answers with blocks", Target::answers),
        ("proofs of being a validator", Target::proofs),
        ("no handshake", |target| bare(target.node, Network::Consensus)),
    ];
    for (name, send) in channels {
        send(&target).context(name)?;
        load.confirms(4).with_context(|| format!("after rubbish as {name}"))?;
        say(&format!("   {name}: heard, and blocks go on"));
    }
    town.restart(STOLEN)?;
    town.goes_on(&[0, 1, 2, STOLEN], 4)?;
    town.check(&*load.stop()?)
}

impl Target<'_> {
    fn rogue(&self, protocol: &str) -> anyhow::Result<Rogue> {
        let plan = Plan::consensus(self.node, self.key, protocol)?;
        Rogue::start(plan, &[self.node.p2p_address(Network::Consensus)])
    }

    /// Waits until the node has logged this so often.
    fn logs(&self, line: &str, count: usize) -> anyhow::Result<()> {
        wait_until(&format!("{line:?} in the log, {count} times"), || {
            let seen = self.node.logged()?.matches(line).count();
            Ok(seen >= count)
        })
    }

    fn publish_all(&self) -> anyhow::Result<()> {
        for (topic, line) in TOPICS {
            let rogue = self.rogue("sync")?;
            let publish = |bytes: &[u8]| {
                wait_until(&format!("a message on {topic} to go out"), || {
                    Ok(rogue.publish(topic, bytes.to_vec()))
                })
                .with_context(|| rogue.trouble())
            };
            // What is too long ends the stream, so it comes last.
            let (short, long): (Vec<_>, Vec<_>) =
                rubbish().into_iter().partition(|bytes| bytes.len() < OVERSIZED);
            short.iter().try_for_each(|bytes| publish(bytes))?;
            self.logs(line, short.len())?;
            long.iter().try_for_each(|bytes| publish(bytes))?;
        }
        Ok(())
    }

    /// Where nodes say how far they are.
    fn status(&self) -> anyhow::Result<()> {
        let rogue = self.rogue(BROADCAST)?;
        let messages: Vec<_> =
            rubbish().into_iter().filter(|bytes| bytes.len() < OVERSIZED).collect();
        for message in &messages {
            ask(&rogue, broadcast(message)?)?;
        }
        self.logs("Failed to decode status message", messages.len())?;
        // A topic that nobody knows, and the end of a subscription that never was.
        ask(&rogue, counted(&[&[63 << 2][..], &[b'x'; 63]].concat()))?;
        ask(&rogue, counted(&[&[(5 << 2) | 2][..], b"/sync"].concat()))?;
        ask(&rogue, status([9; 32], u64::MAX)?)?;
        self.logs("Mismatched peer ID in status message", 1)?;
        rubbish().into_iter().try_for_each(|bytes| ask(&rogue, bytes))
    }

    fn questions(&self) -> anyhow::Result<()> {
        let rogue = self.rogue("sync")?;
        // These can be read, and are answered with what there is.
        for (first, last) in [(0, u64::MAX), (1, u64::MAX), (u64::MAX, 0), (u64::MAX, u64::MAX)] {
            let before = rogue.answers().0;
            ask(&rogue, question(first, last)?)?;
            ensure!(rogue.answers().0 > before, "{first} to {last} was not answered");
        }
        let outcomes = || rogue.answers().0 + rogue.answers().1;
        let (before, mut sent) = (outcomes(), 0);
        for bytes in rubbish().into_iter().filter(|bytes| bytes.len() < OVERSIZED) {
            // Nobody answers these before their time is over, which need not be waited for.
            ensure!(rogue.ask(framed(&bytes)?) == 1, "the rogue was cut off: {}", rogue.trouble());
            sent += 1;
        }
        self.logs("Failed to decode sync request", sent)?;
        for bytes in rubbish() {
            ensure!(rogue.ask(bytes) == 1, "the rogue was cut off: {}", rogue.trouble());
            sent += 1;
        }
        wait_until("the questions to be over", || Ok(outcomes() >= before + sent))
    }

    fn answers(&self) -> anyhow::Result<()> {
        let empty = Answer { start: 1, blocks: Vec::new() }.write()?;
        let short = rubbish().into_iter().filter(|bytes| bytes.len() < OVERSIZED);
        let readable = short.map(|bytes| framed(&bytes)).collect::<anyhow::Result<Vec<_>>>()?;
        let all: Vec<_> = readable.iter().cloned().chain([empty]).chain(rubbish()).collect();
        let (count, mut next) = (all.len(), all.into_iter().cycle());
        let plan = Plan::consensus(self.node, self.key, BROADCAST)?;
        let address = self.node.p2p_address(Network::Consensus);
        let rogue = Rogue::start_with(
            plan.without_topics(),
            &[address],
            Box::new(move |question| question.protocol.contains("/sync/").then(|| next.next())?),
        )?;
        wait_until("the node to ask the rogue for blocks", || {
            rogue.ask(status(self.key, u64::MAX)?);
            Ok(rogue.asked("/sync/") >= count)
        })?;
        self.logs("Failed to decode sync response", readable.len())
    }

    /// A node reads one proof of each peer while that is connected.
    fn proofs(&self) -> anyhow::Result<()> {
        let rogue = self.rogue(PROOF)?;
        let short = rubbish().into_iter().filter(|bytes| bytes.len() < PROOF_BYTES_MAX);
        let short: Vec<_> = short.collect();
        for (number, bytes) in short.iter().enumerate() {
            rogue.dials_again()?;
            ask(&rogue, counted(bytes))?;
            self.logs("Failed to decode validator proof", number + 1)?;
        }
        rogue.dials_again()?;
        let nobody = [&4_u32.to_le_bytes()[..], b"who?", &0_u32.to_le_bytes(), &[7; 64]].concat();
        ask(&rogue, counted(&nobody))?;
        self.logs("Validator proof peer_id does not match sender", 1)?;
        for bytes in rubbish() {
            rogue.dials_again()?;
            ask(&rogue, bytes)?;
        }
        Ok(())
    }
}
