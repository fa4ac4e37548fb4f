//! Calls of the market, agents and offers, as the miner needs them from a node.

use std::fmt::Debug;

use async_trait::async_trait;
use types::agent::ExecutorId;
use types::call::{Answer, CallLimits, CallStatus};
use types::{Address, Hash, Offer};

use super::ChainError;

/// A call as the chain has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallView {
    /// The call's id.
    pub id: Hash,
    /// The agent.
    pub agent: Hash,
    /// Its version.
    pub version: String,
    /// Who asked and pays.
    pub requester: Address,
    /// Where it is in its life.
    pub status: CallStatus,
    /// Whether all of its money has moved.
    pub is_settled: bool,
    /// Whether its members have to give the same answer. Where a threshold decides, each may give its own.
    pub is_compared: bool,
    /// What the work may take.
    pub limits: CallLimits,
    /// What a member gets at most, micro-OMBRA.
    pub budget_micro: u64,
    /// The selector and the arguments; none where the node did not read them.
    pub payload: Option<Vec<u8>>,
    /// SHA-256 of the payload.
    pub payload_hash: Hash,
    /// Block time at which the phase ends, milliseconds since 1970; none while no phase has a time.
    pub deadline_ms: Option<u64>,
    /// Its rounds.
    pub rounds: Vec<RoundView>,
}

/// A round of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundView {
    /// Whether it is decided.
    pub is_decided: bool,
    /// Its members.
    pub members: Vec<MemberView>,
}

/// A member of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberView {
    /// The miner.
    pub address: Address,
    /// What it committed to.
    pub commitment: Option<Hash>,
    /// What it revealed.
    pub revealed: Option<Answer>,
    /// Whether it gave the answer that stands; none before that is decided, and where no group decided.
    pub agreed: Option<bool>,
    /// What it got, micro-OMBRA.
    pub paid_micro: u64,
    /// What it lost of its bond, micro-OMBRA.
    pub penalty_micro: u64,
}

impl CallView {
    /// The round for which a miner was drawn.
    #[must_use]
    pub fn round_of(&self, miner: &Address) -> Option<u8> {
        let has = |round: &RoundView| round.members.iter().any(|it| it.address == *miner);
        self.rounds.iter().position(has).and_then(|round| u8::try_from(round).ok())
    }

    /// A round, and a miner as its member.
    #[must_use]
    pub fn member(&self, round: u8, miner: &Address) -> Option<(&RoundView, &MemberView)> {
        let round = self.rounds.get(usize::from(round))?;
        let member = round.members.iter().find(|it| it.address == *miner)?;
        Some((round, member))
    }

    /// Whether a round is the last one so far.
    #[must_use]
    pub fn is_last(&self, round: u8) -> bool {
        self.rounds.len() == usize::from(round).saturating_add(1)
    }
}

/// Calls, agents and offers, as the chain has them.
#[async_trait]
pub trait Calls: Debug + Send + Sync {
    /// The least bond with which offers count, micro-OMBRA; none while the chain has no market.
    async fn bond_micro_min(&self) -> Result<Option<u64>, ChainError>;
    /// The calls in their commit or reveal phase for which a miner was drawn.
    async fn assigned(&self, miner: &Address) -> Result<Vec<Hash>, ChainError>;
    /// The newest calls for which a miner was drawn, settled or not, newest first: at least so many, if
    /// there are.
    async fn drawn(&self, miner: &Address, count: usize) -> Result<Vec<Hash>, ChainError>;
    /// A call; none if there is no such call.
    async fn call(&self, id: &Hash) -> Result<Option<CallView>, ChainError>;
    /// The metadata of a version of an agent, whose hash is that of the chain's record; none if there
    /// is no such version.
    async fn metadata(&self, agent: &Hash, version: &str) -> Result<Option<String>, ChainError>;
    /// A finalised blob of at most `bytes_max`, whose hash is that of the chain's record; none if there
    /// is no such blob, or it is larger.
    async fn program(&self, blob: &str, bytes_max: usize) -> Result<Option<Vec<u8>>, ChainError>;
    /// What a miner offers.
    async fn offers(&self, miner: &Address) -> Result<Vec<(ExecutorId, Offer)>, ChainError>;
}

/// Tells of calls for which a miner was drawn, whenever something happens to them, without a gap from
/// the block after `height`.
#[async_trait]
pub trait CallWatch: Debug + Send + Sync {
    /// Begins to watch after the block `height`; what was watched before is dropped.
    async fn begin(&mut self, height: u64) -> Result<(), ChainError>;
    /// The next call to which something happened. An error means that [`CallWatch::begin`] is needed
    /// again.
    async fn next(&mut self) -> Result<Hash, ChainError>;
}
