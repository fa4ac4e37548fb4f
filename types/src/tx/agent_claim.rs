//! AGENT_CLAIM: a miner claims a pending run (docs/protocol.md section 5.3).

use super::declare::declare;
use super::kind::{Kind, Subject};
use super::spec::{LABEL, TextLimit};
use super::static_view::StaticView;
use super::value::WrittenAddress;
use crate::{Hash, Rejection};

/// The hardware tiers that a miner may state.
pub const HARDWARE_TIERS: &[&str] = &["laptop", "desktop", "workstation", "server", "cluster"];

declare! {
    /// Claims a pending run. The sender becomes the run's miner.
    kind AgentClaim = "AGENT_CLAIM", section "5.3", fork V6 {
        required {
            /// The id of the run.
            agent_run_id "agentRunId": Hash, Hash;
            /// The miner's address, which must be the sender's.
            miner_address "minerAddress": WrittenAddress, Address, filled Sender;
            /// The model that the miner uses, at most 256 bytes.
            model_info "modelInfo": String, Text(LABEL);
            /// The miner's hardware: `laptop`, `desktop`, `workstation`, `server` or `cluster`.
            hardware_tier "hardwareTier": String, Text(TextLimit::OneOf(HARDWARE_TIERS));
        }
        optional {}
    }
}

impl Kind for AgentClaim {
    fn check_together(&self, view: &StaticView<'_>) -> Result<(), Rejection> {
        let miner = self.miner_address.address;
        if miner == view.signer {
            return Ok(());
        }
        let expected = format_args!("the sender {}", view.signer);
        Err(Rejection::invalid("minerAddress", miner, expected))
    }

    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Run(self.agent_run_id))
    }
}
