//! AGENT_STEP: a miner reports one model iteration (docs/protocol.md section 5.4).

use super::declare::{Members, declare};
use super::kind::{Kind, Subject};
use super::spec::{IntegerLimit, LABEL, ListLimit, TextLimit};
use crate::Hash;

/// The most tool calls in one step.
pub const TOOL_CALLS_MAX: usize = 64;

declare! {
    /// Reports one iteration of the miner's model.
    kind AgentStep = "AGENT_STEP", section "5.4", fork V6 {
        required {
            /// The id of the run.
            agent_run_id "agentRunId": Hash, Hash;
            /// The index of the step: greater than that of the previous step, and less than the
            /// run's `maxSteps`.
            step_index "stepIndex": u64, Integer(IntegerLimit::any(""));
            /// The number of tokens that the model generated.
            output_tokens "outputTokens": u64, Integer(IntegerLimit::any("tokens"));
            /// The SHA-256 of the output text.
            output_hash "outputHash": Hash, Hash;
        }
        optional {
            /// The id of a blob with the model's reasoning.
            thought_blob_id "thoughtBlobId": String, Text(TextLimit::BlobId);
            /// The tool calls of the step, at most 64.
            tool_calls "toolCalls": Vec<ToolCall>, Objects(TOOL_CALLS);
            /// The id of a blob with the output.
            output_blob_id "outputBlobId": String, Text(TextLimit::BlobId);
        }
    }
}

const TOOL_CALLS: ListLimit = ListLimit { members: ToolCall::FIELDS, max: TOOL_CALLS_MAX };

declare! {
    /// One tool call within a step.
    object ToolCall {
        required {
            /// The name of the tool, at most 256 bytes.
            name "name": String, Text(LABEL);
            /// The SHA-256 of the canonical JSON of the arguments.
            args_hash "argsHash": Hash, Hash;
            /// The SHA-256 of the result text.
            result_hash "resultHash": Hash, Hash;
            /// How long the call took, in milliseconds.
            duration_ms "durationMs": u64, Integer(IntegerLimit::any("ms"));
            /// Whether the call succeeded.
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
