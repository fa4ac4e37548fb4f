//! Calls of agents.

use rpc::ports::{self, CallEntry, CallFilter, PortFault, Slice};
use types::call::Call;
use types::{Hash, TxLocation};

use super::early::ended_early;
use super::{Reads, fault};

impl ports::Calls for Reads {
    fn call(&self, id: &Hash) -> Result<Option<CallEntry>, PortFault> {
        let found = self.snapshot().call_detail(id).map_err(fault("reading a call"))?;
        Ok(found.map(|store::CallDetail { call, members }| CallEntry { call, members }))
    }

    fn record(&self, id: &Hash) -> Result<Option<Call>, PortFault> {
        self.snapshot().call(id).map_err(fault("reading a call"))
    }

    fn list(
        &self,
        filter: &CallFilter,
        before: Option<TxLocation>,
        limit: usize,
    ) -> Result<Slice<Call, TxLocation>, PortFault> {
        let CallFilter { agent_id, requester, member, status } = *filter;
        let filter = store::CallFilter { agent_id, requester, member, status };
        let snapshot = self.snapshot();
        let page = snapshot.calls(&filter, before, limit).map_err(fault("listing calls"))?;
        let store::CallPage { calls, next } = page;
        let slice = Slice { items: calls, next };
        if is_whole(&filter) {
            return Ok(slice);
        }
        ended_early(slice, snapshot.earliest(), |call| call.request)
    }
}

/// Whether a list has every call, even where the node began with a snapshot: who was a member of calls
/// that were settled before the snapshot is not here, but those without a decision were not settled.
fn is_whole(filter: &store::CallFilter) -> bool {
    filter.member.is_none() || filter.status.is_some_and(|status| !status.is_decided())
}

#[cfg(test)]
mod tests {
    //! Which lists a snapshot has the whole of.

    use types::Address;
    use types::call::CallStatus;

    use super::*;

    #[test]
    fn only_a_list_of_the_decided_calls_of_a_member_can_lack_calls_from_before_the_snapshot() {
        let any = store::CallFilter::default();
        let of = |member, status| is_whole(&store::CallFilter { member, status, ..any });
        let member = Some(Address::new([1; 20]));
        assert!(!of(member, None));
        assert!(of(None, None));
        let open = [CallStatus::Electing, CallStatus::Committing, CallStatus::Revealing];
        for status in CallStatus::ALL {
            assert_eq!(of(member, Some(status)), open.contains(&status), "{status:?}");
            assert!(of(None, Some(status)), "{status:?}");
        }
    }
}
