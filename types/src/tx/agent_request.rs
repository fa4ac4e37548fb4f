//! AGENT_REQUEST: request a run and put its fee into escrow (docs/protocol.md section 5.2).

use super::declare::declare;
use super::kind::{Kind, Subject};
use super::spec::{AmountLimit, AmountParam, IntegerLimit, LABEL, TextLimit};
use super::value::{NAME_BYTES_MAX, WrittenAddress, check_bytes};
use crate::params::{INLINE_TEXT_BYTES_MAX, INTEGER_MAX, MAX_STEPS_MAX};
use crate::{Amount, Hash, Rejection};

/// 1 to 16,384 bytes.
const PROMPT: TextLimit = TextLimit::Bytes { min: 1, max: INLINE_TEXT_BYTES_MAX };

declare! {
    /// Requests an agent run and puts `maxFee` into escrow.
    kind AgentRequest = "AGENT_REQUEST", section "5.2", fork V6 {
        required {
            /// The run's id, computed from the sender, the nonce and the prompt.
            agent_run_id "agentRunId": Hash, Hash, filled Computed;
            /// The id of the conversation that the run belongs to.
            conversation_id "conversationId": Hash, Hash, filled Default;
            /// The prompt, 1 to 16,384 bytes.
            prompt "prompt": String, Text(PROMPT);
            /// The names of the tools that the miner may use, at most 64.
            tools_whitelist "toolsWhitelist": Vec<String>, Names(TOOL_BYTES_MAX), filled Empty;
            /// The escrow: the most that the run can cost the sender.
            max_fee "maxFee": Amount, Amount(AmountLimit::AtLeast(AmountParam::MinMaxFee));
            /// The maximum number of steps, 1 to 200.
            max_steps "maxSteps": u64, Integer(IntegerLimit::range(1, MAX_STEPS_MAX, "steps"));
        }
        optional {
            /// The id of a finalized blob with a longer prompt.
            prompt_blob_id "promptBlobId": String, Text(TextLimit::BlobId);
            /// The model that the submitter prefers, at most 256 bytes.
            model_hint "modelHint": String, Text(LABEL);
        }
        /// How the submitter protects the run.
        later protection: Protection;
        latest {
            /// The agent that the run is for, if there is one.
            agent: RunOfAgent;
        }
    }
}

/// 1 to 64 bytes, the limit of versions in metadata.
const VERSION: TextLimit = TextLimit::Bytes { min: 1, max: 64 };
/// The most bytes of an entry of `toolsWhitelist` from v8 on. The longest entry has 135: `agent:`,
/// an id, `@` and a version.
pub const TOOL_BYTES_MAX: usize = 192;

/// The most miners that a request may name.
pub const MINERS_MAX: usize = 16;
/// The longest time for which a submitter can have a reward held: a day, in milliseconds.
pub const REFUSE_MS_MAX: u64 = 86_400_000;

declare! {
    /// How the submitter protects a run, from v7 on. A request without these members follows the
    /// rules that were published first.
    #[derive(Default)]
    object Protection {
        required {}
        optional {
            /// The only miners that may claim the run, at most 16.
            miners "miners": Vec<WrittenAddress>, Addresses(MINERS_MAX);
            /// The amount of the miner's bond that a claim locks until the reward has been paid.
            claim_bond "claimBond": Amount, Amount(AmountLimit::Any);
            /// The maximum number of output tokens in one step.
            max_tokens_per_step "maxTokensPerStep": u64, Integer(IntegerLimit::range(1, INTEGER_MAX, "tokens"));
            /// How long the reward is held after the run has ended, in milliseconds; at most a day.
            /// During this time the submitter may refuse it.
            refuse_ms "refuseMs": u64, Integer(IntegerLimit::range(0, REFUSE_MS_MAX, "ms"));
        }
    }
}

declare! {
    /// The agent that a run is for, from v8 on.
    #[derive(Default)]
    object RunOfAgent {
        required {}
        optional {
            /// The id of the agent that the run is for. Requires `agentVersion`.
            agent_id "agentId": Hash, Hash;
            /// The version of that agent. Requires `agentId`.
            agent_version "agentVersion": String, Text(VERSION);
        }
    }
}

impl AgentRequest {
    /// Rejects names of tools that are longer than the limit before v8.
    pub(crate) fn check_before_v8(&self) -> Result<(), Rejection> {
        let mut tools = self.tools_whitelist.iter();
        tools.try_for_each(|tool| check_bytes("toolsWhitelist", tool, 0, NAME_BYTES_MAX))
    }
}

impl Kind for AgentRequest {
    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Run(self.agent_run_id))
    }
}
