//! Blocks, certificates, validators.

use std::sync::Arc;

use types::{Address, BlockFees, CommittedBlock, Hash, PublicKey, SealedBlock, Signature};

use super::PortFault;

/// A committed block as clients get it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShownBlock {
    /// The header and the texts of the transactions.
    pub block: SealedBlock,
    /// What made it final.
    pub certificate: Option<Certificate>,
    /// What the places in it cost; none before v7.
    pub fees: Option<BlockFees>,
}

/// The latest committed block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tip {
    /// Its index; 0 before the first block.
    pub height: u64,
    /// Its hash; the genesis hash before the first block.
    pub hash: Hash,
    /// Its timestamp; the genesis time before the first block.
    pub timestamp: u64,
    /// The first block that the node has, or will have: 1, unless it began with a snapshot.
    pub earliest: u64,
    /// The first block of which the node knows, or will know, what it did: `earliest`, unless a program
    /// before 0.3 committed later ones.
    pub events_from: u64,
}

/// The precommits that made a block final.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Certificate {
    /// The block's index.
    pub height: u64,
    /// The round that decided it.
    pub round: u32,
    /// The block.
    pub block_hash: Hash,
    /// Who signed, in order of addresses.
    pub signatures: Vec<(Address, Signature)>,
}

/// A validator at some height.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Validator {
    /// Its account.
    pub address: Address,
    /// Its key.
    pub public_key: PublicKey,
    /// Its voting power.
    pub power: u64,
    /// Blocks that it proposed.
    pub proposed: u64,
    /// Rounds in which it was to propose and nothing was decided.
    pub missed: u64,
    /// Its votes for changes of the set that count now, in order of candidates.
    pub votes: Vec<ValidatorVote>,
    /// Pairs of messages in which this node saw it contradict itself.
    pub equivocations: u64,
    /// The last of these pairs, oldest first; at most 16.
    pub evidence: Vec<Equivocation>,
}

/// An open vote for a change of the validator set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValidatorVote {
    /// The key of the validator that shall be added, changed or removed.
    pub candidate_key: PublicKey,
    /// The power that it shall have; 0 removes it.
    pub power: u64,
    /// The last block time at which the vote counts.
    pub expires_at: u64,
}

/// Two signed messages of one validator of which an honest one sends at most one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Equivocation {
    /// The height that was being decided.
    pub height: u64,
    /// The round.
    pub round: u32,
    /// `proposal`, `prevote` or `precommit`.
    pub kind: &'static str,
    /// The two messages: the block (none for nil), a proposal's valid round (−1 for none), and the
    /// signature.
    pub messages: [(Option<Hash>, i64, Signature); 2],
}

/// Blocks, certificates, validators.
pub trait ChainQueries: Send + Sync {
    /// The latest committed block.
    fn tip(&self) -> Tip;

    /// The block at `height`, which is at least 1; none if it is not committed. It has no events
    /// below [`Tip::events_from`]. Called once for each new block by the subscriptions, so the
    /// latest blocks should be held in memory.
    ///
    /// # Errors
    /// [`PortFault`].
    fn block(&self, height: u64) -> Result<Option<Arc<CommittedBlock>>, PortFault>;

    /// The index of the block with this hash.
    ///
    /// # Errors
    /// [`PortFault`].
    fn height_of(&self, hash: &Hash) -> Result<Option<u64>, PortFault>;

    /// The block at `height` as it is shown; none if it is not committed.
    ///
    /// # Errors
    /// [`PortFault`].
    fn shown(&self, height: u64) -> Result<Option<ShownBlock>, PortFault>;

    /// The validators of the block at `height`, in order of addresses; none if that block is
    /// more than two above the latest: its validators are not decided yet.
    ///
    /// # Errors
    /// [`PortFault`].
    fn validators(&self, height: u64) -> Result<Option<Vec<Validator>>, PortFault>;
}
