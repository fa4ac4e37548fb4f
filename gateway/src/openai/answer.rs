//! Answers: what a miner said, as the interface says it, whole or in chunks.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// What begins the end of a text that was cut off (docs/agent-methods.md section 9).
const CUT_OFF: &str = "\n\n[cut off: ";

/// A call of a function.
#[derive(Clone, Debug, Deserialize)]
struct Call {
    id: String,
    name: String,
    /// As the miner wrote it.
    arguments: Box<RawValue>,
}

/// The final answer of a run (docs/agent-methods.md).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    finish_reason: String,
    #[serde(default)]
    response: String,
    #[serde(default)]
    tool_calls: Vec<Call>,
}

/// What the model said.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(super) finish: &'static str,
    text: String,
    calls: Vec<Call>,
}

impl Reply {
    /// Reads the final answer of a run that ended with `status`.
    ///
    /// # Errors
    /// Why there is no answer in it: the miner's reason, or what is wrong with the form.
    pub fn parse(answer: &str, status: &str) -> Result<Self, String> {
        let Answer { finish_reason, response, tool_calls } = serde_json::from_str(answer)
            .map_err(|error| format!("the miner's answer is not one of inferMessages: {error}"))?;
        let (finish, text, calls) = match finish_reason.as_str() {
            "stop" => ("stop", response, Vec::new()),
            "length" => ("length", response, Vec::new()),
            "tool_calls" if tool_calls.is_empty() => {
                return Err("the miner's answer announces calls but contains none".to_owned());
            }
            "tool_calls" => ("tool_calls", response, tool_calls),
            // What the money was enough for.
            "error" if status == "insufficient_funds" => match response.split_once(CUT_OFF) {
                Some((text, _)) if !text.is_empty() => ("length", text.to_owned(), Vec::new()),
                Some(_) | None => return Err(response),
            },
            "error" => return Err(response),
            other => return Err(format!("the miner's answer ends with {other:?}")),
        };
        Ok(Self { finish, text, calls })
    }

    pub(super) fn content(&self) -> Option<&str> {
        let has_text = self.calls.is_empty() || !self.text.is_empty();
        has_text.then_some(self.text.as_str())
    }

    fn calls(&self) -> Vec<Value> {
        let call = |Call { id, name, arguments }: &Call| {
            let function = json!({ "name": name, "arguments": arguments.get() });
            json!({ "id": id, "type": "function", "function": function })
        };
        self.calls.iter().map(call).collect()
    }
}

/// What an answer cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spent {
    /// Tokens put out. Those of the prompt are not counted.
    pub completion_tokens: u64,
    /// All that was paid, micro-OMBRA.
    pub cost_micro: u64,
}

impl Spent {
    fn usage(&self) -> Value {
        let Self { completion_tokens, cost_micro } = self;
        json!({
            "prompt_tokens": 0,
            "completion_tokens": completion_tokens,
            "total_tokens": completion_tokens,
            "cost_micro": cost_micro,
        })
    }
}

/// An answer with everything that is told beside it.
#[derive(Clone, Debug)]
pub struct Completion {
    /// Its id.
    pub id: String,
    /// When it was asked for, seconds since 1970.
    pub created: u64,
    /// The model that was asked.
    pub model: String,
    /// What the model said.
    pub reply: Reply,
    /// What it cost.
    pub spent: Spent,
    /// Where it is on the chain: the member `ombra`.
    pub ombra: Value,
}

/// The answer as one object.
#[must_use]
pub fn completion(completion: &Completion) -> Value {
    let Completion { id, created, model, reply, spent, ombra } = completion;
    let mut message = json!({ "role": "assistant", "content": reply.content(), "refusal": null });
    if !reply.calls.is_empty() {
        message["tool_calls"] = Value::Array(reply.calls());
    }
    let choice = json!({
        "index": 0,
        "message": message,
        "logprobs": null,
        "finish_reason": reply.finish,
    });
    json!({
        "id": id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [choice],
        "usage": spent.usage(),
        "ombra": ombra,
    })
}

/// The chunks of a stream.
pub mod chunks {
    use serde_json::{Value, json};

    use super::Completion;

    /// What all chunks of a stream have alike.
    #[derive(Clone, Debug)]
    pub struct Head {
        /// The id of the answer.
        pub id: String,
        /// When it was asked for, seconds since 1970.
        pub created: u64,
        /// The model that was asked.
        pub model: String,
        /// Whether the cost is told in a chunk of its own.
        pub includes_usage: bool,
    }

    impl Head {
        fn chunk(&self, choices: &Value) -> Value {
            let Self { id, created, model, includes_usage } = self;
            let mut chunk = json!({
                "id": id,
                "object": "chat.completion.chunk",
                "created": created,
                "model": model,
                "choices": choices,
            });
            if *includes_usage {
                chunk["usage"] = Value::Null;
            }
            chunk
        }

        fn delta(&self, delta: &Value) -> Value {
            let finish = Value::Null;
            self.chunk(&json!([{ "index": 0, "delta": delta, "finish_reason": finish }]))
        }

        /// The first chunk: somebody answers.
        #[must_use]
        pub fn first(&self) -> Value {
            self.delta(&json!({ "role": "assistant", "content": "" }))
        }

        /// The chunks of the answer.
        #[must_use]
        pub fn rest(&self, completion: &Completion) -> Vec<Value> {
            let Completion { reply, spent, ombra, .. } = completion;
            let mut chunks = Vec::new();
            if let Some(text) = reply.content().filter(|text| !text.is_empty()) {
                chunks.push(self.delta(&json!({ "content": text })));
            }
            for (index, mut call) in reply.calls().into_iter().enumerate() {
                call["index"] = json!(index);
                chunks.push(self.delta(&json!({ "tool_calls": [call] })));
            }
            let end = json!([{ "index": 0, "delta": {}, "finish_reason": reply.finish }]);
            let mut last = self.chunk(&end);
            last["ombra"] = ombra.clone();
            chunks.push(last);
            if self.includes_usage {
                let mut usage = self.chunk(&json!([]));
                usage["usage"] = spent.usage();
                chunks.push(usage);
            }
            chunks
        }
    }
}
