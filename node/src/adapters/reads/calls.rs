//! Calls of agents.

use rpc::ports::{self, CallEntry, CallFilter, PortFault, Slice};
use types::call::Call;
use types::{Hash, TxLocation};

use super::{Reads, ended_early, fault};

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
        // Who was a member of calls that were settled before the snapshot is not here.
        if member.is_some() { ended_early(slice, snapshot.earliest()) } else { Ok(slice) }
    }
}
