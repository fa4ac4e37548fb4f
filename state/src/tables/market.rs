//! Tables of the agent market, from fork v8 on.

use types::agent::ExecutorId;
use types::call::{Call, CallMember, CallStatus, Candidate};
use types::{Address, Agent, AgentVersion, Amount, Hash, Offer};

use crate::table::{Table, TableId};

/// Agents of the market, from v8 on. No row is deleted.
#[derive(Debug)]
pub struct Agents;
impl Table for Agents {
    const ID: TableId = TableId::authenticated(30, "agents", b'g');
    type Key = Hash;
    type Value = Agent;
}

/// Versions of agents, by agent and version. No row is changed or deleted.
#[derive(Debug)]
pub struct AgentVersions;
impl Table for AgentVersions {
    const ID: TableId = TableId::authenticated(31, "agent_versions", b'n');
    type Key = (Hash, String);
    type Value = AgentVersion;
}

/// The metadata of versions of agents as their owners wrote it. Its hash is in the version's record.
#[derive(Debug)]
pub struct AgentTexts;
impl Table for AgentTexts {
    const ID: TableId = TableId::plain(32, "agent_texts");
    type Key = (Hash, String);
    type Value = String;
}

/// Agents by their owners.
#[derive(Debug)]
pub struct AgentsByOwner;
impl Table for AgentsByOwner {
    const ID: TableId = TableId::plain(33, "agents_by_owner");
    type Key = (Address, Hash);
    type Value = ();
}

/// Offers of miners, by miner and executor.
#[derive(Debug)]
pub struct Offers;
impl Table for Offers {
    const ID: TableId = TableId::authenticated(34, "offers", b'x');
    type Key = (Address, ExecutorId);
    type Value = Offer;
}

/// The offers for each executor, those of the largest bonds first, ties by lower address.
#[derive(Debug)]
pub struct OffersByExecutor;
impl Table for OffersByExecutor {
    const ID: TableId = TableId::plain(35, "offers_by_executor");
    type Key = (ExecutorId, u64, Address);
    type Value = Offer;
}

impl OffersByExecutor {
    /// The second part of the key: the larger the bond, the smaller.
    #[must_use]
    pub const fn place(bond: Amount) -> u64 {
        !bond.get()
    }

    /// The bond of a row.
    #[must_use]
    pub const fn bond(place: u64) -> Amount {
        Amount::new(!place)
    }
}

/// At how many calls miners work, by miner and executor: as members of rounds that are not decided.
#[derive(Debug)]
pub struct Assignments;
impl Table for Assignments {
    const ID: TableId = TableId::authenticated(36, "assignments", b'y');
    type Key = (Address, ExecutorId);
    type Value = u32;
}

/// How many offers a miner has.
#[derive(Debug)]
pub struct OfferCounts;
impl Table for OfferCounts {
    const ID: TableId = TableId::plain(37, "offer_counts");
    type Key = Address;
    type Value = u32;
}

/// Calls by id. No row is deleted.
#[derive(Debug)]
pub struct Calls;
impl Table for Calls {
    const ID: TableId = TableId::authenticated(38, "calls", b'c');
    type Key = Hash;
    type Value = Call;
}

/// Members of calls that are not settled, by call and miner.
#[derive(Debug)]
pub struct CallMembers;
impl Table for CallMembers {
    const ID: TableId = TableId::authenticated(39, "call_members", b'z');
    type Key = (Hash, Address);
    type Value = CallMember;
}

/// Members of settled calls, by call and miner: the call's `members_digest` is of them. No row is deleted.
#[derive(Debug)]
pub struct SettledMembers;
impl Table for SettledMembers {
    const ID: TableId = TableId::plain(40, "settled_members");
    type Key = (Hash, Address);
    type Value = CallMember;
}

/// Calls that wait for an election, by the place of their AGENT_CALL or CALL_APPEAL.
#[derive(Debug)]
pub struct CallQueue;
impl Table for CallQueue {
    const ID: TableId = TableId::plain(41, "call_queue");
    type Key = (u64, u32);
    type Value = Hash;
}

/// Calls by where they are in their life, in the order of their requests. Of settled calls no row is
/// deleted.
#[derive(Debug)]
pub struct CallsByStatus;
impl Table for CallsByStatus {
    const ID: TableId = TableId::plain(42, "calls_by_status");
    type Key = (u8, u64, u32);
    type Value = Hash;
}

impl CallsByStatus {
    /// The first part of the key is at least this for settled calls.
    pub const SETTLED: u8 = 8;

    /// The first part of the key of calls that have this status and are not settled.
    #[must_use]
    pub const fn open(status: CallStatus) -> u8 {
        match status {
            CallStatus::Electing => 0,
            CallStatus::Committing => 1,
            CallStatus::Revealing => 2,
            CallStatus::Success => 3,
            CallStatus::Failed => 4,
            CallStatus::TimedOut => 5,
            CallStatus::Unassigned => 6,
        }
    }

    /// The first part of the key of settled calls with this status.
    #[must_use]
    pub const fn settled(status: CallStatus) -> u8 {
        Self::SETTLED.saturating_add(Self::open(status))
    }

    /// The key of a call.
    #[must_use]
    pub const fn key(call: &Call) -> (u8, u64, u32) {
        let place =
            if call.is_settled() { Self::settled(call.status) } else { Self::open(call.status) };
        (place, call.request.height, call.request.position)
    }
}

/// Calls by agent, in the order of their requests. No row is deleted.
#[derive(Debug)]
pub struct CallsByAgent;
impl Table for CallsByAgent {
    const ID: TableId = TableId::plain(43, "calls_by_agent");
    type Key = (Hash, u64, u32);
    type Value = Hash;
}

/// Calls by requester, in the order of their requests. No row is deleted.
#[derive(Debug)]
pub struct CallsByRequester;
impl Table for CallsByRequester {
    const ID: TableId = TableId::plain(44, "calls_by_requester");
    type Key = (Address, u64, u32);
    type Value = Hash;
}

/// From whom the members of calls were drawn, in the order of addresses: by the place of the AGENT_CALL and
/// the round. No row is deleted.
#[derive(Debug)]
pub struct CallCandidates;
impl Table for CallCandidates {
    const ID: TableId = TableId::plain(46, "call_candidates");
    type Key = (u64, u32, u8);
    type Value = Vec<Candidate>;
}

impl CallCandidates {
    /// The key of a round of a call.
    #[must_use]
    pub const fn key(call: &Call, round: u8) -> (u64, u32, u8) {
        (call.request.height, call.request.position, round)
    }
}

/// Calls by everybody who was ever drawn for them, in the order of their requests. No row is deleted.
#[derive(Debug)]
pub struct CallsByMember;
impl Table for CallsByMember {
    const ID: TableId = TableId::plain(45, "calls_by_member");
    type Key = (Address, u64, u32);
    type Value = Hash;
}
