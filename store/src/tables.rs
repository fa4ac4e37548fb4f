//! The tables that only the database knows: blocks, their indexes, and the state tree.
//!
//! ```text
//! table            key                                     value
//! meta             name (text)                             format u32 LE; genesis hash; Tip; first heights
//! headers          height u64                              StoredHeader
//! commits          height u64                              certificate, raw
//! block_ids        block hash                              height
//! bodies           height u64 | first position u32         transactions, raw
//! tx_index         first 16 bytes of a transaction's hash  TxLocation
//! account_history  address | height u64                    positions in that block
//! sweeps           height u64                              nothing any more: see [`SWEEPS`]
//! validator_stats  address                                 ValidatorStats
//! undecided        height u64 | round u32 | block hash     a proposed block, raw
//! tree_nodes       version u64 | path                      node of the state tree, raw
//! tree_stale       height u64                              keys of nodes that nothing later needs, raw
//! equivocations    address                                 Equivocations
//! validator_links  height u64                              Link
//! block_events     height u64                              BlockEvents
//! block_fees       height u64                              BlockFees
//! fee_floors       height u64                              baseFeeFloor from that block on
//! fork_votes       voter's address                         CastForkVote
//! fixed_forks      name of a fork, text                    FixedFork
//! ```
//!
//! A *raw* value has no version byte and no frame. `bodies` holds the transactions of a block as
//! they stand in its binary form ([`types::Transaction::encode`]), cut at transaction boundaries
//! into segments of about 64 KB: a segment compresses far better than single transactions, and one
//! transaction costs one segment to read.
//!
//! `tx_index` keeps half of each hash. Two transactions with the same half take 2^64 work to make
//! and would only hide one another from look-ups by hash, which compare the whole hash.

use serde::{Deserialize, Serialize};
use state::forks::{CastForkVote, FixedForks};
use state::table::{Key, Table, TableId};
use state::tables;
use types::{Address, BlockEvents, BlockFees, Hash, Signature, TxLocation};

use super::tree::Proof;

/// Single values by name.
pub(crate) const META: TableId = TableId::plain(64, "meta");
/// Certificates by height.
pub(crate) const COMMITS: TableId = TableId::plain(66, "commits");
/// Segments of blocks.
pub(crate) const BODIES: TableId = TableId::plain(68, "bodies");
/// Proposed blocks of the height that is being decided.
pub(crate) const UNDECIDED: TableId = TableId::plain(73, "undecided");
/// Nodes of the state tree.
pub(crate) const TREE_NODES: TableId = TableId::plain(74, "tree_nodes");
/// Nodes that became stale, by the height that made them so.
pub(crate) const TREE_STALE: TableId = TableId::plain(75, "tree_stale");

/// A header as it is kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct HeaderRow {
    /// SHA-256 of the payload.
    pub(crate) hash: Hash,
    /// [`types::Header::payload`].
    pub(crate) payload: String,
}

/// Headers by height.
#[derive(Debug)]
pub(crate) struct Headers;
impl Table for Headers {
    const ID: TableId = TableId::plain(65, "headers");
    type Key = u64;
    type Value = HeaderRow;
}

/// Heights by block hash.
#[derive(Debug)]
pub(crate) struct BlockIds;
impl Table for BlockIds {
    const ID: TableId = TableId::plain(67, "block_ids");
    type Key = Hash;
    type Value = u64;
}

/// The half of a transaction's hash that is the key of its index row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct TxKey([u8; 16]);

impl TxKey {
    pub(crate) fn of(hash: &Hash) -> Self {
        let (half, _) = hash.as_bytes().split_first_chunk().expect("16 is less than 32");
        Self(*half)
    }
}

impl Key for TxKey {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (half, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(Self(*half))
    }
}

/// Where transactions are.
#[derive(Debug)]
pub(crate) struct TxIndex;
impl Table for TxIndex {
    const ID: TableId = TableId::plain(69, "tx_index");
    type Key = TxKey;
    type Value = TxLocation;
}

/// Which transactions of a block concern an account: it sent them, a TRANSFER names it, or an
/// AGENT_FINISH settles its run. Ascending positions.
#[derive(Debug)]
pub(crate) struct AccountHistory;
impl Table for AccountHistory {
    const ID: TableId = TableId::plain(70, "account_history");
    type Key = (Address, u64);
    type Value = Vec<u32>;
}

/// What the ends of blocks did, as programs before 0.3 wrote it. RocksDB opens a database only with all
/// of its tables; nobody reads or writes this one.
pub(crate) const SWEEPS: TableId = TableId::plain(71, "sweeps");

/// What a block did. Blocks that a program before 0.3 committed have no row.
#[derive(Debug)]
pub(crate) struct EventRows;
impl Table for EventRows {
    const ID: TableId = TableId::plain(78, "block_events");
    type Key = u64;
    type Value = BlockEvents;
}

/// What the places in a block cost: a copy of what its events say, which costs little to read. Blocks
/// before fork v7 have no row.
#[derive(Debug)]
pub(crate) struct FeeTotals;
impl Table for FeeTotals {
    const ID: TableId = TableId::plain(79, "block_fees");
    type Key = u64;
    type Value = BlockFees;
}

/// The lowest base fee, in micro-OMBRA per KiB, from a block on until the next row: the first block of fork v7,
/// and each block that touches the parameter, have a row. A database that began with a snapshot has a row at
/// height 0 for what held then.
#[derive(Debug)]
pub(crate) struct FeeFloors;
impl Table for FeeFloors {
    const ID: TableId = TableId::plain(80, "fee_floors");
    type Key = u64;
    type Value = u64;
}

/// How a validator has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ValidatorStats {
    /// Blocks of the chain that it proposed.
    pub proposed: u64,
    /// Rounds of decided heights in which it was to propose and nothing was decided.
    pub missed: u64,
}

/// Figures of validators.
#[derive(Debug)]
pub(crate) struct ValidatorFigures;
impl Table for ValidatorFigures {
    const ID: TableId = TableId::plain(72, "validator_stats");
    type Key = Address;
    type Value = ValidatorStats;
}

/// One of two messages that contradict each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SignedChoice {
    /// The block that was chosen; none for nil.
    pub block_hash: Option<Hash>,
    /// A proposal's valid round; −1 for none, and for votes.
    pub valid_round: i64,
    /// The validator's signature over the message (docs/consensus.md section 2).
    pub signature: Signature,
}

/// Two signed messages of one validator of which an honest one sends at most one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Equivocation {
    /// The height that was being decided.
    pub height: u64,
    /// The round.
    pub round: u32,
    /// 0 for a proposal, 1 for a prevote, 2 for a precommit.
    pub kind: u8,
    /// One message.
    pub first: SignedChoice,
    /// The other.
    pub second: SignedChoice,
}

impl Equivocation {
    /// The kind of two proposals.
    pub const PROPOSAL: u8 = 0;
    /// The kind of two prevotes.
    pub const PREVOTE: u8 = 1;
    /// The kind of two precommits.
    pub const PRECOMMIT: u8 = 2;

    /// What was sent twice, as a word: `proposal`, `prevote` or `precommit`.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self.kind {
            Self::PROPOSAL => "proposal",
            Self::PREVOTE => "prevote",
            _ => "precommit",
        }
    }
}

/// What this node has seen of a validator that contradicted itself.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Equivocations {
    /// Pairs seen so far.
    pub count: u64,
    /// The last of them, oldest first, at most [`Equivocations::KEPT_MAX`].
    pub last: Vec<Equivocation>,
}

impl Equivocations {
    /// How many pairs are kept of one validator: one proves enough.
    pub const KEPT_MAX: usize = 16;

    /// Counts and keeps a pair, unless it is kept already.
    pub(crate) fn add(&mut self, pair: Equivocation) {
        if self.last.contains(&pair) {
            return;
        }
        self.count = self.count.saturating_add(1);
        if self.last.len() >= Self::KEPT_MAX {
            self.last.remove(0);
        }
        self.last.push(pair);
    }
}

/// What this node has seen of validators that contradicted themselves. Nodes differ in it: it is no
/// part of the state.
#[derive(Debug)]
pub(crate) struct EquivocationRows;
impl Table for EquivocationRows {
    const ID: TableId = TableId::plain(76, "equivocations");
    type Key = Address;
    type Value = Equivocations;
}

/// What the header of a height proves about the validators of the next.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Link {
    /// [`types::Header::payload`] of the block after the one that decided the change.
    pub header: String,
    /// Its certificate.
    pub certificate: Vec<u8>,
    /// The stored bytes of the row `validators` in the state whose root the header carries.
    pub sets: Vec<u8>,
    /// Its proof.
    pub proof: Proof,
}

/// What headers prove about the validators that come next, by their heights. No row is deleted.
#[derive(Debug)]
pub(crate) struct ValidatorLinks;
impl Table for ValidatorLinks {
    const ID: TableId = TableId::plain(77, "validator_links");
    type Key = u64;
    type Value = Link;
}

/// Votes for later forks that count, by voter. At most one of each validator.
#[derive(Debug)]
pub(crate) struct ForkVotes;
impl Table for ForkVotes {
    const ID: TableId = TableId::plain(90, "fork_votes");
    type Key = Address;
    type Value = CastForkVote;
}

/// The tables of this file.
pub const OWN: [TableId; 19] = [
    META,
    Headers::ID,
    COMMITS,
    BlockIds::ID,
    BODIES,
    TxIndex::ID,
    AccountHistory::ID,
    SWEEPS,
    ValidatorFigures::ID,
    UNDECIDED,
    TREE_NODES,
    TREE_STALE,
    EquivocationRows::ID,
    ValidatorLinks::ID,
    EventRows::ID,
    FeeTotals::ID,
    FeeFloors::ID,
    ForkVotes::ID,
    FixedForks::ID,
];

/// Every table of the database.
pub fn all() -> impl Iterator<Item = TableId> {
    tables::ALL.into_iter().chain(OWN)
}

/// How a table is used, which decides how RocksDB keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// Looked up by whole keys that come in no order.
    Lookup,
    /// Read in stretches.
    Index,
    /// Rows come and go all the time: tombstones must not pile up.
    Queue,
    /// Appended in ascending order and read seldom: compressed well from the start.
    Log,
    /// Large values.
    Large,
}

/// Which tables are kept in which way.
mod shapes {
    use super::{
        AccountHistory, BODIES, BlockIds, COMMITS, EquivocationRows, EventRows, FeeFloors,
        FeeTotals, FixedForks, ForkVotes, Headers, META, OWN, SWEEPS, TREE_NODES, TREE_STALE,
        Table as _, TableId, TxIndex, UNDECIDED, ValidatorFigures, ValidatorLinks, tables,
    };
    use tables::{
        Accounts, AgentTexts, AgentVersions, Agents, AgentsByOwner, Assignments, BlobChunks,
        BlobPieces, BlobRemains, Blobs, Bonds, CallCandidates, CallMembers, CallQueue, Calls,
        CallsByAgent, CallsByMember, CallsByRequester, CallsByStatus, ConsensusKeys,
        ConversationTurns, Deadlines, Fees, Figures, FiguresOfSubmitters, ForkRows, MinerIds,
        Miners, OfferCounts, Offers, OffersByExecutor, ParamRows, RuleVotes, Runs,
        RunsByConversation, RunsByMiner, RunsByStatus, RunsBySubmitter, SettledMembers, Steps,
        Supplies, Turns, Unbondings, ValidatorHistory, ValidatorVotes, Validators,
    };

    pub(super) const LOOKUP: [TableId; 30] = [
        Accounts::ID,
        Supplies::ID,
        Runs::ID,
        Miners::ID,
        MinerIds::ID,
        Figures::ID,
        Blobs::ID,
        BlobPieces::ID,
        Turns::ID,
        BlockIds::ID,
        TxIndex::ID,
        ValidatorFigures::ID,
        Validators::ID,
        ForkRows::ID,
        ParamRows::ID,
        Fees::ID,
        Bonds::ID,
        FiguresOfSubmitters::ID,
        ConsensusKeys::ID,
        Agents::ID,
        AgentVersions::ID,
        Calls::ID,
        CallMembers::ID,
        SettledMembers::ID,
        Assignments::ID,
        OfferCounts::ID,
        EquivocationRows::ID,
        ForkVotes::ID,
        FixedForks::ID,
        TREE_NODES,
    ];
    pub(super) const INDEX: [TableId; 14] = [
        Steps::ID,
        ConversationTurns::ID,
        RunsBySubmitter::ID,
        RunsByMiner::ID,
        RunsByConversation::ID,
        AccountHistory::ID,
        ValidatorHistory::ID,
        Offers::ID,
        META,
        AgentsByOwner::ID,
        CallsByAgent::ID,
        CallsByRequester::ID,
        CallsByMember::ID,
        FeeFloors::ID,
    ];
    pub(super) const QUEUE: [TableId; 10] = [
        CallQueue::ID,
        CallsByStatus::ID,
        Deadlines::ID,
        RunsByStatus::ID,
        ValidatorVotes::ID,
        RuleVotes::ID,
        Unbondings::ID,
        OffersByExecutor::ID,
        TREE_STALE,
        BlobRemains::ID,
    ];
    pub(super) const LARGE: [TableId; 3] = [BlobChunks::ID, UNDECIDED, AgentTexts::ID];
    pub(super) const LOG: [TableId; 8] = [
        Headers::ID,
        COMMITS,
        BODIES,
        SWEEPS,
        ValidatorLinks::ID,
        EventRows::ID,
        FeeTotals::ID,
        CallCandidates::ID,
    ];
    // A table in no list does not compile.
    const COUNT: usize = LOOKUP.len() + INDEX.len() + QUEUE.len() + LARGE.len() + LOG.len();
    const _: () = assert!(COUNT == tables::ALL.len() + OWN.len(), "each table is in one list");
}

pub(crate) fn shape(table: TableId) -> Shape {
    use shapes::{INDEX, LARGE, LOOKUP, QUEUE};
    if LOOKUP.contains(&table) {
        Shape::Lookup
    } else if INDEX.contains(&table) {
        Shape::Index
    } else if QUEUE.contains(&table) {
        Shape::Queue
    } else if LARGE.contains(&table) {
        Shape::Large
    } else {
        Shape::Log
    }
}
