//! AGENT_FINISH: the miner settles the run (docs/protocol.md section 5.5).

use super::fields::Fields;
use super::{Kind, StaticView, Subject, limits};
use crate::forks::Fork;
use crate::json::ObjectWriter;
use crate::{Address, Amount, Hash, Rejection};

/// How a run may end by its miner's word.
pub const FINISH_STATUSES: &[&str] =
    &["completed", "failed", "timeout", "insufficient_funds", "cancelled"];

/// The fields of AGENT_FINISH.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgentFinish {
    /// The run.
    pub agent_run_id: Hash,
    /// The sum over the recorded steps.
    pub total_tokens_out: u64,
    /// One of [`FINISH_STATUSES`].
    pub status: String,
    /// What the miner gets.
    pub miner_reward: Amount,
    /// What the submitter gets back.
    pub user_refund: Amount,
    /// What is burned.
    pub network_fee: Amount,
    /// The answer, at most 16,384 bytes.
    pub final_answer_inline: Option<String>,
    /// A finalised blob with the answer.
    pub final_answer_blob_id: Option<String>,
}

impl Kind for AgentFinish {
    const TYPE: &'static str = "AGENT_FINISH";
    const FORK: Option<Fork> = Some(Fork::V6);

    fn read(fields: &Fields<'_, '_>) -> Result<Self, Rejection> {
        Ok(Self {
            agent_run_id: fields.hash("agentRunId")?,
            total_tokens_out: fields.integer("totalTokensOut")?,
            status: fields.string("status")?,
            miner_reward: fields.amount("minerReward")?,
            user_refund: fields.amount("userRefund")?,
            network_fee: fields.amount("networkFee")?,
            final_answer_inline: fields.optional_string("finalAnswerInline")?,
            final_answer_blob_id: fields.optional_string("finalAnswerBlobId")?,
        })
    }

    fn write_required(&self, out: &mut ObjectWriter<'_>) {
        out.display("agentRunId", &self.agent_run_id);
        out.integer("totalTokensOut", self.total_tokens_out);
        out.string("status", &self.status);
        out.display("minerReward", &self.miner_reward);
        out.display("userRefund", &self.user_refund);
        out.display("networkFee", &self.network_fee);
    }

    fn write_optional(&self, out: &mut ObjectWriter<'_>) {
        if let Some(answer) = &self.final_answer_inline {
            out.string("finalAnswerInline", answer);
        }
        if let Some(id) = &self.final_answer_blob_id {
            out.string("finalAnswerBlobId", id);
        }
    }

    fn check_static(&self, _: &StaticView<'_>) -> Result<(), Rejection> {
        limits::one_of("status", &self.status, FINISH_STATUSES)?;
        if let Some(answer) = &self.final_answer_inline {
            limits::inline_text("finalAnswerInline", answer)?;
        }
        limits::optional_blob_id("finalAnswerBlobId", self.final_answer_blob_id.as_ref())
    }

    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Run(self.agent_run_id))
    }

    fn payee(&self, sender: Address) -> Option<Address> {
        Some(sender)
    }
}
