//! AGENT_CLAIM: a miner takes a pending run (docs/protocol.md section 5.3).

use super::declare::declare;
use super::spec::{LABEL, TextLimit};
use super::value::WrittenAddress;
use super::{Kind, StaticView, Subject};
use crate::{Hash, Rejection};

/// What a miner says that it runs on.
pub const HARDWARE_TIERS: &[&str] = &["laptop", "desktop", "workstation", "server", "cluster"];

declare! {
    /// Takes a pending run; the sender becomes its miner.
    kind AgentClaim = "AGENT_CLAIM", section "5.3", fork V6 {
        required {
            /// The run.
            agent_run_id "agentRunId": Hash, Hash;
            /// The miner, who must be the sender.
            miner_address "minerAddress": WrittenAddress, Address, filled Sender;
            /// The miner's model, at most 256 bytes.
            model_info "modelInfo": String, Text(LABEL);
            /// What the miner runs on: `laptop`, `desktop`, `workstation`, `server` or `cluster`.
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
