//! Calls of agents.

use state::error::StorageError;
use state::market::calls;
use state::table::Key;
use state::tables::{Calls, CallsByAgent, CallsByMember, CallsByRequester, CallsByStatus};
use types::call::{Call, CallMember, CallStatus};
use types::{Address, Hash, TxLocation};

use super::walk::{self, Bounds, List, Walked};
use crate::snapshot::Snapshot;

/// How many calls and rows of indexes one page of a list looks at, at most, but for one round over its
/// lists.
pub const CALL_ROWS_MAX: usize = 200;

const MISSING: StorageError = StorageError::Inconsistent { what: "an indexed call is missing" };

/// A call with its members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallDetail {
    /// The call.
    pub call: Call,
    /// The members of its rounds in the order in which they were drawn. There are none of a call that
    /// was settled before the snapshot with which the database began.
    pub members: Vec<(Address, CallMember)>,
}

/// Which calls a list has; all conditions must hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CallFilter {
    /// Only calls of this agent.
    pub agent_id: Option<Hash>,
    /// Only calls that this account paid.
    pub requester: Option<Address>,
    /// Only calls that this account was ever drawn for.
    pub member: Option<Address>,
    /// Only calls in this status now.
    pub status: Option<CallStatus>,
}

/// A page of calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallPage {
    /// The calls, newest first.
    pub calls: Vec<Call>,
    /// Where to go on; none when there is nothing more. A page can be short, even empty, and have a mark.
    pub next: Option<TxLocation>,
}

impl CallFilter {
    /// Whether the record fits. Who was a member is not in it.
    fn accepts(&self, call: &Call) -> bool {
        let Self { agent_id, requester, member: _, status } = *self;
        agent_id.is_none_or(|id| call.agent_id == id)
            && requester.is_none_or(|requester| call.requester == requester)
            && status.is_none_or(|status| call.status == status)
    }
}

impl Snapshot<'_> {
    /// A call.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or the row does not decode.
    pub fn call(&self, id: &Hash) -> Result<Option<Call>, StorageError> {
        self.get::<Calls>(id)
    }

    /// A call with its members.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a row does not decode.
    pub fn call_detail(&self, id: &Hash) -> Result<Option<CallDetail>, StorageError> {
        let Some(call) = self.call(id)? else { return Ok(None) };
        let members = if call.is_settled() {
            calls::settled_members(self, id)?
        } else {
            calls::members(self, id)?
        };
        Ok(Some(CallDetail { call, members }))
    }

    /// Calls that meet a filter, newest first: those requested before `before`, at most `limit`. The
    /// indexes of several conditions are walked side by side; a page looks at [`CALL_ROWS_MAX`] rows.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a row does not decode.
    pub fn calls(
        &self,
        filter: &CallFilter,
        before: Option<TxLocation>,
        limit: usize,
    ) -> Result<CallPage, StorageError> {
        if limit == 0 {
            return Ok(CallPage { calls: Vec::new(), next: None });
        }
        let CallFilter { agent_id, requester, member, status } = *filter;
        let mut lists = Vec::new();
        if let Some(id) = agent_id {
            lists.push(self.list::<CallsByAgent>(&id.to_bytes(), before)?);
        }
        if let Some(requester) = requester {
            lists.push(self.list::<CallsByRequester>(&requester.to_bytes(), before)?);
        }
        if let Some(member) = member {
            lists.push(self.list::<CallsByMember>(&member.to_bytes(), before)?);
        }
        if let Some(status) = status {
            lists.push(List::joined(self.calls_of_status(status, before)?));
        }
        let bounds = Bounds { limit, rows_max: CALL_ROWS_MAX };
        let take = |id: Hash| -> Result<Option<Call>, StorageError> {
            let call = self.call(&id)?.ok_or(MISSING)?;
            Ok(Some(call).filter(|call| filter.accepts(call)))
        };
        let Walked { items: calls, next } = if lists.is_empty() {
            for status in CallStatus::ALL {
                lists.extend(self.calls_of_status(status, before)?);
            }
            walk::in_any(lists, bounds, take)?
        } else {
            walk::in_all(lists, bounds, take)?
        };
        Ok(CallPage { calls, next })
    }

    /// Walks over the calls of a status, those that are settled and those that are not.
    fn calls_of_status(
        &self,
        status: CallStatus,
        before: Option<TxLocation>,
    ) -> Result<Vec<List<'_>>, StorageError> {
        let open = CallsByStatus::open(status);
        let open = match &self.beside {
            Some(beside) => self.kept::<CallsByStatus>(beside.open_calls, open, before)?,
            None => self.list::<CallsByStatus>(&[open], before)?,
        };
        let settled = self.list::<CallsByStatus>(&[CallsByStatus::settled(status)], before)?;
        Ok(vec![open, settled])
    }
}
