//! Putting transactions of the pool into a block.

use std::time::Instant;

use consensus::LedgerFault;
use state::block::{BlockBuilder, PushError};
use txpool::{BlockLimits, Offered, Pool};
use types::CheckedTx;

/// Transactions in one block, whatever their bytes.
const BLOCK_TXS_MAX: usize = 20_000;

/// Once a block is nearly full, it is left as it is when so many transactions in a row were too large for
/// the rest of its work: each of them was checked for nothing.
const TOO_LARGE_MAX: usize = 64;

/// Puts transactions of the pool into the block until the block or the time is full. What cannot be in
/// it stays in the pool, and others get its room. Answers how many transactions were tried.
pub(super) fn fill(
    pool: &Pool,
    builder: &mut BlockBuilder,
    end: Instant,
) -> Result<usize, LedgerFault> {
    let mut filling = Filling::default();
    while !filling.is_over(builder) {
        let bytes = usize::try_from(builder.room()).unwrap_or(usize::MAX);
        let count = BLOCK_TXS_MAX.saturating_sub(builder.len());
        let some = pool.more_candidates(BlockLimits { bytes, count }, &mut filling.offered);
        if some.is_empty() {
            break;
        }
        for tx in some {
            filling.try_one(builder, &tx)?;
            if Instant::now() >= end {
                tracing::debug!(transactions = builder.len(), "the time for a proposal is over");
                filling.is_late = true;
            }
            if filling.is_over(builder) {
                break;
            }
        }
    }
    pool.built(&filling.offered);
    Ok(filling.tried)
}

/// A block that is being filled.
#[derive(Debug, Default)]
struct Filling {
    offered: Offered,
    tried: usize,
    /// How many in a row were too large for a block that is nearly full.
    too_large: usize,
    is_late: bool,
}

impl Filling {
    fn is_over(&self, builder: &BlockBuilder) -> bool {
        self.is_late || self.too_large >= TOO_LARGE_MAX || !builder.has_work_room()
    }

    fn try_one(&mut self, builder: &mut BlockBuilder, tx: &CheckedTx) -> Result<(), LedgerFault> {
        self.tried = self.tried.saturating_add(1);
        match builder.push(tx) {
            Ok(()) => self.too_large = 0,
            // It builds on one that is not in the block.
            Err(PushError::Rejected(_)) => self.offered.refuse(tx),
            Err(PushError::Full { .. }) => {
                self.offered.leave_out(tx.from());
                if builder.is_nearly_full() {
                    self.too_large = self.too_large.saturating_add(1);
                }
            }
            Err(PushError::Storage(fault)) => return Err(LedgerFault::new(fault)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    //! When a block counts as full.

    use std::sync::Arc;
    use std::time::Duration;

    use state::Forks;
    use types::build::{Envelope, build_tx};
    use types::tx::{ChatTurn, Transfer};
    use types::{Amount, Body, Hash, Keypair};

    use super::*;
    use crate::clock::now_ms;
    use crate::ingest::testing::{World, key};

    /// A chain of v7 with so many rich accounts and the least `maxBlockWork` that there is.
    fn world_of(senders: u8) -> World {
        let forks = Forks { v7: Some(0), validator_vote: Some(0), ..Forks::default() };
        World::of(senders, &["maxBlockWork=20000".to_owned()], forks)
    }

    fn admit(world: &World, sender: u8, nonce: u64, body: &Body) {
        world.admit(&build_tx(&key(sender), body, &Envelope::new(nonce, now_ms(), None)));
    }

    /// A transfer with a tip.
    fn transfer() -> Body {
        Transfer::new(key(200).address(), Amount::new(1), Amount::new(1_000)).into()
    }

    /// A turn with a text of so many bytes.
    fn turn(bytes: usize) -> Body {
        Body::ChatTurn(ChatTurn {
            conversation_id: Hash::ZERO,
            role: "user".to_owned(),
            content: "x".repeat(bytes),
            content_blob_id: None,
            parent_turn_hash: None,
            agent_run_id: None,
            attachments: None,
        })
    }

    /// Fills the next block; answers how many transactions were tried, and how many are in it.
    fn filled(world: &World) -> (usize, usize) {
        let (rules, store) = (Arc::clone(&world.chain.spec().rules), world.chain.store());
        let (base, parent) = (store.latest(), store.parent().unwrap());
        let proposer = Keypair::from_seed(&[255; 32]);
        let mut builder = BlockBuilder::new(rules, base, parent, &proposer, now_ms()).unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        let tried = fill(&world.pool, &mut builder, end).unwrap();
        (tried, builder.len())
    }

    #[test]
    fn nothing_is_tried_once_no_transaction_could_fit() {
        let world = world_of(8);
        for nonce in 0..100 {
            for sender in 0..8 {
                admit(&world, sender, nonce, &transfer());
            }
        }
        // Each takes 30 units of work: 20 are left.
        assert_eq!((666, 666), filled(&world));
    }

    #[test]
    fn a_block_that_is_nearly_full_is_left_when_many_are_too_large_for_the_rest() {
        let world = world_of(100);
        for nonce in 0..665 {
            admit(&world, 0, nonce, &transfer());
        }
        for sender in 1..100 {
            admit(&world, sender, 0, &turn(16_000));
        }
        // 50 units are left, and a turn takes 80.
        assert_eq!((665 + TOO_LARGE_MAX, 665), filled(&world));
    }
}
