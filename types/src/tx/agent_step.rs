//! AGENT_STEP: a miner reports one model iteration (docs/protocol.md section 5.4).

use super::declare::{Members, declare};
use super::spec::{IntegerLimit, LABEL, ListLimit, TextLimit};
use super::{Kind, Subject};
use crate::Hash;

/// The most tool calls of one step.
pub const TOOL_CALLS_MAX: usize = 64;

declare! {
    /// Reports one iteration of the miner's model.
    kind AgentStep = "AGENT_STEP", section "5.4", fork V6 {
        required {
            /// The run.
            agent_run_id "agentRunId": Hash, Hash;
            /// Greater than that of the last step, below the run's `maxSteps`.
            step_index "stepIndex": u64, Integer(IntegerLimit::any(""));
            /// Tokens that the model wrote.
            output_tokens "outputTokens": u64, Integer(IntegerLimit::any("tokens"));
            /// SHA-256 of the output's text.
            output_hash "outputHash": Hash, Hash;
        }
        optional {
            /// A finalised blob with the model's reasoning.
            thought_blob_id "thoughtBlobId": String, Text(TextLimit::BlobId);
            /// The tools that were called, at most 64 calls.
            tool_calls "toolCalls": Vec<ToolCall>, Objects(TOOL_CALLS);
            /// A finalised blob with the output.
            output_blob_id "outputBlobId": String, Text(TextLimit::BlobId);
        }
    }
}

const TOOL_CALLS: ListLimit = ListLimit { members: ToolCall::FIELDS, max: TOOL_CALLS_MAX };

declare! {
    /// One call of a tool within a step.
    object ToolCall {
        required {
            /// The tool.
            name "name": String, Text(LABEL);
            /// SHA-256 of the canonical JSON of the arguments.
            args_hash "argsHash": Hash, Hash;
            /// SHA-256 of the result's text.
            result_hash "resultHash": Hash, Hash;
            /// How long it took.
            duration_ms "durationMs": u64, Integer(IntegerLimit::any("ms"));
            /// Whether it succeeded.
            ok "ok": bool, Boolean;
        }
        optional {}
    }
}

impl Kind for AgentStep {
    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Run(self.agent_run_id))
    }
}
