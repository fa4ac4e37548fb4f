//! MINER_REGISTER: an entry in the miner directory (docs/protocol.md section 5.9).

use super::declare::declare;
use super::kind::Kind;
use super::spec::LABEL;
use super::value::NAME_BYTES_MAX;

declare! {
    /// Creates or replaces the sender's entry in the miner directory.
    kind MinerRegister = "MINER_REGISTER", section "5.9" {
        required {
            /// The miner's display name, at most 256 bytes.
            name "name": String, Text(LABEL);
            /// What the miner can do: at most 64 different entries of at most 64 bytes each.
            capabilities "capabilities": Vec<String>, Names(NAME_BYTES_MAX), filled Empty;
            /// The model that the miner uses, at most 256 bytes.
            model_info "modelInfo": String, Text(LABEL);
        }
        optional {}
    }
}

impl Kind for MinerRegister {}
