//! AGENT_STEP: a miner reports one model iteration (docs/protocol.md section 5.4).

use super::fields::Fields;
use super::{Kind, StaticView, Subject, limits};
use crate::forks::Fork;
use crate::json::ObjectWriter;
use crate::{Hash, Rejection};

/// The most tool calls of one step.
pub const TOOL_CALLS_MAX: usize = 64;

/// The fields of AGENT_STEP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgentStep {
    /// The run.
    pub agent_run_id: Hash,
    /// Greater than the last one, below the run's `maxSteps`.
    pub step_index: u64,
    /// Tokens that the model wrote.
    pub output_tokens: u64,
    /// SHA-256 of the output's text.
    pub output_hash: Hash,
    /// A blob with the model's reasoning.
    pub thought_blob_id: Option<String>,
    /// The tools that were called.
    pub tool_calls: Option<Vec<ToolCall>>,
    /// A blob with the output.
    pub output_blob_id: Option<String>,
}

/// One call of a tool within a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolCall {
    /// The tool.
    pub name: String,
    /// SHA-256 of the canonical JSON of the arguments.
    pub args_hash: Hash,
    /// SHA-256 of the result's text.
    pub result_hash: Hash,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// Whether it succeeded.
    pub ok: bool,
}

impl Kind for AgentStep {
    const TYPE: &'static str = "AGENT_STEP";
    const FORK: Option<Fork> = Some(Fork::V6);

    fn read(fields: &Fields<'_, '_>) -> Result<Self, Rejection> {
        let tool_call = |item: &Fields<'_, '_>| {
            Ok(ToolCall {
                name: item.string("name")?,
                args_hash: item.hash("argsHash")?,
                result_hash: item.hash("resultHash")?,
                duration_ms: item.integer("durationMs")?,
                ok: item.boolean("ok")?,
            })
        };
        Ok(Self {
            agent_run_id: fields.hash("agentRunId")?,
            step_index: fields.integer("stepIndex")?,
            output_tokens: fields.integer("outputTokens")?,
            output_hash: fields.hash("outputHash")?,
            thought_blob_id: fields.optional_string("thoughtBlobId")?,
            tool_calls: fields.optional_objects("toolCalls", tool_call)?,
            output_blob_id: fields.optional_string("outputBlobId")?,
        })
    }

    fn write_required(&self, out: &mut ObjectWriter<'_>) {
        out.display("agentRunId", &self.agent_run_id);
        out.integer("stepIndex", self.step_index);
        out.integer("outputTokens", self.output_tokens);
        out.display("outputHash", &self.output_hash);
    }

    fn write_optional(&self, out: &mut ObjectWriter<'_>) {
        if let Some(id) = &self.thought_blob_id {
            out.string("thoughtBlobId", id);
        }
        if let Some(calls) = &self.tool_calls {
            out.objects("toolCalls", calls, |call, object| {
                let ToolCall { name, args_hash, result_hash, duration_ms, ok } = call;
                object.string("name", name);
                object.display("argsHash", args_hash);
                object.display("resultHash", result_hash);
                object.integer("durationMs", *duration_ms);
                object.boolean("ok", *ok);
            });
        }
        if let Some(id) = &self.output_blob_id {
            out.string("outputBlobId", id);
        }
    }

    fn check_static(&self, _: &StaticView<'_>) -> Result<(), Rejection> {
        let calls = self.tool_calls.as_deref().unwrap_or_default();
        limits::items_at_most("toolCalls", calls, TOOL_CALLS_MAX)?;
        for (index, call) in calls.iter().enumerate() {
            limits::label("name", &call.name)
                .map_err(|refusal| refusal.within(format_args!("toolCalls[{index}]")))?;
        }
        limits::optional_blob_id("thoughtBlobId", self.thought_blob_id.as_ref())?;
        limits::optional_blob_id("outputBlobId", self.output_blob_id.as_ref())
    }

    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Run(self.agent_run_id))
    }
}
