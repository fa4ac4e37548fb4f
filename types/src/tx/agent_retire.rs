//! AGENT_RETIRE: let an agent take no more calls (docs/protocol.md section 5.19).

use super::Kind;
use super::declare::declare;
use crate::Hash;

declare! {
    /// Lets an agent take no more calls, until a higher version of it is registered.
    kind AgentRetire = "AGENT_RETIRE", section "5.19", fork V8 {
        required {
            /// The agent.
            agent_id "agentId": Hash, Hash;
        }
        optional {}
    }
}

impl Kind for AgentRetire {}
