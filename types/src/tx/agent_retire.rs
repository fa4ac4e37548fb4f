//! AGENT_RETIRE: close an agent for calls (docs/protocol.md section 5.19).

use super::declare::declare;
use super::kind::Kind;
use crate::Hash;

declare! {
    /// Closes an agent for calls, until its owner registers a higher version.
    kind AgentRetire = "AGENT_RETIRE", section "5.19", fork V8 {
        required {
            /// The id of the agent.
            agent_id "agentId": Hash, Hash;
        }
        optional {}
    }
}

impl Kind for AgentRetire {}
