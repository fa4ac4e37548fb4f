//! Executing a block that is not trusted: what this database held, or what stands in a file.

use std::sync::Arc;

use types::check::{StaticRules, verify};
use types::{Address, Block, Hash, Rejection, SetMember, UncheckedBlock};

use crate::block::{BlockError, Executed, Parent, execute_block};
use crate::chain::Chain;
use crate::draft::Changes;
use crate::error::StorageError;
use crate::store::{CommitBlock, GenesisState, Store, Tip};
use crate::validators;

/// Who decides whether a block was final.
pub trait Certificates {
    /// Verifies the certificate of a block, and answers the validators that were to propose in the
    /// rounds of its height that decided nothing. `set` is the set of that height as the state
    /// before the block has it; none on a chain that keeps the validators of its genesis for ever.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    fn verify(
        &self,
        set: Option<&[SetMember]>,
        height: u64,
        hash: &Hash,
        certificate: &[u8],
    ) -> Result<Vec<Address>, String>;
}

/// A chain that can be executed from its beginning.
pub struct Replay<'a> {
    /// The rules.
    pub chain: Arc<Chain>,
    /// The hash of the genesis file.
    pub genesis_hash: Hash,
    /// The genesis time, milliseconds since 1970.
    pub genesis_time: u64,
    /// The rows of height 0.
    pub genesis_changes: &'a Changes,
    /// Checks certificates.
    pub certificates: &'a dyn Certificates,
}

impl std::fmt::Debug for Replay<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Replay({}, genesis {})", self.chain.chain_id, self.genesis_hash)
    }
}

/// Why a block was not executed again.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A transaction breaks a rule that needs no state.
    #[error("transaction {position}: {rejection}")]
    Transaction {
        /// Its place in the block.
        position: usize,
        /// Why.
        rejection: Box<Rejection>,
    },
    /// The block breaks a rule.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// The certificate does not prove that the block was decided.
    #[error("certificate: {reason}")]
    Certificate {
        /// Why, for people.
        reason: String,
    },
    /// Our fault.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Replay<'_> {
    /// Writes height 0, or finds it written.
    pub(super) fn begin(&self, target: &Store) -> Result<Tip, StorageError> {
        let (hash, timestamp, changes) =
            (self.genesis_hash, self.genesis_time, self.genesis_changes);
        target.init(&GenesisState { hash, timestamp, changes })
    }

    /// Checks a block as if a stranger had sent it, executes it over the tip of `target` and
    /// commits it there.
    pub(super) fn step(
        &self,
        target: &Store,
        parent: &Tip,
        block: UncheckedBlock,
        certificate: &[u8],
    ) -> Result<Tip, ReplayError> {
        let height = parent.height.saturating_add(1);
        let sets = validators::sets(&*target.latest())?;
        let set = sets.as_ref().map(|sets| sets.current.as_slice());
        let missed = self
            .certificates
            .verify(set, height, &block.header.hash(), certificate)
            .map_err(|reason| ReplayError::Certificate { reason })?;
        let block = self.check(block, height)?;
        let parent = Parent::from(parent);
        let Executed { block, changes, sweeps } =
            execute_block(&self.chain, target.latest(), &parent, block)?;
        let input =
            CommitBlock { block: &block, changes: &changes, sweeps: &sweeps, missed: &missed };
        Ok(target.commit_block(&input, certificate)?)
    }

    fn check(&self, block: UncheckedBlock, height: u64) -> Result<Block, ReplayError> {
        let UncheckedBlock { header, transactions } = block;
        let rules = StaticRules {
            chain_id: &self.chain.chain_id,
            params: &self.chain.params,
            forks: self.chain.forks,
            height,
        };
        let checked = verify(transactions, &rules).into_iter().enumerate();
        let transactions = checked.map(|(position, tx)| {
            tx.map_err(|rejection| {
                let rejection = Box::new(rejection);
                ReplayError::Transaction { position, rejection }
            })
        });
        Ok(Block { header, transactions: transactions.collect::<Result<_, _>>()? })
    }
}
