//! AGENT_CANCEL: the submitter takes a pending run back (docs/protocol.md section 5.6).

use super::fields::Fields;
use super::{Kind, StaticView, Subject};
use crate::forks::Fork;
use crate::json::ObjectWriter;
use crate::{Address, Hash, Rejection};

/// The fields of AGENT_CANCEL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgentCancel {
    /// The run.
    pub agent_run_id: Hash,
}

impl Kind for AgentCancel {
    const TYPE: &'static str = "AGENT_CANCEL";
    const FORK: Option<Fork> = Some(Fork::V6);

    fn read(fields: &Fields<'_, '_>) -> Result<Self, Rejection> {
        Ok(Self { agent_run_id: fields.hash("agentRunId")? })
    }

    fn write_required(&self, out: &mut ObjectWriter<'_>) {
        out.display("agentRunId", &self.agent_run_id);
    }

    fn check_static(&self, _: &StaticView<'_>) -> Result<(), Rejection> {
        Ok(())
    }

    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Run(self.agent_run_id))
    }

    fn payee(&self, sender: Address) -> Option<Address> {
        Some(sender)
    }
}
