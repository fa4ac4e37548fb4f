//! AGENT_REGISTER: publish an agent, or a new version of one (docs/protocol.md section 5.18).

use super::declare::declare;
use super::kind::Kind;
use super::spec::TextLimit;
use crate::Hash;
use crate::agent::METADATA_BYTES_MAX;

/// At most 65,536 bytes. The state checks that the text is the metadata of an agent.
const METADATA: TextLimit = TextLimit::Bytes { min: 0, max: METADATA_BYTES_MAX };

declare! {
    /// Publishes an agent, or a new version of one.
    kind AgentRegister = "AGENT_REGISTER", section "5.18", fork V8 {
        required {
            /// The agent's id, computed from the sender and the name in the metadata.
            agent_id "agentId": Hash, Hash, filled Computed;
            /// A JSON text that describes the agent and how to run it, at most 65,536 bytes.
            metadata "metadata": String, Text(METADATA);
        }
        optional {}
    }
}

impl Kind for AgentRegister {}
