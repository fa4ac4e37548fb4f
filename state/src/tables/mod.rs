//! The tables that execution reads and writes, one per row of this picture. Blocks, their indexes
//! and the state tree's nodes are in the crate `store`.
//!
//! ```text
//! table                tag  key                                          value
//! accounts             a    address                                      Account
//! runs                 r    run id                                       Run
//! steps                     run id | step index u64                      Step
//! miners               m    address                                      Miner
//! miner_ids                 miner id                                     address
//! miner_figures             address                                      MinerFigures
//! blobs                b    blob id (text)                               Blob
//! blob_chunks               chunk index u32 | blob id (text)             bytes
//! supply               s    (one row)                                    Supply
//! deadlines                 deadline u64 | 0 run, 1 blob, 2 bond, 3 call | id    (nothing)
//! turns                     transaction hash                             TurnPlace
//! conversation_turns        conversation id | height u64 | position u32  transaction hash
//! runs_by_status            status u8 | height u64 | position u32        run id
//! runs_by_submitter         address | height u64 | position u32          run id
//! runs_by_miner             address | height u64 | position u32          run id
//! runs_by_conversation      conversation id | height u64 | position u32  run id
//! validators           v    (one row)                                    ValidatorSets
//! validator_votes      w    voter's address | candidate's key            OpenVote
//! validator_history         first height u64                             set that decides from there
//! blob_pieces               blob id (text)                               Pieces
//! blob_remains              blob id (text)                               Pieces
//! forks                f    name of a fork (text)                        FixedFork
//! params               p    name of a parameter (text)                   ParamRow
//! fees                 e    (one row)                                    FeeRow
//! rule_votes           o    voter's address | subject (text)             RuleVote
//! bonds                d    miner's address                              Bond
//! unbonding            u    miner's address | due time u64               amount
//! submitter_figures         address                                      SubmitterFigures
//! consensus_keys       k    a validator's key                            KeyStanding
//! agents               g    agent id                                     Agent
//! agent_versions       n    agent id | version (text)                    AgentVersion
//! agent_texts               agent id | version (text)                    the metadata
//! agents_by_owner           owner's address | agent id                   (nothing)
//! offers               x    miner's address | executor                   Offer
//! offers_by_executor        executor | 2^64 - 1 - bond u64 | address     Offer
//! assignments          y    miner's address | executor                   open ones u32
//! calls                c    call id                                      Call
//! call_members         z    call id | member's address                   CallMember
//! settled_members           call id | member's address                   CallMember
//! call_queue                height u64 | position u32                    call id
//! offer_counts              miner's address                              offers u32
//! calls_by_status           where it is u8 | height u64 | position u32   call id
//! calls_by_agent            agent id | height u64 | position u32         call id
//! calls_by_requester        address | height u64 | position u32          call id
//! calls_by_member           address | height u64 | position u32          call id
//! call_candidates           height u64 | position u32 | round u8         candidates of the draw
//! ```
//!
//! The `height | position` of a run is that of its AGENT_REQUEST, of a call that of its AGENT_CALL, in
//! `call_queue` of what it waits for. An executor is a byte for its form and 32 bytes.

mod market;
mod rules;

use serde::{Deserialize, Serialize};
use types::codec::DecodeError;
use types::{
    Account, Address, Amount, Blob, Bond, Hash, KeyStanding, Miner, MinerFigures, OpenVote,
    PublicKey, Run, RunStatus, SetMember, Step, SubmitterFigures, Supply, TxLocation,
    ValidatorSets,
};

use crate::pieces::Pieces;
use crate::table::{Table, TableId, decode_shorter};

pub use market::{
    AgentTexts, AgentVersions, Agents, AgentsByOwner, Assignments, CallCandidates, CallMembers,
    CallQueue, Calls, CallsByAgent, CallsByMember, CallsByRequester, CallsByStatus, OfferCounts,
    Offers, OffersByExecutor, SettledMembers,
};
pub use rules::{
    FeeRow, Fees, FixedFork, FixedForks, ForkRows, NextValue, ParamRow, ParamRows, RuleVote,
    RuleVotes,
};

/// Balance and nonce by address.
#[derive(Debug)]
pub struct Accounts;
impl Table for Accounts {
    const ID: TableId = TableId::authenticated(0, "accounts", b'a');
    type Key = Address;
    type Value = Account;
}

/// Agent runs by id.
#[derive(Debug)]
pub struct Runs;
impl Table for Runs {
    const ID: TableId = TableId::authenticated(1, "runs", b'r');
    const VERSION: u8 = 3;
    type Key = Hash;
    type Value = Run;

    fn lower_version(run: &Run) -> Option<(u8, usize)> {
        let Run { protection, locked_bond, ended_by, is_refused, agent, .. } = run;
        let has_any =
            protection.is_some() || locked_bond.is_some() || ended_by.is_some() || *is_refused;
        match (agent, has_any) {
            (Some(_), _) => None,
            (None, true) => Some((2, RUN_OF_V8)),
            (None, false) => Some((1, RUN_OF_V7 + RUN_OF_V8)),
        }
    }

    fn decode_earlier(version: u8, bytes: &[u8]) -> Option<Result<Run, DecodeError>> {
        let absent = match version {
            1 => RUN_OF_V7 + RUN_OF_V8,
            2 => RUN_OF_V8,
            _ => return None,
        };
        Some(decode_shorter::<Self>(bytes, absent))
    }
}

/// Three absent options and a false switch.
const RUN_OF_V7: usize = 4;
/// An absent option.
const RUN_OF_V8: usize = 1;

/// Recorded steps by run and step index.
#[derive(Debug)]
pub struct Steps;
impl Table for Steps {
    const ID: TableId = TableId::plain(2, "steps");
    type Key = (Hash, u64);
    type Value = Step;
}

/// The miner directory by address.
#[derive(Debug)]
pub struct Miners;
impl Table for Miners {
    const ID: TableId = TableId::authenticated(3, "miners", b'm');
    type Key = Address;
    type Value = Miner;
}

/// The account of a miner id.
#[derive(Debug)]
pub struct MinerIds;
impl Table for MinerIds {
    const ID: TableId = TableId::plain(4, "miner_ids");
    type Key = Hash;
    type Value = Address;
}

/// What a miner has done, registered or not.
#[derive(Debug)]
pub struct Figures;
impl Table for Figures {
    const ID: TableId = TableId::plain(5, "miner_figures");
    const VERSION: u8 = 2;
    type Key = Address;
    type Value = MinerFigures;

    fn lower_version(figures: &MinerFigures) -> Option<(u8, usize)> {
        (figures.refused == 0).then_some((1, FIGURES_OF_V7))
    }

    fn decode_earlier(version: u8, bytes: &[u8]) -> Option<Result<MinerFigures, DecodeError>> {
        (version == 1).then(|| decode_shorter::<Self>(bytes, FIGURES_OF_V7))
    }
}

/// One count.
const FIGURES_OF_V7: usize = 8;

/// Blobs by id.
#[derive(Debug)]
pub struct Blobs;
impl Table for Blobs {
    const ID: TableId = TableId::authenticated(6, "blobs", b'b');
    type Key = String;
    type Value = Blob;
}

/// The bytes of blobs, and of dropped ones until [`BlobRemains`] is worked off: a row counts only if
/// the blob's record or [`BlobPieces`] says that the chunk is there. The chunk index stands first because a text must be the last part of a key.
#[derive(Debug)]
pub struct BlobChunks;
impl Table for BlobChunks {
    const ID: TableId = TableId::plain(7, "blob_chunks");
    type Key = (u32, String);
    type Value = Vec<u8>;
}

/// The money of the chain: one row.
#[derive(Debug)]
pub struct Supplies;
impl Table for Supplies {
    const ID: TableId = TableId::authenticated(8, "supply", b's');
    const VERSION: u8 = 2;
    type Key = ();
    type Value = Supply;

    fn lower_version(supply: &Supply) -> Option<(u8, usize)> {
        let has_any = !supply.bonded.is_zero() || !supply.unbonding.is_zero();
        (!has_any).then_some((1, SUPPLY_OF_V7))
    }

    fn decode_earlier(version: u8, bytes: &[u8]) -> Option<Result<Supply, DecodeError>> {
        (version == 1).then(|| decode_shorter::<Self>(bytes, SUPPLY_OF_V7))
    }
}

/// Two amounts.
const SUPPLY_OF_V7: usize = 16;

/// What the sweep has to look at, in its order.
#[derive(Debug)]
pub struct Deadlines;
impl Table for Deadlines {
    const ID: TableId = TableId::plain(9, "deadlines");
    type Key = (u64, u8, String);
    type Value = ();
}

impl Deadlines {
    /// The kind of a run's deadline; its id is the 64 characters of the run id.
    pub const RUN: u8 = 0;
    /// The kind of a blob's deadline; its id is the blob id.
    pub const BLOB: u8 = 1;
    /// The kind of the deadline at which money is paid out that was taken out of a bond; its id is the
    /// 40 characters of the miner's address.
    pub const UNBONDING: u8 = 2;
    /// The kind of the end of a phase of a call; its id is the first block that may end it, as 16
    /// hexadecimal digits, and the 64 characters of the call id.
    pub const CALL: u8 = 3;
}

/// Where a turn is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TurnPlace {
    /// The conversation that the turn belongs to.
    pub conversation_id: Hash,
    /// The CHAT_TURN.
    pub tx: TxLocation,
}

/// Turns by their transaction's hash.
#[derive(Debug)]
pub struct Turns;
impl Table for Turns {
    const ID: TableId = TableId::plain(10, "turns");
    type Key = Hash;
    type Value = TurnPlace;
}

/// Turns of a conversation in chain order.
#[derive(Debug)]
pub struct ConversationTurns;
impl Table for ConversationTurns {
    const ID: TableId = TableId::plain(11, "conversation_turns");
    type Key = (Hash, u64, u32);
    type Value = Hash;
}

/// Runs by status, in the order of their requests. The status is its place in
/// [`types::RunStatus::ALL`].
#[derive(Debug)]
pub struct RunsByStatus;
impl Table for RunsByStatus {
    const ID: TableId = TableId::plain(12, "runs_by_status");
    type Key = (u8, u64, u32);
    type Value = Hash;
}

impl RunsByStatus {
    /// The first part of the key: the status's place in [`RunStatus::ALL`].
    #[must_use]
    pub const fn place(status: RunStatus) -> u8 {
        match status {
            RunStatus::Pending => 0,
            RunStatus::Claimed => 1,
            RunStatus::Running => 2,
            RunStatus::Completed => 3,
            RunStatus::Failed => 4,
            RunStatus::Timeout => 5,
            RunStatus::InsufficientFunds => 6,
            RunStatus::Cancelled => 7,
        }
    }
}

/// Runs by submitter, in the order of their requests.
#[derive(Debug)]
pub struct RunsBySubmitter;
impl Table for RunsBySubmitter {
    const ID: TableId = TableId::plain(13, "runs_by_submitter");
    type Key = (Address, u64, u32);
    type Value = Hash;
}

/// Runs by every miner that ever claimed them, in the order of their requests.
#[derive(Debug)]
pub struct RunsByMiner;
impl Table for RunsByMiner {
    const ID: TableId = TableId::plain(14, "runs_by_miner");
    type Key = (Address, u64, u32);
    type Value = Hash;
}

/// Runs by conversation, in the order of their requests.
#[derive(Debug)]
pub struct RunsByConversation;
impl Table for RunsByConversation {
    const ID: TableId = TableId::plain(15, "runs_by_conversation");
    type Key = (Hash, u64, u32);
    type Value = Hash;
}

/// Who decides the next blocks: one row, on chains that can change their validators.
#[derive(Debug)]
pub struct Validators;
impl Table for Validators {
    const ID: TableId = TableId::authenticated(16, "validators", b'v');
    type Key = ();
    type Value = ValidatorSets;
}

/// Votes for changes of the validator set that count, by voter and candidate.
#[derive(Debug)]
pub struct ValidatorVotes;
impl Table for ValidatorVotes {
    const ID: TableId = TableId::authenticated(17, "validator_votes", b'w');
    type Key = (Address, PublicKey);
    type Value = OpenVote;
}

/// Every set that the chain has had, by the first height that it decides. No row is deleted.
#[derive(Debug)]
pub struct ValidatorHistory;
impl Table for ValidatorHistory {
    const ID: TableId = TableId::plain(18, "validator_history");
    type Key = u64;
    type Value = Vec<SetMember>;
}

/// Which chunks are there, by blob: of those that have some chunks and not all. Of the others their
/// record says it.
#[derive(Debug)]
pub struct BlobPieces;
impl Table for BlobPieces {
    const ID: TableId = TableId::plain(20, "blob_pieces");
    type Key = String;
    type Value = Pieces;
}

/// Rows of [`BlobChunks`] that belong to no blob any more and are still to be deleted.
#[derive(Debug)]
pub struct BlobRemains;
impl Table for BlobRemains {
    const ID: TableId = TableId::plain(21, "blob_remains");
    type Key = String;
    type Value = Pieces;
}

/// What accounts have at stake as miners.
#[derive(Debug)]
pub struct Bonds;
impl Table for Bonds {
    const ID: TableId = TableId::authenticated(26, "bonds", b'd');
    type Key = Address;
    type Value = Bond;
}

/// What was taken out of bonds, by miner and the time at which it is paid out.
#[derive(Debug)]
pub struct Unbondings;
impl Table for Unbondings {
    const ID: TableId = TableId::authenticated(27, "unbonding", b'u');
    type Key = (Address, u64);
    type Value = Amount;
}

/// What submitters of runs have done.
#[derive(Debug)]
pub struct FiguresOfSubmitters;
impl Table for FiguresOfSubmitters {
    const ID: TableId = TableId::plain(28, "submitter_figures");
    type Key = Address;
    type Value = SubmitterFigures;
}

/// What the chain remembers of consensus keys, from v7 on: those that are punished never have power
/// again. No row is deleted.
#[derive(Debug)]
pub struct ConsensusKeys;
impl Table for ConsensusKeys {
    const ID: TableId = TableId::authenticated(29, "consensus_keys", b'k');
    type Key = PublicKey;
    type Value = KeyStanding;
}

/// Every table of these files.
pub const ALL: [TableId; 46] = [
    Accounts::ID,
    Runs::ID,
    Steps::ID,
    Miners::ID,
    MinerIds::ID,
    Figures::ID,
    Blobs::ID,
    BlobChunks::ID,
    Supplies::ID,
    Deadlines::ID,
    Turns::ID,
    ConversationTurns::ID,
    RunsByStatus::ID,
    RunsBySubmitter::ID,
    RunsByMiner::ID,
    RunsByConversation::ID,
    Validators::ID,
    ValidatorVotes::ID,
    ValidatorHistory::ID,
    BlobPieces::ID,
    BlobRemains::ID,
    ForkRows::ID,
    ParamRows::ID,
    Fees::ID,
    RuleVotes::ID,
    Bonds::ID,
    Unbondings::ID,
    FiguresOfSubmitters::ID,
    ConsensusKeys::ID,
    Agents::ID,
    AgentVersions::ID,
    AgentTexts::ID,
    AgentsByOwner::ID,
    Offers::ID,
    OffersByExecutor::ID,
    Assignments::ID,
    OfferCounts::ID,
    Calls::ID,
    CallMembers::ID,
    SettledMembers::ID,
    CallQueue::ID,
    CallsByStatus::ID,
    CallsByAgent::ID,
    CallsByRequester::ID,
    CallsByMember::ID,
    CallCandidates::ID,
];

/// The tables that a transaction's check reads: they alone decide whether it is accepted. None has
/// values whose size an owner chooses.
pub const READ_BY_CHECKS: [TableId; 18] = [
    Accounts::ID,
    Runs::ID,
    Miners::ID,
    Blobs::ID,
    BlobPieces::ID,
    Turns::ID,
    Validators::ID,
    ValidatorVotes::ID,
    ForkRows::ID,
    RuleVotes::ID,
    Bonds::ID,
    ConsensusKeys::ID,
    Agents::ID,
    AgentVersions::ID,
    Offers::ID,
    OfferCounts::ID,
    Calls::ID,
    CallMembers::ID,
];

/// The tables from which the rules of the next block follow ([`crate::rules::Rules::at`]), beside those
/// of genesis.
pub const READ_FOR_RULES: [TableId; 4] = [ForkRows::ID, ParamRows::ID, Fees::ID, FixedForks::ID];
