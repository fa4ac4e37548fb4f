//! What somebody wants to know before a call, and after its election.

use types::call::{CallLimits, Candidate, Consensus};
use types::{AgentVersion, Amount, Hash, Prices};

use super::PortFault;

/// What somebody means to ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallWish {
    /// How many members.
    pub committee_size: u8,
    /// Who decides.
    pub consensus: Consensus,
    /// Whether the decision can be appealed.
    pub is_appealable: bool,
    /// What the work may take.
    pub limits: CallLimits,
    /// What the call would pay; what enough miners accept if not given.
    pub prices: Option<Prices>,
}

/// Prices, and who works for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallEstimate {
    /// What the call would pay.
    pub prices: Prices,
    /// What one member can cost.
    pub budget: Amount,
    /// The least `maxFee`, conditional payments not counted.
    pub floor: Amount,
    /// The `maxFee` to give, conditional payments not counted.
    pub max_fee: Amount,
    /// What would be locked of each member's bond.
    pub lock: Amount,
    /// How many eligible miners the call needs.
    pub needed: usize,
    /// How many are eligible.
    pub eligible: usize,
    /// How many take part in the draw though their seat would stay empty.
    pub full: usize,
    /// How many offer for everything that the agent needs, at any prices.
    pub offering: usize,
}

/// An election of a call's members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeldElection {
    /// The block that held it.
    pub height: u64,
    /// Who took part in the draw, in the order of addresses.
    pub candidates: Vec<Candidate>,
}

/// The market as requesters see it.
pub trait Market: Send + Sync {
    /// What a call would have to pay; none if it would cost more than any amount of money. Reads what an
    /// election reads: the offers that count for each executor of the agent.
    ///
    /// # Errors
    /// [`PortFault`].
    fn estimate(
        &self,
        agent: &AgentVersion,
        wish: &CallWish,
    ) -> Result<Option<CallEstimate>, PortFault>;

    /// An election that was held. None if there is no such call, or no such round was drawn. Reads the
    /// events of the block with the election.
    ///
    /// # Errors
    /// [`PortFault`].
    fn election(&self, call_id: &Hash, round: u8) -> Result<Option<HeldElection>, PortFault>;
}
