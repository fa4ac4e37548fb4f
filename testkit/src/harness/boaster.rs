//! Strangers on the network for transactions that claim a height which nobody has, and give no block.

use super::rogue::{Plan, Question, Rogue};
use super::town::Town;
use crate::net::Network;

/// What they claim.
pub const CLAIM: u64 = 1_000_000_000;
/// The kind of a question for the status, and what an answer begins with.
const STATUS: u8 = 0;
const GRANTED: u8 = 1;

/// The strangers.
#[derive(Debug)]
pub struct Boasters(Vec<Rogue>);

impl Boasters {
    /// Starts so many, who dial one node; another one, which runs, says which chain it is. Each claims
    /// another height, and a higher one each time.
    pub fn start(town: &Town, runs: usize, dialled: usize, count: u64) -> anyhow::Result<Self> {
        let address = town.node(dialled)?.p2p_address(Network::Gossip);
        let rogues = (0..count).map(|number| {
            let plan = Plan::gossip(town.node(runs)?, "sync")?.without_topics();
            let mut tip = CLAIM + number;
            let answer = move |question: &Question| {
                let is_status = question.bytes.first() == Some(&STATUS);
                is_status.then(|| {
                    tip += count;
                    status(tip)
                })
            };
            Rogue::start_with(plan, std::slice::from_ref(&address), Box::new(answer))
        });
        Ok(Self(rogues.collect::<anyhow::Result<_>>()?))
    }

    /// Waits until the node has asked each of them how far it is.
    pub fn have_claimed(&self) -> anyhow::Result<()> {
        crate::node::wait_until("the strangers' claims to be heard", || {
            Ok(self.0.iter().all(|rogue| rogue.asked("sync") > 0))
        })
    }

    /// Questions that they were asked.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.0.iter().map(|rogue| rogue.asked("sync")).sum()
    }
}

/// The answer of a node whose blocks go from the first to this height.
fn status(tip: u64) -> Vec<u8> {
    let numbers = [1_u64, tip].into_iter().flat_map(u64::to_le_bytes);
    std::iter::once(GRANTED).chain(numbers).collect()
}
