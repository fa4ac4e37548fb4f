//! AGENT_REFUSE: the submitter of a run refuses the reward that is held for the miner
//! (docs/protocol.md section 5.16).

use super::declare::declare;
use super::kind::{Kind, Subject};
use crate::Hash;

declare! {
    /// Refuses the reward that is held for the miner of one of the sender's runs. The reward is
    /// burned.
    kind AgentRefuse = "AGENT_REFUSE", section "5.16", fork V7 {
        required {
            /// The id of the run.
            agent_run_id "agentRunId": Hash, Hash;
        }
        optional {}
    }
}

impl Kind for AgentRefuse {
    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Run(self.agent_run_id))
    }
}
