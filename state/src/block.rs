//! Blocks: building one from candidates, and executing one that somebody else built or that was
//! stored (docs/protocol.md section 6). Both go through the same `Execution`.

mod error;
mod execution;
mod header;
mod parent;

use std::sync::Arc;

use types::{Block, BlockEvents, CheckedTx, Header, Keypair, Randomness};

use self::execution::{BlockContext, Execution, Outcome, content_bytes};
use self::header::{LAST_HEIGHT, input, tx_root};
use crate::chain::ChainRules;
use crate::draft::{Changes, Draft};
use crate::error::StorageError;
use crate::view::Read;

pub use self::error::{BlockError, PushError, Resource};
pub(crate) use self::header::require;
pub use self::header::{check_clock, check_header, check_randomness};
pub use self::parent::Parent;

/// A block and everything that it does.
#[derive(Debug)]
pub struct Executed {
    /// The block.
    pub block: Block,
    /// The rows that it changes.
    pub changes: Changes,
    /// What it did.
    pub events: BlockEvents,
}

/// Makes a block out of transactions that are tried one after the other.
#[derive(Debug)]
pub struct BlockBuilder {
    parent: Parent,
    execution: Execution,
    randomness: Option<Randomness>,
}

impl BlockBuilder {
    /// An empty block on top of `parent`, whose state is `base`. The timestamp is raised to the
    /// least that is allowed if it is not later than the parent's.
    ///
    /// From fork v7 on the key of the proposer makes the block's randomness. Others refuse the block
    /// unless it is in the set of the height; that is not looked at here.
    ///
    /// # Errors
    /// [`StorageError`] if `base` has no state.
    pub fn new(
        chain: Arc<ChainRules>,
        base: Arc<dyn Read>,
        parent: Parent,
        proposer: &Keypair,
        now_ms: u64,
    ) -> Result<Self, StorageError> {
        let height = parent.height.checked_add(1).ok_or(LAST_HEIGHT)?;
        let timestamp = parent.next_timestamp(now_ms);
        let place = BlockContext { height, timestamp, proposer: proposer.address() };
        let mut execution = Execution::new(chain, base, place)?;
        let input = input(&execution.chain.chain_id, &parent, height);
        let randomness = execution.rules.is_v7().then(|| input.prove(proposer));
        execution.hold_elections(&parent, randomness.as_ref())?;
        Ok(Self { parent, execution, randomness })
    }

    /// Executes a transaction as the block's next one. One that is refused changes nothing.
    ///
    /// # Errors
    /// [`PushError::Full`] if it is too much for the rest of the block, [`PushError::Rejected`]
    /// if it is not valid here.
    pub fn push(&mut self, tx: &CheckedTx) -> Result<(), PushError> {
        self.execution.push(tx)
    }

    /// How many transactions the block has.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.execution.transactions.len()
    }

    /// Whether the block has no transaction.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.execution.transactions.is_empty()
    }

    /// The state after what is in the block so far.
    #[must_use]
    pub const fn state(&self) -> &Draft {
        &self.execution.draft
    }

    /// What is left of `maxBlockBytes`.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.execution.room()
    }

    /// What is left of `maxBlockWork`; nothing is counted before v7.
    #[must_use]
    pub fn work_room(&self) -> u64 {
        self.execution.work_room()
    }

    /// Whether enough of `maxBlockWork` is left for the least that a transaction takes.
    #[must_use]
    pub fn has_work_room(&self) -> bool {
        self.execution.has_work_room()
    }

    /// Whether less than a 64th of `maxBlockWork` is left, which many transactions are too large for.
    #[must_use]
    pub fn is_nearly_full(&self) -> bool {
        self.execution.is_nearly_full()
    }

    /// Sweeps, pays the reward and writes the header.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or the state contradicts itself.
    pub fn finish(self) -> Result<Executed, StorageError> {
        let Self { parent, execution, randomness } = self;
        let BlockContext { height, timestamp, proposer } = execution.place;
        let chain_id = execution.chain.chain_id.clone();
        let Outcome { transactions, tokens_burned, changes, events } = execution.finish()?;
        let header = Header {
            chain_id,
            index: height,
            previous_hash: parent.hash,
            timestamp,
            proposer,
            tx_root: tx_root(&transactions),
            state_root: parent.state_root,
            tokens_burned,
            tx_count: u64::try_from(transactions.len()).unwrap_or(u64::MAX),
            randomness,
        };
        Ok(Executed { block: Block { header, transactions }, changes, events })
    }
}

/// Validates a block by executing it on the state after its parent: a proposal of another
/// validator, a block of another node, or a stored block that is verified again. The clock is not
/// looked at ([`check_clock`]), nor whose turn it was to propose.
///
/// # Errors
/// [`BlockError`] with the first rule that the block breaks.
pub fn execute_block(
    chain: &Arc<ChainRules>,
    base: Arc<dyn Read>,
    parent: &Parent,
    block: Block,
) -> Result<Executed, BlockError> {
    let Block { header, transactions } = block;
    check_header(chain, parent, &header, &transactions)?;
    let Header { index, timestamp, proposer, .. } = header;
    let place = BlockContext { height: index, timestamp, proposer };
    let mut execution = Execution::new(Arc::clone(chain), base, place)?;
    execution.check_randomness(parent, &header)?;
    execution.hold_elections(parent, header.randomness.as_ref())?;
    let bytes = transactions.iter().map(content_bytes).fold(0, u64::saturating_add);
    let max = u64::from(chain.params.max_block_bytes);
    if bytes > max {
        return Err(BlockError::TooLarge { bytes, max });
    }
    let max_work = execution.rules.params.max_block_work;
    for tx in &transactions {
        let position = execution.position();
        execution.push(tx).map_err(|error| match error {
            PushError::Full { resource: Resource::Bytes, .. } => {
                BlockError::TooLarge { bytes, max }
            }
            PushError::Full { resource: Resource::Work, .. } => {
                BlockError::TooMuchWork { position, max: max_work }
            }
            PushError::Rejected(rejection) => BlockError::Transaction { position, rejection },
            PushError::Storage(fault) => BlockError::Storage(fault),
        })?;
    }
    let Outcome { transactions, tokens_burned, changes, events } = execution.finish()?;
    require("tokensBurned", &header.tokens_burned, &tokens_burned)?;
    Ok(Executed { block: Block { header, transactions }, changes, events })
}
