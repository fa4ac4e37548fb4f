//! AGENT_FINISH: the miner ends the run (docs/protocol.md section 5.5).

use super::declare::declare;
use super::kind::{Kind, Subject};
use super::spec::{AmountLimit, INLINE_TEXT, IntegerLimit, TextLimit};
use crate::{Address, Amount, Hash};

/// The statuses with which a miner may end a run.
pub const FINISH_STATUSES: &[&str] =
    &["completed", "failed", "timeout", "insufficient_funds", "cancelled"];

declare! {
    /// Ends a run and divides its escrow.
    kind AgentFinish = "AGENT_FINISH", section "5.5", fork V6 {
        required {
            /// The id of the run.
            agent_run_id "agentRunId": Hash, Hash;
            /// The total number of output tokens in the recorded steps.
            total_tokens_out "totalTokensOut": u64, Integer(IntegerLimit::any("tokens")), filled Computed;
            /// How the run ended: `completed`, `failed`, `timeout`, `insufficient_funds` or
            /// `cancelled`.
            status "status": String, Text(TextLimit::OneOf(FINISH_STATUSES));
            /// The reward for the miner.
            miner_reward "minerReward": Amount, Amount(AmountLimit::Any), filled Computed;
            /// The refund to the submitter.
            user_refund "userRefund": Amount, Amount(AmountLimit::Any), filled Computed;
            /// The network fee, which is burned.
            network_fee "networkFee": Amount, Amount(AmountLimit::Any), filled Computed;
        }
        optional {
            /// The final answer, at most 16,384 bytes.
            final_answer_inline "finalAnswerInline": String, Text(INLINE_TEXT);
            /// The id of a finalized blob with the final answer.
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
