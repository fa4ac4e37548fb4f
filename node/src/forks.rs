//! Forks that this program does not know: what is said of them, and the node's end before them
//! (docs/protocol.md section 8.1).

mod earlier;

use std::sync::Arc;
use std::time::Duration;

use state::forks::{FixedFork, Tally};
use store::ForkCount;
use tokio_util::sync::CancellationToken;
use types::Keypair;

use crate::chain::NodeChain;
use crate::fault::NodeFault;

pub(crate) use earlier::EarlierVotes;

/// How often the height is compared with that of a fork.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// So long a node that has the last block before a fork still serves it: others may lack it, and nobody
/// makes another.
const LAST_BLOCK_TIME: Duration = Duration::from_secs(3);

/// The task that ends a node before a fork that it does not know.
pub(crate) struct ForkWatch(pub(crate) Arc<NodeChain>);

impl ForkWatch {
    /// Watches until asked to stop.
    ///
    /// # Errors
    /// [`state::StorageError::UnknownFork`] when the next block begins such a fork.
    pub(crate) async fn run(self, stop: CancellationToken) -> Result<(), NodeFault> {
        stop.run_until_cancelled(self.watch()).await.unwrap_or(Ok(()))
    }

    async fn watch(&self) -> Result<(), NodeFault> {
        let Self(chain) = self;
        let mut told = false;
        loop {
            if !told
                && let Some((fork, FixedFork { height, since })) = chain.forks().tally.unknown()
            {
                told = true;
                tracing::error!(
                    fork,
                    height,
                    since,
                    "the validators have fixed a fork that this program does not know: it stops \
                     before that height; install a release that knows the fork"
                );
            }
            if let Err(end) = chain.store().require_known_fork() {
                tracing::error!(%end, "the node has reached its last block");
                tokio::time::sleep(LAST_BLOCK_TIME).await;
                return Err(end.into());
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }
}

/// Cancelled when the validator may sign: at once, unless votes for later forks stand in blocks that its
/// database does not have. One that decides alone and knows no peers would wait for them for ever.
pub(crate) fn permission(
    chain: &NodeChain,
    identity: &consensus::Identity,
    (has_network, knows_peers): (bool, bool),
) -> CancellationToken {
    let own = identity.validator.as_ref().map(Keypair::address);
    let decides_alone = own.is_some_and(|own| chain.validators().next.is_only(&own));
    let is_nobody_asked = !has_network || !knows_peers && decides_alone;
    let may_sign = CancellationToken::new();
    if is_nobody_asked || chain.forks().missing.is_none() {
        may_sign.cancel();
    }
    may_sign
}

/// What `/readyz` says of forks, and whether the node can know of all of them.
pub(crate) fn readiness(count: &ForkCount, tip: u64) -> (bool, String) {
    let ForkCount { tally, missing } = count;
    let said = match tally.unknown() {
        Some((fork, FixedFork { height, .. })) => format!(
            "{fork} begins with block {height}, {} from now: this program (ombra {}) does not know \
             it and stops before it; install a release that knows it",
            height.saturating_sub(tip),
            env!("CARGO_PKG_VERSION"),
        ),
        None => known(tally, tip),
    };
    match missing {
        None => (true, said),
        Some(blocks) => {
            let (first, last) = (blocks.start(), blocks.end());
            (
                false,
                format!("{said}; the votes in the blocks {first} to {last} are not counted yet"),
            )
        }
    }
}

/// What is said of the fork whose height was fixed for the latest block.
fn known(tally: &Tally, tip: u64) -> String {
    let Some((fork, FixedFork { height, .. })) =
        tally.fixed().iter().max_by_key(|(_, fixed)| fixed.height)
    else {
        return "no fork is fixed that this program does not know".to_owned();
    };
    match height.checked_sub(tip).filter(|left| *left > 0) {
        Some(left) => {
            format!("{fork} begins with block {height}, {left} from now; this program knows it")
        }
        None => format!("{fork} has been active since block {height}; this program knows it"),
    }
}

#[cfg(test)]
mod tests {
    //! What is said of forks, and how a node ends before one.

    use state::StorageError;

    use super::*;
    use crate::supervisor::ShutdownReason;

    #[test]
    fn blocks_that_are_not_counted_fail_the_check_and_are_named() {
        let count = |missing| ForkCount { tally: Tally::default(), missing };
        let (ok, said) = readiness(&count(None), 7);
        assert!(ok, "{said}");
        let (ok, said) = readiness(&count(Some(3..=20)), 40);
        assert!(!ok && said.contains("the blocks 3 to 20"), "{said}");
    }

    #[test]
    fn a_fixed_fork_is_told_whether_the_program_knows_it_or_not() {
        let said = |fork: &str, tip| {
            let mut tally = Tally::default();
            tally.fix(fork, FixedFork { height: 50, since: 3 });
            readiness(&ForkCount { tally, missing: None }, tip)
        };
        for (fork, tip, expected) in [
            ("v7", 7, "v7 begins with block 50, 43 from now; this program knows it"),
            ("v7", 49, "v7 begins with block 50, 1 from now; this program knows it"),
            ("v7", 50, "v7 has been active since block 50; this program knows it"),
            ("v8", 7, "v8 begins with block 50, 43 from now; this program knows it"),
        ] {
            assert_eq!(said(fork, tip), (true, expected.to_owned()));
        }
        let (ok, unknown) = said("v9", 7);
        assert!(ok && unknown.contains("does not know it and stops before it"), "{unknown}");
    }

    #[test]
    fn wherever_the_fork_is_met_the_node_ends_with_the_same_sentence() {
        let end = || StorageError::UnknownFork { fork: "v7".to_owned(), height: 50 };
        let ledger = |source| consensus::ConsensusFault::Ledger { height: 50, source };
        let faults = [
            NodeFault::Storage(end()),
            NodeFault::Consensus(ledger(consensus::LedgerFault::new(end()))),
            NodeFault::Consensus(ledger(consensus::LedgerFault::new(NodeFault::Storage(end())))),
            NodeFault::CatchUp(Box::new(end().into())),
        ];
        for fault in faults {
            let reason = ShutdownReason::TaskFailed { name: "engine", fault };
            assert_eq!(reason.unknown_fork(), Some(end().to_string()), "{reason}");
            assert!(reason.forbids_restart());
        }
        let other = NodeFault::Storage(StorageError::Empty);
        let reason = ShutdownReason::TaskFailed { name: "engine", fault: other };
        assert_eq!(reason.unknown_fork(), None);
        assert!(!reason.forbids_restart());
    }
}
