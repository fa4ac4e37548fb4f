//! A peer that sends what others sent, again and again.

use anyhow::{Context as _, ensure};
use testkit::node::wait_until;

use crate::{ALL, Extent};
use testkit::harness::{Load, Rogue, Town};
use testkit::suite::say;

/// How often it sends everything that it has heard.
const ROUNDS: u64 = 50;
const ROUNDS_FULL: u64 = 1_000;
/// Messages that it hears before it begins.
const HEARD_MIN: usize = 20;

pub(crate) fn run(extent: Extent) -> anyhow::Result<()> {
    let town = Town::start(4, 0)?;
    let node = town.node(0)?;
    let (rogue, topic) = Rogue::publisher(node)?;
    let load = Load::full(&town.net, ALL, 4)?;
    wait_until("something to replay", || Ok(rogue.heard().len() >= HEARD_MIN))?;
    let replay = || {
        for message in rogue.heard() {
            rogue.publish(&topic, message);
        }
    };
    let rounds = extent.pick(ROUNDS, ROUNDS_FULL);
    (0..rounds).for_each(|_| replay());
    let wanted = usize::try_from(rounds)? * HEARD_MIN;
    wait_until("the replayed messages to go out", || {
        // What found no room on the way goes again.
        replay();
        Ok(rogue.published() >= wanted)
    })
    .with_context(|| {
        let (sent, peers) = (rogue.published(), rogue.connected());
        let log = node.logged().unwrap_or_default();
        let out = log.lines().rfind(|line| line.contains("keeping a peer out")).unwrap_or_default();
        format!("{sent} of {wanted} went to {peers} peers; {}; {out}", rogue.trouble())
    })?;
    load.confirms(20)?;
    let [messages, rejected] = ["ombra_p2p_messages_total", "ombra_p2p_messages_rejected_total"];
    say(&format!(
        "   {} messages sent again; of {} that the node looked at it blames peers for {}",
        rogue.published(),
        node.metric(messages)?,
        node.metric(rejected)?
    ));
    ensure!(node.metric(rejected)? == 0, "a replayed message is nobody's fault");
    ensure!(node.metric("ombra_p2p_bans_total")? == 0, "who sends it again is not kept out");
    town.goes_on(ALL, 4)?;
    town.check(&*load.stop()?)
}
