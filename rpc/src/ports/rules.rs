//! Forks that are to come, the rules that votes can change, what places in blocks cost by them, and
//! what the chain remembers of validators' keys.

use types::{Address, Amount, Params, PublicKey};

use super::{IncludedTx, PortFault, Slice, Stake};

/// Forks that are to come.
pub trait ForkCounts: Send + Sync {
    /// The votes for them.
    ///
    /// # Errors
    /// [`PortFault`].
    fn forks(&self) -> Result<ForkVotes, PortFault>;
}

/// The votes for later forks, as the node has counted them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForkVotes {
    /// The forks that can be voted for, by name.
    pub forks: Vec<ForkState>,
    /// The power of all validators of the next block.
    pub total_power: u128,
    /// The first and the last of the blocks whose votes the node has not counted, because it began with
    /// a snapshot.
    pub missing: Option<(u64, u64)>,
}

/// A fork that can be voted for, or was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForkState {
    /// Its name.
    pub fork: String,
    /// Whether this program has its rules.
    pub is_known: bool,
    /// The height from which its rules hold, and the block with which that was fixed.
    pub fixed: Option<(u64, u64)>,
    /// The votes: who, for which height, in which block, with what power.
    pub votes: Vec<ForkVoter>,
}

/// A vote for a fork.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ForkVoter {
    /// The validator.
    pub address: Address,
    /// Its power in the set of the next block.
    pub power: u64,
    /// The height that it votes for.
    pub height: u64,
    /// The block with the vote.
    pub block_index: u64,
}

/// The rules of the next block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NextRules {
    /// The height of that block.
    pub height: u64,
    /// The first block with the rules of v7, as far as it is fixed.
    pub v7_from: Option<u64>,
    /// The first block with the rules of v8, if it is fixed.
    pub v8_from: Option<u64>,
    /// The parameters as they are then.
    pub params: Params,
    /// What a KiB in it costs, in micro-OMBRA; none before v7.
    pub base_fee: Option<u64>,
}

/// The parameters that votes can change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParamVotes {
    /// Each of them, in the order of the protocol's table.
    pub params: Vec<ParamState>,
    /// The power of all validators of the next block.
    pub total_power: u128,
}

/// A parameter that votes can change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParamState {
    /// Its name.
    pub name: &'static str,
    /// Its value in the next block.
    pub value: u64,
    /// The least value that may be voted for.
    pub min: u64,
    /// The greatest.
    pub max: u64,
    /// The value that was voted for, until it holds.
    pub next: Option<NextValue>,
    /// The open votes, in order of voters.
    pub votes: Vec<ParamVoter>,
}

/// A value that a parameter will have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NextValue {
    /// The value.
    pub value: u64,
    /// The first block with it.
    pub height: u64,
}

/// A vote for a value of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParamVoter {
    /// The validator.
    pub address: Address,
    /// Its power in the set of the next block.
    pub power: u64,
    /// The value that it votes for.
    pub value: u64,
    /// The first block that shall have it.
    pub height: u64,
    /// The block with the vote.
    pub block_index: u64,
}

/// The rules that votes can change, and what places in blocks cost by them.
pub trait Rules: Send + Sync {
    /// The rules of the next block. A few point reads.
    ///
    /// # Errors
    /// [`PortFault`].
    fn next_rules(&self) -> Result<NextRules, PortFault>;

    /// The parameters that votes can change, with the votes.
    ///
    /// # Errors
    /// [`PortFault`].
    fn params(&self) -> Result<ParamVotes, PortFault>;

    /// What so many bytes cost in a block with this base fee.
    fn inclusion_fee(&self, bytes: u64, base_fee: u64) -> Amount;

    /// What a transaction paid for its place; none in a block before v7, and where the node does not
    /// know what the block did. Reads the block's fees, of a validator's vote the block, and of what pays the
    /// lowest base fee what that was.
    ///
    /// # Errors
    /// [`PortFault`].
    fn paid(&self, included: &IncludedTx) -> Result<Option<Amount>, PortFault>;

    /// What an account has at stake, at most `limit` of its payments that wait.
    ///
    /// # Errors
    /// [`PortFault`].
    fn stake(&self, address: &Address, limit: usize) -> Result<Stake, PortFault>;
}

/// The key of a validator that is punished: it never has power again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PunishedKey {
    /// The key.
    pub key: PublicKey,
    /// The block with the evidence against it.
    pub punished_at: u64,
}

/// What the chain remembers of validators' keys.
pub trait Keys: Send + Sync {
    /// The keys that are punished, in their order, after `after`. The chain remembers other keys as
    /// well: bound how many are looked at, and answer short.
    ///
    /// # Errors
    /// [`PortFault`].
    fn punished(
        &self,
        after: Option<PublicKey>,
        limit: usize,
    ) -> Result<Slice<PunishedKey, PublicKey>, PortFault>;
}
