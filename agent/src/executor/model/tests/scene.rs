//! An agent, a model that says what it is told to say, and calls.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use types::call::CallLimits;
use types::{Hash, Usage};

use crate::executor::tests::{Member, never};
pub(super) use crate::executor::tests::{agent_with, method, parameter, tool_of};
use crate::executor::{
    Agent, Chosen, Executed, Executors, Form, Inference, Model, ModelAsk, ModelFault, Reading, Stop,
};
use crate::messages::{Message, ToolCall};

const MANIFEST: Hash = Hash::new([9; 32]);
pub(super) const LIMITS: CallLimits = CallLimits {
    usage: Usage { input_tokens: 100_000, output_tokens: 1_000, fuel: 0 },
    result_bytes: 10_000,
};

/// The four published methods.
pub(super) fn published() -> Vec<Value> {
    let all = |types: &[&str]| types.iter().map(|it| parameter("", it)).collect::<Vec<_>>();
    let string = [parameter("response", "string")];
    let declarations = json!({
        "name": "onchainTools", "type": "tuple[]",
        "components": [parameter("signature", "string"), parameter("description", "string")],
    });
    let mut chat = all(&["string[]", "string[]", "string[]"]);
    chat.extend([declarations, parameter("", "uint256"), parameter("", "bool")]);
    vec![
        method("inferString", &all(&["string", "string", "bool", "string[]"]), &string),
        method(
            "inferNumber",
            &all(&["string", "string", "int256", "int256", "bool"]),
            &all(&["int256"]),
        ),
        method("inferChat", &all(&["string[]", "string[]", "bool"]), &string),
        method(
            "inferToolsChat",
            &chat,
            &all(&["string", "string", "string[]", "string[]", "string[]", "bytes[]"]),
        ),
    ]
}

/// An agent of the model.
pub(super) fn agent(name: &str, tools: &[String], abi: &[Value]) -> Arc<Agent> {
    agent_with(16, name, MANIFEST, tools, abi)
}

/// A question as a model gets it.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) messages: Vec<Message>,
    pub(super) form: Form,
    pub(super) output_tokens_max: u32,
}

impl Asked {
    pub(super) fn texts(&self) -> Vec<&str> {
        self.messages.iter().map(|message| message.text.as_str()).collect()
    }
}

/// A model that says these things, one after the other, and remembers what it was asked.
#[derive(Debug, Default)]
pub(super) struct Scripted {
    says: Mutex<VecDeque<Inference>>,
    asked: Mutex<Vec<Asked>>,
}

impl Model for Scripted {
    fn manifest(&self) -> Hash {
        MANIFEST
    }

    fn infer(&self, ask: &ModelAsk<'_>, _: &Stop) -> Result<Inference, ModelFault> {
        let ModelAsk { messages, form, output_tokens_max, input_tokens_max: _ } = *ask;
        let asked = Asked { messages: messages.to_vec(), form: form.clone(), output_tokens_max };
        self.asked.lock().push(asked);
        let says = self.says.lock().pop_front();
        says.ok_or_else(|| ModelFault::Question("nothing more to say".to_owned()))
    }
}

/// A text of so many tokens.
pub(super) fn text(text: &str, tokens: usize) -> Inference {
    let chosen = vec![Chosen { token: 1, scores: None }; tokens];
    let readings = vec![Reading { prompt: vec![1, 2, 3], chosen, ..Reading::default() }];
    Inference { text: text.to_owned(), readings, ..Inference::default() }
}

pub(super) fn cut(it: &str, tokens: usize) -> Inference {
    Inference { is_cut: true, ..text(it, tokens) }
}

/// A call of a tool.
pub(super) fn call(name: &str, arguments: Value) -> Inference {
    let arguments: Map<String, Value> = serde_json::from_value(arguments).expect("an object");
    let call = ToolCall { id: String::new(), name: name.to_owned(), arguments };
    Inference { tool_calls: vec![call], ..text("", 4) }
}

/// A miner with one model.
pub(super) struct Miner {
    pub(super) member: Member,
    scripted: Arc<Scripted>,
}

impl Miner {
    /// One whose model says these things.
    pub(super) fn saying(says: impl IntoIterator<Item = Inference>) -> Self {
        let says = Mutex::new(says.into_iter().collect());
        let scripted = Arc::new(Scripted { says, asked: Mutex::default() });
        Self { scripted: scripted.clone(), ..Self::with(scripted) }
    }

    /// One with this model.
    pub(super) fn with(model: Arc<dyn Model>) -> Self {
        Self { member: Member::of(Executors::of(Some(model))), scripted: Arc::default() }
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.scripted.asked.lock().clone()
    }

    pub(super) fn run(&self, agent: &Agent, payload: &[u8], limits: CallLimits) -> Executed {
        self.member.execute(agent, payload, limits, never())
    }

    /// Calls a method by name.
    pub(super) fn call(&self, agent: &Agent, method: &str, arguments: &Value) -> Executed {
        self.run(agent, &payload(agent, method, arguments), LIMITS)
    }
}

pub(super) fn payload(agent: &Agent, method: &str, arguments: &Value) -> Vec<u8> {
    let method = agent.metadata.methods.iter().find(|it| it.name == method).expect("the method");
    method.encode_arguments(&arguments.to_string()).expect("arguments")
}
