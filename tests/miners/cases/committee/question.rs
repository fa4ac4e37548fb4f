//! What is asked: few questions, each of them many times, so that all calls with the same question
//! must have the same answer, to the last token and to the hash of the receipt.

use anyhow::Context as _;
use fixtures::prices;
use serde_json::{Value, json};
use testkit::actor::Actor;
use testkit::senders::Senders;
use types::tx::{AgentCall, HexBytes, WorkLimits};
use types::{Amount, Hash};

use super::stage::Stage;

/// The prices that every miner asks and every call pays, micro-OMBRA.
pub(super) const PER_CALL: u64 = 1_000;
pub(super) const PROMPT_PER_M: u64 = 1_000_000;
pub(super) const COMPLETION_PER_M: u64 = 2_000_000;
pub(super) const FUEL_PER_G: u64 = 1_000_000;
pub(super) const PRICES: [u64; 4] = [PER_CALL, PROMPT_PER_M, COMPLETION_PER_M, FUEL_PER_G];
/// How many calls of each agent are under way at once. A model takes all of a processor for a
/// while.
pub(super) const MODEL_WINDOW: usize = 3;
pub(super) const PROGRAM_WINDOW: usize = 6;
/// How long members have to commit; nobody waits for it unless a member is away.
const MODEL_TIMEOUT_MS: u64 = 25_000;
const PROGRAM_TIMEOUT_MS: u64 = 10_000;
/// More than any of these calls costs; what is left comes back.
const MAX_FEE: u64 = 1_000_000;

/// Which agent is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    Model,
    Program,
}

/// What must come of a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Expected {
    /// A success with this first value.
    Says(&'static str),
    /// A success with whatever the model says; an execution of our own tells.
    Success,
    /// A failure, because the end of the arguments is missing.
    Failure,
}

/// A question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Question {
    pub(super) asked: Asked,
    pub(super) expected: Expected,
    text: &'static str,
}

const fn question(asked: Asked, text: &'static str, expected: Expected) -> Question {
    Question { asked, text, expected }
}

/// All questions. They are asked in this order again and again.
pub(super) const QUESTIONS: [Question; 8] = [
    question(Asked::Model, "I loved it, every single page of it.", Expected::Success),
    question(Asked::Program, "Works great, thanks.", Expected::Says("positive")),
    question(Asked::Program, "Broken, and never on time.", Expected::Says("negative")),
    question(Asked::Program, "Good and useless.", Expected::Failure),
    question(Asked::Model, "A waste of paper and of my evening.", Expected::Success),
    question(Asked::Program, "A chair with four legs.", Expected::Says("neutral")),
    question(Asked::Program, "Fast, reliable, and rude.", Expected::Says("positive")),
    question(Asked::Model, "Good.", Expected::Failure),
];

impl Asked {
    /// How many calls of it are under way at most.
    pub(super) const fn window(self) -> usize {
        match self {
            Self::Model => MODEL_WINDOW,
            Self::Program => PROGRAM_WINDOW,
        }
    }

    /// The agent on the chain.
    pub(super) const fn agent(self, stage: &Stage) -> Hash {
        match self {
            Self::Model => stage.model_agent,
            Self::Program => stage.program_agent,
        }
    }

    pub(super) const fn method(self) -> &'static str {
        match self {
            Self::Model => "isPositive",
            Self::Program => "classify",
        }
    }
}

impl Question {
    /// The payload, as a node encodes it; of a failure the last word is missing.
    pub(super) fn payload(&self, stage: &Stage, senders: &mut Senders) -> anyhow::Result<Vec<u8>> {
        let (agent, method) = (self.asked.agent(stage), self.asked.method());
        let call = json!({ "agentId": agent, "method": method, "args": [self.text] });
        let encoded = senders.call("ombra_encodeCall", &json!([call]))?;
        let payload = encoded["payload"].as_str().and_then(HexBytes::parse);
        let HexBytes(mut payload) = payload.context("a payload")?;
        if self.expected == Expected::Failure {
            payload.truncate(payload.len().saturating_sub(32));
        }
        Ok(payload)
    }

    /// What a requester asks with its next nonce.
    pub(super) fn call(
        &self,
        stage: &Stage,
        requester: &Actor,
        payload: Vec<u8>,
        committee_size: u64,
    ) -> AgentCall {
        let (input_tokens, output_tokens, fuel, timeout_ms) = match self.asked {
            Asked::Model => (500, 50, 0, MODEL_TIMEOUT_MS),
            Asked::Program => (0, 0, 10_000_000, PROGRAM_TIMEOUT_MS),
        };
        AgentCall {
            payload: HexBytes(payload),
            committee_size,
            prices: prices(PRICES),
            limits: WorkLimits { input_tokens, output_tokens, fuel, result_bytes: 1_024 },
            max_fee: Amount::new(MAX_FEE),
            timeout_ms,
            ..requester.call(&stage.chain_id, self.asked.agent(stage))
        }
    }

    /// The first value of an answer, as a node decodes it.
    pub(super) fn decode(
        &self,
        stage: &Stage,
        senders: &mut Senders,
        result: &Value,
    ) -> anyhow::Result<Value> {
        let (agent, method) = (self.asked.agent(stage), self.asked.method());
        let answer = json!({ "agentId": agent, "method": method, "result": result });
        let mut decoded = senders.call("ombra_decodeResult", &json!([answer]))?;
        Ok(decoded["values"][0]["value"].take())
    }
}
