//! MINER_REGISTER: an entry in the miner directory (docs/protocol.md section 5.9).

use super::Kind;
use super::declare::declare;
use super::spec::LABEL;
use super::value::NAME_BYTES_MAX;

declare! {
    /// Writes the sender's entry in the miner directory.
    kind MinerRegister = "MINER_REGISTER", section "5.9" {
        required {
            /// A name for people, at most 256 bytes.
            name "name": String, Text(LABEL);
            /// What the miner can do: at most 64 entries of 64 bytes, each once.
            capabilities "capabilities": Vec<String>, Names(NAME_BYTES_MAX), filled Empty;
            /// The miner's model, at most 256 bytes.
            model_info "modelInfo": String, Text(LABEL);
        }
        optional {}
    }
}

impl Kind for MinerRegister {}
