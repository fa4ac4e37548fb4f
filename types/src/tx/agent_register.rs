//! AGENT_REGISTER: publish an agent, or a version of one (docs/protocol.md section 5.18).

use super::Kind;
use super::declare::declare;
use super::spec::TextLimit;
use crate::Hash;
use crate::agent::METADATA_BYTES_MAX;

/// At most 65,536 bytes. That it is the metadata of an agent is for the state to say.
const METADATA: TextLimit = TextLimit::Bytes { min: 0, max: METADATA_BYTES_MAX };

declare! {
    /// Publishes an agent, or a new version of one.
    kind AgentRegister = "AGENT_REGISTER", section "5.18", fork V8 {
        required {
            /// The agent's id, which follows from the sender and the name in the metadata.
            agent_id "agentId": Hash, Hash, filled Computed;
            /// What the agent is and how it is run: a JSON text of at most 65,536 bytes.
            metadata "metadata": String, Text(METADATA);
        }
        optional {}
    }
}

impl Kind for AgentRegister {}
