//! AGENT_CLAIM: a miner takes a pending run (docs/protocol.md section 5.3).

use super::fields::Fields;
use super::{Kind, StaticView, Subject, limits};
use crate::forks::Fork;
use crate::json::ObjectWriter;
use crate::{Address, Hash, Rejection};

/// What a miner says that it runs on.
pub const HARDWARE_TIERS: &[&str] = &["laptop", "desktop", "workstation", "server", "cluster"];

/// The fields of AGENT_CLAIM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgentClaim {
    /// The run.
    pub agent_run_id: Hash,
    /// Must be the sender.
    pub miner_address: MinerAddress,
    /// The miner's model, at most 256 bytes.
    pub model_info: String,
    /// One of [`HARDWARE_TIERS`].
    pub hardware_tier: String,
}

/// An address with the text in which it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MinerAddress {
    /// The account.
    pub address: Address,
    /// With or without the prefix `ox`.
    pub text: String,
}

impl From<Address> for MinerAddress {
    fn from(address: Address) -> Self {
        Self { address, text: address.to_string() }
    }
}

impl Kind for AgentClaim {
    const TYPE: &'static str = "AGENT_CLAIM";
    const FORK: Option<Fork> = Some(Fork::V6);

    fn read(fields: &Fields<'_, '_>) -> Result<Self, Rejection> {
        Ok(Self {
            agent_run_id: fields.hash("agentRunId")?,
            miner_address: MinerAddress {
                address: fields.parsed("minerAddress")?,
                text: fields.string("minerAddress")?,
            },
            model_info: fields.string("modelInfo")?,
            hardware_tier: fields.string("hardwareTier")?,
        })
    }

    fn write_required(&self, out: &mut ObjectWriter<'_>) {
        out.display("agentRunId", &self.agent_run_id);
        out.string("minerAddress", &self.miner_address.text);
        out.string("modelInfo", &self.model_info);
        out.string("hardwareTier", &self.hardware_tier);
    }

    fn check_static(&self, view: &StaticView<'_>) -> Result<(), Rejection> {
        let miner = self.miner_address.address;
        if miner != view.signer {
            let expected = format_args!("the sender {}", view.signer);
            return Err(Rejection::invalid("minerAddress", miner, expected));
        }
        limits::label("modelInfo", &self.model_info)?;
        limits::one_of("hardwareTier", &self.hardware_tier, HARDWARE_TIERS)
    }

    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Run(self.agent_run_id))
    }
}
