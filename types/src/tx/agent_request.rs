//! AGENT_REQUEST: escrow a fee and ask for a run (docs/protocol.md section 5.2).

use super::declare::declare;
use super::spec::{AmountLimit, AmountParam, IntegerLimit, LABEL, TextLimit};
use super::{Kind, Subject};
use crate::params::{INLINE_TEXT_BYTES_MAX, MAX_STEPS_MAX};
use crate::{Amount, Hash};

/// 1 to 16,384 bytes.
const PROMPT: TextLimit = TextLimit::Bytes { min: 1, max: INLINE_TEXT_BYTES_MAX };

declare! {
    /// Asks for an agent run and puts its price into escrow.
    kind AgentRequest = "AGENT_REQUEST", section "5.2", fork V6 {
        required {
            /// The run's id, which follows from sender, nonce and prompt.
            agent_run_id "agentRunId": Hash, Hash, filled Computed;
            /// The conversation that the run belongs to.
            conversation_id "conversationId": Hash, Hash, filled Default;
            /// What is asked, 1 to 16,384 bytes.
            prompt "prompt": String, Text(PROMPT);
            /// Names of the tools that the miner may use.
            tools_whitelist "toolsWhitelist": Vec<String>, Names, filled Empty;
            /// The escrow: the most that the run may cost.
            max_fee "maxFee": Amount, Amount(AmountLimit::AtLeast(AmountParam::MinMaxFee));
            /// The most steps, 1 to 200.
            max_steps "maxSteps": u64, Integer(IntegerLimit::range(1, MAX_STEPS_MAX, "steps"));
        }
        optional {
            /// A finalised blob with a longer prompt.
            prompt_blob_id "promptBlobId": String, Text(TextLimit::BlobId);
            /// The model that the submitter would like.
            model_hint "modelHint": String, Text(LABEL);
        }
    }
}

impl Kind for AgentRequest {
    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Run(self.agent_run_id))
    }
}
