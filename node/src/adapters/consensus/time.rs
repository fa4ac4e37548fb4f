//! The time of blocks: that of own proposals, and whether those of others fit their arrival.

use std::time::Duration;

use consensus::{Clock, Direction, LedgerFault, Seen, Verdict};
use state::block::{self, Parent};
use state::timely::{self, Untimely};
use state::{Rules, StorageError};
use types::{Header, Params};

use crate::chain::NodeChain;
use crate::clock::now_ms;

/// The machine's clock.
pub(crate) struct MachineClock;

impl Clock for MachineClock {
    fn now_ms(&self) -> u64 {
        now_ms()
    }
}

/// The rules of the next block.
pub(super) fn rules(chain: &NodeChain, height: u64) -> Result<Rules, StorageError> {
    Rules::at(&chain.spec().rules, &*chain.store().latest(), height)
}

/// How long transactions are put into a proposal: no longer than `most`.
pub(super) fn build_time(most: Duration, rules: &Rules) -> Duration {
    if rules.is_v7() {
        return most.min(Duration::from_millis(timely::build_time_ms(&rules.params)));
    }
    most
}

/// What a proposal's timestamp is turned down with, if it is.
pub(super) fn untimely(
    chain: &NodeChain,
    header: &Header,
    round: u32,
    seen: Seen,
) -> Result<Option<Verdict>, LedgerFault> {
    let rules = rules(chain, header.index).map_err(LedgerFault::new)?;
    let (timestamp, hash) = (header.timestamp, header.hash());
    if !rules.is_v7() {
        let refused = block::check_clock(timestamp, now_ms(), &rules.params).err();
        return Ok(refused.map(|it| Verdict::Invalid { hash, reason: it.to_string() }));
    }
    let Seen { came_ms, open_ms } = seen;
    let seen = timely::Seen { came_ms, open_ms };
    let missed = timely::check_timely(timestamp, round, seen, &rules.params).err();
    Ok(missed.map(|missed| {
        let direction = match missed {
            Untimely::Ahead { .. } => Direction::Ahead,
            Untimely::Behind { .. } => Direction::Behind,
        };
        Verdict::Untimely { hash, direction, reason: missed.to_string() }
    }))
}

/// Waits until the previous block's timestamp is past, if that helps: others may find a timestamp
/// untimely that is ahead of the clock. Blocks the thread for `precisionMs` at most.
pub(super) fn wait_for_parent(parent: &Parent, rules: &Rules) {
    let wait = rules.is_v7().then(|| wait_ms(parent.timestamp, now_ms(), &rules.params));
    if let Some(wait @ 1..) = wait {
        tracing::debug!(wait, "the previous block's timestamp is not past yet");
        std::thread::sleep(Duration::from_millis(wait));
    }
}

/// How long until a block can have the clock's time, in milliseconds. 0 if the previous block is further
/// ahead than honest clocks are apart: this clock is wrong, or those of a quorum were.
const fn wait_ms(parent: u64, now_ms: u64, params: &Params) -> u64 {
    let wait = parent.saturating_add(1).saturating_sub(now_ms);
    if wait <= params.precision_ms { wait } else { 0 }
}

#[cfg(test)]
mod tests {
    //! How long a proposer waits.

    use super::*;

    #[test]
    fn a_proposer_waits_for_its_clock_to_pass_the_previous_block_unless_that_is_far_ahead() {
        let waits = [0, 98, 99, 100, 598, 599, 600, u64::MAX]
            .map(|parent| wait_ms(parent, 100, &Params::default()));
        assert_eq!(waits, [0, 0, 0, 1, 499, 500, 0, 0]);
    }
}
