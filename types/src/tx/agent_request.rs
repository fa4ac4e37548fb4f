//! AGENT_REQUEST: escrow a fee and ask for a run (docs/protocol.md section 5.2).

use super::fields::Fields;
use super::{Kind, StaticView, Subject, limits};
use crate::forks::Fork;
use crate::json::ObjectWriter;
use crate::params::MAX_STEPS_MAX;
use crate::{Amount, Hash, Rejection};

/// The fields of AGENT_REQUEST.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgentRequest {
    /// [`crate::ids::compute_agent_run_id`] of sender, nonce and prompt.
    pub agent_run_id: Hash,
    /// The conversation that the run belongs to.
    pub conversation_id: Hash,
    /// What is asked, 1 to 16,384 bytes.
    pub prompt: String,
    /// Names of the tools that the miner may use.
    pub tools_whitelist: Vec<String>,
    /// The escrow: the most that the run may cost.
    pub max_fee: Amount,
    /// The most steps, 1 to 200.
    pub max_steps: u64,
    /// A finalised blob with a longer prompt.
    pub prompt_blob_id: Option<String>,
    /// The model that the submitter would like.
    pub model_hint: Option<String>,
}

impl Kind for AgentRequest {
    const TYPE: &'static str = "AGENT_REQUEST";
    const FORK: Option<Fork> = Some(Fork::V6);

    fn read(fields: &Fields<'_, '_>) -> Result<Self, Rejection> {
        Ok(Self {
            agent_run_id: fields.hash("agentRunId")?,
            conversation_id: fields.hash("conversationId")?,
            prompt: fields.string("prompt")?,
            tools_whitelist: fields.strings("toolsWhitelist")?,
            max_fee: fields.amount("maxFee")?,
            max_steps: fields.integer("maxSteps")?,
            prompt_blob_id: fields.optional_string("promptBlobId")?,
            model_hint: fields.optional_string("modelHint")?,
        })
    }

    fn write_required(&self, out: &mut ObjectWriter<'_>) {
        out.display("agentRunId", &self.agent_run_id);
        out.display("conversationId", &self.conversation_id);
        out.string("prompt", &self.prompt);
        out.strings("toolsWhitelist", &self.tools_whitelist);
        out.display("maxFee", &self.max_fee);
        out.integer("maxSteps", self.max_steps);
    }

    fn write_optional(&self, out: &mut ObjectWriter<'_>) {
        if let Some(id) = &self.prompt_blob_id {
            out.string("promptBlobId", id);
        }
        if let Some(hint) = &self.model_hint {
            out.string("modelHint", hint);
        }
    }

    fn check_static(&self, view: &StaticView<'_>) -> Result<(), Rejection> {
        if self.prompt.is_empty() {
            return Err(Rejection::invalid("prompt", "empty", "1 to 16384 bytes"));
        }
        limits::inline_text("prompt", &self.prompt)?;
        limits::name_list("toolsWhitelist", &self.tools_whitelist)?;
        let least = view.params.min_max_fee;
        if self.max_fee < least {
            return Err(Rejection::invalid(
                "maxFee",
                self.max_fee,
                format_args!("at least {least}"),
            ));
        }
        if !(1..=MAX_STEPS_MAX).contains(&self.max_steps) {
            return Err(Rejection::invalid("maxSteps", self.max_steps, "1 to 200"));
        }
        limits::optional_blob_id("promptBlobId", self.prompt_blob_id.as_ref())?;
        self.model_hint.as_ref().map_or(Ok(()), |hint| limits::label("modelHint", hint))
    }

    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Run(self.agent_run_id))
    }
}
