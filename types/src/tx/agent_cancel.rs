//! AGENT_CANCEL: the submitter cancels a pending run (docs/protocol.md section 5.6).

use super::declare::declare;
use super::kind::{Kind, Subject};
use crate::{Address, Hash};

declare! {
    /// Cancels a run that no miner has claimed and refunds the escrow.
    kind AgentCancel = "AGENT_CANCEL", section "5.6", fork V6 {
        required {
            /// The id of the run.
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
