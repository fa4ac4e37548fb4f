//! AGENT_REQUEST: escrow a fee and ask for a run (docs/protocol.md section 5.2).

use super::declare::declare;
use super::spec::{AmountLimit, AmountParam, IntegerLimit, LABEL, TextLimit};
use super::value::{NAME_BYTES_MAX, WrittenAddress, check_bytes};
use super::{Kind, Subject};
use crate::params::{INLINE_TEXT_BYTES_MAX, INTEGER_MAX, MAX_STEPS_MAX};
use crate::{Amount, Hash, Rejection};

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
            tools_whitelist "toolsWhitelist": Vec<String>, Names(TOOL_BYTES_MAX), filled Empty;
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
        /// How the submitter protects the run.
        later protection: Protection;
        latest {
            /// Of which agent it is one.
            agent: RunOfAgent;
        }
    }
}

/// 1 to 64 bytes, as metadata has it.
const VERSION: TextLimit = TextLimit::Bytes { min: 1, max: 64 };
/// The most bytes of an entry of `toolsWhitelist` from v8 on: `agent:`, an id, `@` and a version have 135.
pub const TOOL_BYTES_MAX: usize = 192;

/// The most miners that a request may name.
pub const MINERS_MAX: usize = 16;
/// The longest time for which a submitter may have a reward held, a day in milliseconds.
pub const REFUSE_MS_MAX: u64 = 86_400_000;

declare! {
    /// How the submitter of a run protects it, from v7 on. A request without these members has the
    /// rules that were published first.
    #[derive(Default)]
    object Protection {
        required {}
        optional {
            /// The only miners that may claim the run, at most 16.
            miners "miners": Vec<WrittenAddress>, Addresses(MINERS_MAX);
            /// What the claim locks of the miner's bond until the run's reward is paid.
            claim_bond "claimBond": Amount, Amount(AmountLimit::Any);
            /// The most output tokens of one step.
            max_tokens_per_step "maxTokensPerStep": u64, Integer(IntegerLimit::range(1, INTEGER_MAX, "tokens"));
            /// How long the reward is held after the run has ended, in which the submitter may refuse it: at most a day.
            refuse_ms "refuseMs": u64, Integer(IntegerLimit::range(0, REFUSE_MS_MAX, "ms"));
        }
    }
}

declare! {
    /// Of which agent a run is one, from v8 on.
    #[derive(Default)]
    object RunOfAgent {
        required {}
        optional {
            /// The agent; with its version or not at all.
            agent_id "agentId": Hash, Hash;
            /// The version of it.
            agent_version "agentVersion": String, Text(VERSION);
        }
    }
}

impl AgentRequest {
    /// Refuses names of tools that are too long for the time before v8.
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
