//! Calls of agents.

use types::call::{Call, CallMember, CallStatus};
use types::{Address, Hash, TxLocation};

use super::{PortFault, Slice};

/// A call with its members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallEntry {
    /// The call.
    pub call: Call,
    /// The members of its rounds, in the order in which they were drawn.
    pub members: Vec<(Address, CallMember)>,
}

/// Which calls; conditions that are given must all hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CallFilter {
    /// Of this agent.
    pub agent_id: Option<Hash>,
    /// Who asked.
    pub requester: Option<Address>,
    /// Who was drawn, for either round.
    pub member: Option<Address>,
    /// The status now.
    pub status: Option<CallStatus>,
}

/// Calls of agents.
pub trait Calls: Send + Sync {
    /// A call with its members.
    ///
    /// # Errors
    /// [`PortFault`].
    fn call(&self, id: &Hash) -> Result<Option<CallEntry>, PortFault>;

    /// The call's record alone.
    ///
    /// # Errors
    /// [`PortFault`].
    fn record(&self, id: &Hash) -> Result<Option<Call>, PortFault>;

    /// Calls that fit the filter, newest first, with requests before `before`. A filter with several
    /// conditions may have to look at many calls: bound it and answer short.
    ///
    /// # Errors
    /// [`PortFault`].
    fn list(
        &self,
        filter: &CallFilter,
        before: Option<TxLocation>,
        limit: usize,
    ) -> Result<Slice<Call, TxLocation>, PortFault>;
}
