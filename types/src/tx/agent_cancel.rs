//! AGENT_CANCEL: the submitter takes a pending run back (docs/protocol.md section 5.6).

use super::declare::declare;
use super::{Kind, Subject};
use crate::{Address, Hash};

declare! {
    /// Takes back a run that nobody has claimed.
    kind AgentCancel = "AGENT_CANCEL", section "5.6", fork V6 {
        required {
            /// The run.
            agent_run_id "agentRunId": Hash, Hash;
        }
        optional {}
    }
}

impl Kind for AgentCancel {
    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Run(self.agent_run_id))
    }

    fn payee(&self, sender: Address) -> Option<Address> {
        Some(sender)
    }
}
