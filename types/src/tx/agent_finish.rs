//! AGENT_FINISH: the miner settles the run (docs/protocol.md section 5.5).

use super::declare::declare;
use super::spec::{AmountLimit, INLINE_TEXT, IntegerLimit, TextLimit};
use super::{Kind, Subject};
use crate::{Address, Amount, Hash};

/// How a run may end by its miner's word.
pub const FINISH_STATUSES: &[&str] =
    &["completed", "failed", "timeout", "insufficient_funds", "cancelled"];

declare! {
    /// Ends a run and divides its escrow.
    kind AgentFinish = "AGENT_FINISH", section "5.5", fork V6 {
        required {
            /// The run.
            agent_run_id "agentRunId": Hash, Hash;
            /// The sum over the recorded steps.
            total_tokens_out "totalTokensOut": u64, Integer(IntegerLimit::any("tokens")), filled Computed;
            /// How it ended: `completed`, `failed`, `timeout`, `insufficient_funds` or `cancelled`.
            status "status": String, Text(TextLimit::OneOf(FINISH_STATUSES));
            /// What the miner gets.
            miner_reward "minerReward": Amount, Amount(AmountLimit::Any), filled Computed;
            /// What the submitter gets back.
            user_refund "userRefund": Amount, Amount(AmountLimit::Any), filled Computed;
            /// What is burned.
            network_fee "networkFee": Amount, Amount(AmountLimit::Any), filled Computed;
        }
        optional {
            /// The answer, at most 16,384 bytes.
            final_answer_inline "finalAnswerInline": String, Text(INLINE_TEXT);
            /// A finalised blob with the answer.
            final_answer_blob_id "finalAnswerBlobId": String, Text(TextLimit::BlobId);
        }
    }
}

impl Kind for AgentFinish {
    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Run(self.agent_run_id))
    }

    fn payee(&self, sender: Address) -> Option<Address> {
        Some(sender)
    }
}
