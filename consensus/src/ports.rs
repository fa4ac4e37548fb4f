//! What this crate asks of the rest of the node, in its own words.
//!
//! The node implements these traits over its state and its pool. They are synchronous but for
//! [`Pace`]: the loop calls [`Ledger`] and [`Archive`] on blocking threads, one call at a
//! time and in order, so an implementation needs no locking against itself.

use async_trait::async_trait;
use bytes::Bytes;
use types::{Address, Hash, Signature};

use crate::{LedgerFault, ValidatorSet};

/// Where the chain ends, and who decides what comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tip {
    /// Height of the last committed block; 0 when only genesis exists.
    pub height: u64,
    /// Hash of the last committed block; the genesis hash or zero at height 0.
    pub hash: Hash,
    /// The validators that decide `height + 1`.
    pub validators: ValidatorSet,
    /// The validators that decide `height + 2`: bodies of that height are taken in early.
    pub next_validators: ValidatorSet,
}

/// One of two messages that contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedChoice {
    /// The block that was chosen; none for nil.
    pub block_hash: Option<Hash>,
    /// A proposal's valid round; −1 for none, and for votes.
    pub valid_round: i64,
    /// The validator's signature over the message.
    pub signature: Signature,
}

/// What kind of message a validator sent twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignedKind {
    /// A proposal.
    Proposal,
    /// A prevote.
    Prevote,
    /// A precommit.
    Precommit,
}

/// Two signed messages of one validator of which an honest one sends at most one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Equivocation {
    /// Who signed both.
    pub validator: Address,
    /// The height that was being decided.
    pub height: u64,
    /// The round.
    pub round: u32,
    /// What was sent twice.
    pub kind: SignedKind,
    /// One message.
    pub first: SignedChoice,
    /// The other.
    pub second: SignedChoice,
}

/// A block that this node proposes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposed {
    /// The block's hash: what validators vote on.
    pub hash: Hash,
    /// The whole encoded block; opaque to this crate.
    pub bytes: Bytes,
}

/// A block of another validator as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Encoded {
    /// The encoded block.
    Whole(Bytes),
    /// [`Archive::compact_block`], and what the whole block is according to its proposer's seal.
    CompactBlock {
        /// The compact block.
        bytes: Bytes,
        /// Bytes of the encoded block.
        size: usize,
        /// SHA-256 of the encoded block.
        digest: Hash,
    },
}

/// When a proposal was seen here, by [`Clock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When its sealed head came, in milliseconds since 1970.
    pub came_ms: u64,
    /// When its head had come and its round was open here: the same, unless it came early.
    pub open_ms: u64,
}

/// Which way a timestamp misses the moment at which its proposal was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// It lies after that: its proposer's clock is ahead, or the own one behind.
    Ahead,
    /// It lies too long before that.
    Behind,
}

/// Which rules a candidate has to meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Proposed for a height that is being decided: clock rules apply.
    Live(Seen),
    /// Proposed for a height that is being decided, and its time is settled: a quorum has voted for it,
    /// it was found timely before, or this node has no vote. All other rules apply.
    Settled,
    /// Decided already by a quorum and fetched later: only rules that never change apply.
    Synced,
}

/// A block of another validator, attributable, but not yet looked into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The height it is for: always the tip's height plus one.
    pub height: u64,
    /// The round it was proposed in.
    pub round: u32,
    /// The validator that built and proposed it. For [`Origin::Synced`] only whose turn the round
    /// of the decision was: a block that was first proposed in an earlier round, by another, can
    /// be decided then, so this must not be compared with what the block says.
    pub proposer: Address,
    /// The proposer's signature over the body's header, to be kept with an undecided block so
    /// that it can be sent on later; absent for [`Origin::Synced`].
    pub seal: Option<Signature>,
    /// The block; [`Encoded::Whole`] for [`Origin::Synced`].
    pub content: Encoded,
    /// Which rules apply.
    pub origin: Origin,
}

/// What the ledger found out about a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was executed and may be committed. It is durable.
    Valid(Hash),
    /// It is a block, and it breaks a rule.
    Invalid {
        /// The block's hash.
        hash: Hash,
        /// Which rule, for the log.
        reason: String,
    },
    /// It is a block, and its timestamp does not fit the moment at which it came. It was not executed and
    /// is not kept: the same block may be given again as [`Origin::Settled`].
    Untimely {
        /// The block's hash.
        hash: Hash,
        /// Which way it misses.
        direction: Direction,
        /// By how much, for the log.
        reason: String,
    },
    /// It is not an encoded block, or not a compact block of one. The latter is not its proposer's fault:
    /// nothing seals a compact block.
    Undecodable {
        /// What was wrong, for the log.
        reason: String,
    },
    /// The whole block cannot be made of the compact block here: something of it is not known, or known
    /// with other bytes. It is nobody's fault; the whole block is needed.
    Incomplete {
        /// How many of its transactions are not known; 0 if all are and the bytes differ.
        missing: usize,
    },
}

/// A committed block with the proof of its decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The encoded block.
    pub bytes: Bytes,
    /// The certificate bytes given to [`Ledger::commit`].
    pub certificate: Bytes,
}

/// A block that was proposed for an open height and kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecided {
    /// The round it was proposed in.
    pub round: u32,
    /// The validator that proposed it.
    pub proposer: Address,
    /// The seal of the candidate; absent for a block of our own.
    pub seal: Option<Signature>,
    /// The block's hash.
    pub hash: Hash,
}

/// The chain that consensus extends.
pub trait Ledger: Send + Sync {
    /// The last committed block and the validators of the next height.
    ///
    /// # Errors
    /// [`LedgerFault`] when the store cannot be read.
    fn tip(&self) -> Result<Tip, LedgerFault>;

    /// Builds and executes a block for the next height. The block is durable (synced to disk)
    /// when this returns, and every call for the same height and round gives the same block,
    /// also after a restart: the engine's log holds only the hash.
    ///
    /// # Errors
    /// [`LedgerFault`] when the block cannot be built or kept; the node stops.
    fn propose(&self, height: u64, round: u32) -> Result<Proposed, LedgerFault>;

    /// Executes a candidate. A valid one is durable when this returns: a vote for it may leave.
    ///
    /// # Errors
    /// [`LedgerFault`] for trouble of our own, never for a bad block.
    fn validate(&self, candidate: Candidate) -> Result<Verdict, LedgerFault>;

    /// Makes an undecided block final with its certificate, in one atomic, synced write. Does
    /// nothing when the tip is at or above `height`.
    ///
    /// # Errors
    /// [`LedgerFault`] when the block is not there or cannot be written; the node stops.
    fn commit(&self, height: u64, hash: Hash, certificate: Bytes) -> Result<(), LedgerFault>;

    /// A committed block, if this node (still) has it.
    ///
    /// # Errors
    /// [`LedgerFault`] when the store cannot be read.
    fn decided(&self, height: u64) -> Result<Option<Decided>, LedgerFault>;
}

/// The kept blocks: those not decided yet, and how far back history reaches.
pub trait Archive: Send + Sync {
    /// The valid undecided blocks of an open height, our own and others'.
    ///
    /// # Errors
    /// [`LedgerFault`] when the store cannot be read.
    fn undecided(&self, height: u64) -> Result<Vec<Undecided>, LedgerFault>;

    /// The encoded bytes of one undecided block.
    ///
    /// # Errors
    /// [`LedgerFault`] when the store cannot be read.
    fn body(&self, height: u64, hash: &Hash) -> Result<Option<Bytes>, LedgerFault>;

    /// An own undecided block for those who have most of it already. Asked for only where it would
    /// be sent, and sent in the block's place if it is shorter; none if it would save nothing.
    ///
    /// # Errors
    /// [`LedgerFault`] for trouble of our own; the node stops.
    fn compact_block(&self, hash: &Hash) -> Result<Option<Bytes>, LedgerFault>;

    /// The lowest height that [`Ledger::decided`] can serve; 1 when nothing was pruned.
    ///
    /// # Errors
    /// [`LedgerFault`] when the store cannot be read.
    fn earliest(&self) -> Result<u64, LedgerFault>;

    /// Keeps proofs that validators contradicted themselves. Which of them a node sees depends on
    /// timing, and some come twice, so nothing may be decided from them.
    ///
    /// # Errors
    /// [`LedgerFault`] when they cannot be written.
    fn keep_evidence(&self, pairs: &[Equivocation]) -> Result<(), LedgerFault>;
}

/// The machine's clock, by which the arrival of proposals is judged (docs/protocol.md section 6.2).
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> u64;
}

/// When a block is due (docs/protocol.md section 6).
#[async_trait]
pub trait Pace: Send + Sync {
    /// Resolves when block `height` is due: transactions are executable, a deadline has passed,
    /// or the heartbeat interval has gone by since the last block's timestamp; and never before
    /// the minimum interval after the last block. May be dropped at any moment and asked again.
    async fn due(&self, height: u64);

    /// Resolves when the minimum interval after the last block is over: the earliest moment at
    /// which block `height` may be started, whoever asks for it. May be dropped at any moment and
    /// asked again.
    async fn earliest(&self, height: u64);
}
