//! Executing blocks that are not trusted: what this database held, what stands in a file, what
//! another node sent. First come the checks that need no state, which can be made for many blocks
//! at once, ahead of the tip and on any thread; then execution, one block after the other.

use std::num::NonZeroUsize;
use std::sync::Arc;

use state::block::{Executed, execute_block};
use state::chain::ChainRules;
use state::draft::Changes;
use state::error::StorageError;
use state::{rules, validators};
use types::check::{StaticRules, verify_blocks};
use types::transaction::SizeLimits;
use types::{Block, CheckedTx, Hash, Header, Rejection, Transaction, UncheckedBlock};

use super::error::{ReplayError, ToolError};
use crate::certificates::{Certificates, V7Height};
use crate::commit::{CommitBlock, GenesisState};
use crate::database::Store;
use crate::meta::Tip;
use crate::rocks::Durability;

/// What was decided once is taken whatever its size.
const ANY_SIZE: SizeLimits = SizeLimits { tx_bytes: usize::MAX, chunk_tx_bytes: usize::MAX };

/// A chain that can be executed from its beginning.
pub struct Replay<'a> {
    /// The rules.
    pub chain: Arc<ChainRules>,
    /// The hash of the genesis file.
    pub genesis_hash: Hash,
    /// The genesis time, milliseconds since 1970.
    pub genesis_time: u64,
    /// The rows of height 0.
    pub genesis_changes: &'a Changes,
    /// Checks certificates.
    pub certificates: &'a dyn Certificates,
    /// Threads that check blocks ahead of the one that executes them.
    pub threads: NonZeroUsize,
}

/// A block as it is stored or sent. Nothing about it is trusted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EncodedBlock {
    /// The height at which it is to stand.
    pub height: u64,
    /// [`Block::encode`].
    pub bytes: Vec<u8>,
    /// Its certificate.
    pub certificate: Vec<u8>,
    /// The hash that its source states, if it does. For the caller to compare.
    pub stated_hash: Option<Hash>,
}

/// A block that passed every check that needs no state: each transaction is good by itself. Who may
/// sign its certificate is part of the state before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrecheckedBlock {
    block: Block,
    certificate: Vec<u8>,
    stated_hash: Option<Hash>,
}

impl PrecheckedBlock {
    /// The block, for those who execute it themselves.
    #[must_use]
    pub const fn block(&self) -> &Block {
        &self.block
    }

    /// The hash that its source stated, if it did.
    #[must_use]
    pub const fn stated_hash(&self) -> Option<Hash> {
        self.stated_hash
    }
}

impl std::fmt::Debug for Replay<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Replay({}, genesis {})", self.chain.chain_id, self.genesis_hash)
    }
}

impl Replay<'_> {
    /// Writes height 0, or finds it written; the votes for later forks are counted from then on.
    pub(super) fn begin(&self, target: &Store) -> Result<Tip, StorageError> {
        let (hash, timestamp, changes) =
            (self.genesis_hash, self.genesis_time, self.genesis_changes);
        let tip = target.init(&GenesisState { hash, timestamp, changes })?;
        target.count_forks(&self.chain)?;
        Ok(tip)
    }

    /// Checks blocks as if a stranger had sent them, as far as that needs no state: their form, and
    /// the transactions by themselves. The answers are in the order of
    /// `blocks`, and each is the one that the block would get alone; but the signatures are checked
    /// in batches over all of them.
    #[must_use]
    pub fn precheck(&self, blocks: Vec<EncodedBlock>) -> Vec<Result<PrecheckedBlock, ToolError>> {
        let mut transactions = Vec::with_capacity(blocks.len());
        let mut opened = Vec::with_capacity(blocks.len());
        for block in blocks {
            opened.push(self.open(block).map(|(opened, txs)| {
                transactions.push((txs, self.rules(opened.height)));
                opened
            }));
        }
        let mut checked = verify_blocks(transactions).into_iter();
        let mut close = |opened: Opened| opened.close(checked.next().unwrap_or_default());
        opened.into_iter().map(|opened| opened.and_then(&mut close)).collect()
    }

    fn rules(&self, height: u64) -> StaticRules<'_> {
        StaticRules {
            chain_id: &self.chain.chain_id,
            params: &self.chain.params,
            forks: self.chain.forks,
            height,
        }
    }

    /// Decodes a block.
    fn open(&self, block: EncodedBlock) -> Result<(Opened, Vec<Transaction>), ToolError> {
        let EncodedBlock { height, bytes, certificate, stated_hash } = block;
        let UncheckedBlock { header, transactions } = UncheckedBlock::decode(&bytes, &ANY_SIZE)
            .map_err(|source| StorageError::Block { height, source })?;
        Ok((Opened { height, header, certificate, stated_hash }, transactions))
    }

    /// Verifies a block's certificate, executes it over the tip of `target` and commits it there. It is on the disk once the
    /// caller has called [`Store::sync`].
    pub(super) fn step(
        &self,
        target: &Store,
        parent: &Tip,
        block: PrecheckedBlock,
    ) -> Result<Tip, ToolError> {
        let height = parent.height.saturating_add(1);
        self.execute(target, parent, block).map_err(|source| refused(height, source))
    }

    fn execute(
        &self,
        target: &Store,
        parent: &Tip,
        block: PrecheckedBlock,
    ) -> Result<Tip, ReplayError> {
        let PrecheckedBlock { block, certificate, stated_hash: _ } = block;
        let height = parent.height.saturating_add(1);
        target.require_known_fork()?;
        let sets = validators::sets(&*target.latest())?;
        let set = sets.as_ref().map(|sets| sets.current.as_slice());
        let v7 = rules::v7_from(&self.chain, &*target.latest())?;
        let verify = |v7| {
            let v7 = V7Height::Known(v7);
            self.certificates.verify(v7, set, height, &block.header.hash(), &certificate)
        };
        let missed = match verify(v7) {
            Ok(missed) => missed,
            // The validators know of votes that stand in blocks which this database does not have.
            Err(_) if v7.is_none() && target.lacks_votes() && verify(Some(height)).is_ok() => {
                return Err(StorageError::UncountedFork { height }.into());
            }
            Err(reason) => return Err(ReplayError::Certificate { reason }),
        };
        let parent = target.parent()?;
        let Executed { block, changes, events } =
            execute_block(&self.chain, target.latest(), &parent, block)
                .map_err(ReplayError::of_certified)?;
        let input =
            CommitBlock { block: &block, changes: &changes, events: &events, missed: &missed };
        let prepared = target.prepare(&input)?;
        Ok(target.commit_as(prepared, &certificate, Durability::Buffered)?)
    }
}

fn refused(height: u64, source: ReplayError) -> ToolError {
    ToolError::Replay { height, source: Box::new(source) }
}

/// A block whose transactions are being checked.
struct Opened {
    height: u64,
    header: Header,
    certificate: Vec<u8>,
    stated_hash: Option<Hash>,
}

impl Opened {
    fn close(
        self,
        checked: Vec<Result<CheckedTx, Rejection>>,
    ) -> Result<PrecheckedBlock, ToolError> {
        let Self { height, header, certificate, stated_hash } = self;
        let transactions = checked.into_iter().enumerate().map(|(position, tx)| {
            tx.map_err(|rejection| {
                let rejection = Box::new(rejection);
                refused(height, ReplayError::Transaction { position, rejection })
            })
        });
        let block = Block { header, transactions: transactions.collect::<Result<_, _>>()? };
        Ok(PrecheckedBlock { block, certificate, stated_hash })
    }
}
