//! Whatever runs an agent: limits, nesting and receipts are the same for all members.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use types::agent::ExecutorId;
use types::call::{CallLimits, Outcome};
use types::{Address, Hash, Usage};

use super::*;
use crate::messages::{Constraint, Message, Role};

const MANIFEST: Hash = Hash::new([7; 32]);

/// A parameter.
pub(super) fn parameter(name: &str, of_type: &str) -> Value {
    json!({ "name": name, "type": of_type })
}

/// A method without a description.
pub(super) fn method(name: &str, inputs: &[Value], outputs: &[Value]) -> Value {
    json!({ "type": "function", "name": name, "inputs": inputs, "outputs": outputs })
}

/// An agent of a model with so many output tokens.
pub(super) fn agent_with(
    output_tokens_max: u32,
    name: &str,
    manifest: Hash,
    tools: &[String],
    abi: &[Value],
) -> Arc<Agent> {
    let metadata = json!({
        "name": name,
        "description": "Judges texts.",
        "version": "1.0.0",
        "container_image": format!("ombra-model:{manifest}"),
        "executor": {
            "kind": "model", "model": manifest, "basePrompt": "Be brief.", "tools": tools,
            "maxIterations": 2, "maxOutputTokens": output_tokens_max,
        },
        "abi": abi,
    });
    let id = Hash::digest(name.as_bytes());
    Arc::new(Agent::read(id, metadata.to_string().as_bytes()).expect("metadata in order"))
}

/// An agent with one method, `f(string)`, that has these tools.
fn agent(name: &str, tools: &[String]) -> Arc<Agent> {
    let mut says = method("f", &[parameter("text", "string")], &[parameter("said", "string")]);
    says["description"] = json!("Says something.");
    agent_with(8, name, MANIFEST, tools, &[says])
}

pub(super) fn tool_of(agent: &Agent) -> String {
    format!("agent:{}@{}", agent.id, agent.metadata.version.as_str())
}

/// A model that says its number of messages, and reads a token for each of their bytes.
#[derive(Debug)]
struct Counting;

impl Model for Counting {
    fn manifest(&self) -> Hash {
        MANIFEST
    }

    fn infer(&self, ask: &ModelAsk<'_>, _: &Stop) -> Result<Inference, ModelFault> {
        let bytes = ask.messages.iter().flat_map(|message| message.text.bytes());
        let prompt: Vec<u32> = bytes.map(u32::from).collect();
        if prompt.len() as u64 > ask.input_tokens_max {
            return Err(ModelFault::InputTokens);
        }
        let chosen = vec![Chosen { token: 1, scores: Some(Hash::digest(b"scores")) }];
        let readings = vec![Reading { prompt, chosen, ..Reading::default() }];
        let text = ask.messages.len().to_string();
        Ok(Inference { text, readings, ..Inference::default() })
    }
}

/// Does what the payload says behind the selector.
#[derive(Debug)]
struct Obedient;

impl Execute for Obedient {
    fn execute(
        &self,
        agent: &Agent,
        payload: &[u8],
        scope: &mut Scope<'_>,
    ) -> Result<Verdict, Halt> {
        let order: Value = serde_json::from_slice(payload).unwrap_or_default();
        let text = |key: &str| order.get(key).and_then(Value::as_str).unwrap_or_default();
        match text("do") {
            "answer" => Ok(Verdict::Success(text("with").as_bytes().to_vec())),
            "fail" => Ok(Verdict::Failure(text("because").to_owned())),
            "burn" => {
                scope.burn(order.get("fuel").and_then(Value::as_u64).unwrap_or_default())?;
                Ok(Verdict::Success(Vec::new()))
            }
            "ask" => {
                let message = Message {
                    role: Role::User,
                    text: text("text").to_owned(),
                    tool_calls: Vec::new(),
                    tool_call_id: None,
                };
                let form = Form::Plain(Constraint::Free);
                let answer = scope.infer(MANIFEST, &[message], &form, 8)?;
                Ok(Verdict::Success(answer.map_or_else(String::into_bytes, |it| it.0.into_bytes())))
            }
            "tool" => {
                let arguments = Map::from_iter([("expression".to_owned(), json!("6*7"))]);
                let (_, content) = scope.tool(agent, "math_eval", &arguments)?;
                Ok(Verdict::Success(content.into_bytes()))
            }
            "fill" => {
                let size = order.get("bytes").and_then(Value::as_u64).unwrap_or_default();
                let text = "1".repeat(usize::try_from(size).unwrap_or_default());
                for _ in 0..order.get("times").and_then(Value::as_u64).unwrap_or_default() {
                    let arguments = Map::from_iter([("expression".to_owned(), json!(text))]);
                    scope.tool(agent, "math_eval", &arguments)?;
                }
                Ok(Verdict::Success(Vec::new()))
            }
            "nest" => {
                let id = Hash::digest(text("agent").as_bytes());
                let payload = order.get("order").map(ToString::to_string).unwrap_or_default();
                match scope.agent(agent, &id, "1.0.0", payload.as_bytes())? {
                    Ok(nested) => Ok(nested.verdict),
                    Err(why) => Ok(Verdict::Failure(why)),
                }
            }
            other => Err(Halt::Unable(format!("no order: {other}"))),
        }
    }
}

const LIMITS: CallLimits = CallLimits {
    usage: Usage { input_tokens: 100, output_tokens: 10, fuel: 1_000 },
    result_bytes: 16,
};

pub(super) const CONTEXT: Context =
    Context { call_id: Hash::ZERO, requester: Address::new([1; 20]) };

/// One that never stops.
pub(super) fn never() -> Stop {
    Stop::new(CancellationToken::new(), None)
}

/// What a member of a committee has.
pub(super) struct Member {
    pub(super) executors: Executors,
    pub(super) library: Library,
}

impl Member {
    pub(super) fn of(executors: Executors) -> Self {
        Self { executors, library: Library::default() }
    }

    pub(super) fn execute(
        &self,
        agent: &Agent,
        payload: &[u8],
        limits: CallLimits,
        stop: Stop,
    ) -> Executed {
        let (context, library) = (CONTEXT, &self.library);
        self.executors.run(&Task { context, agent, payload, limits, library, stop })
    }

    /// One whose agents are obedient.
    fn new() -> Self {
        let mut executors = Executors::default();
        executors.add(ExecutorId::Model { manifest: MANIFEST }, Arc::new(Obedient));
        executors.add_model(Arc::new(Counting));
        Self::of(executors)
    }

    fn with(mut self, agent: &Arc<Agent>) -> Self {
        self.library.add_agent(Arc::clone(agent));
        self
    }

    fn run(&self, agent: &Agent, order: &Value) -> Executed {
        self.execute(agent, order.to_string().as_bytes(), LIMITS, never())
    }
}

#[test]
fn what_metadata_say_beside_the_chain_s_rules_is_read() {
    let agent = agent("speaker", &[]);
    let settings = agent.model.as_ref().expect("a model agent");
    assert_eq!(settings.base_prompt, "Be brief.");
    assert_eq!((settings.max_iterations, settings.max_output_tokens), (2, 8));
    let method = &agent.metadata.methods[0];
    assert_eq!(agent.describe(method), "Says something.");
    let payload = method.encode_arguments("[\"a\"]").expect("arguments");
    assert_eq!(agent.method_of(&payload), Some(method));
    assert_eq!(agent.method_of(b"\0\0\0"), None, "a payload without a selector");
}

#[test]
fn an_answer_carries_its_usage_and_the_hash_of_its_work() {
    let agent = agent("speaker", &[]);
    let executed = Member::new().run(&agent, &json!({"do": "ask", "text": "hello"}));
    assert_eq!(executed.answer.outcome, Outcome::Success);
    assert_eq!(executed.result, b"1");
    assert_eq!(executed.answer.usage, Usage { input_tokens: 5, output_tokens: 1, fuel: 0 });
    let work = executed.work.expect("work");
    assert_eq!(executed.answer.receipt_hash, work.hash());
    assert_eq!(work.as_json()["steps"][0]["model"]["readings"][0]["prompt"], json!(b"hello"));
}

#[test]
fn two_members_make_the_same_receipt_and_other_work_makes_another() {
    let agent = agent("speaker", &[]);
    let hash = |text: &str| {
        Member::new().run(&agent, &json!({"do": "ask", "text": text})).answer.receipt_hash
    };
    assert_eq!(hash("hello"), hash("hello"));
    assert_ne!(hash("hello"), hash("hallo"), "the answer is the same, what was read is not");
}

#[test]
fn a_limit_that_is_reached_is_a_failure_with_the_limits_as_usage() {
    let agent = agent("speaker", &[]);
    for (order, limit) in [
        (json!({"do": "burn", "fuel": 1_001}), "fuel"),
        (json!({"do": "ask", "text": "x".repeat(101)}), "inputTokens"),
        (json!({"do": "answer", "with": "seventeen bytes ."}), "resultBytes"),
    ] {
        let executed = Member::new().run(&agent, &order);
        assert_eq!(executed.answer.outcome, Outcome::Failure, "{limit}");
        assert_eq!(executed.answer.usage, LIMITS.usage, "{limit}");
        let reason = executed.reason.expect("a reason");
        assert_eq!(reason, format!("the limit {limit} of the call is reached"));
        assert!(executed.result.is_empty(), "{limit}");
        assert_eq!(executed.work.expect("work").hash(), executed.answer.receipt_hash, "{limit}");
    }
    let executed = Member::new().run(&agent, &json!({"do": "burn", "fuel": 1_000}));
    assert_eq!(executed.answer.outcome, Outcome::Success, "all that is allowed");
}

#[test]
fn a_receipt_that_is_full_ends_the_execution_however_it_is_filled() {
    let inner = agent("inner", &[]);
    let outer = agent("outer", &[tool_of(&inner)]);
    let member = Member::new().with(&inner);
    let fill = |times: u64| json!({"do": "fill", "times": times, "bytes": 500_000});
    assert_eq!(member.run(&outer, &fill(4)).answer.outcome, Outcome::Success);
    let nested = json!({"do": "nest", "agent": "inner", "order": fill(5)});
    for order in [fill(5), nested] {
        let executed = member.run(&outer, &order);
        assert_eq!(executed.answer.outcome, Outcome::Failure);
        assert_eq!(executed.answer.usage, LIMITS.usage);
        assert_eq!(executed.reason.as_deref(), Some("the receipt of the call is full"));
        let bytes = executed.work.expect("work").to_text().len();
        assert!(bytes < 3_000_000, "{bytes}");
    }
}

#[test]
fn a_nested_agent_works_within_what_is_left_and_its_work_is_in_the_receipt() {
    let inner = agent("inner", &[]);
    let outer = agent("outer", &[tool_of(&inner)]);
    let member = Member::new().with(&inner);
    let order =
        |fuel: u64| json!({"do": "nest", "agent": "inner", "order": {"do": "burn", "fuel": fuel}});
    let executed = member.run(&outer, &order(400));
    assert_eq!(executed.answer.usage.fuel, 400);
    let work = executed.work.expect("work");
    assert_eq!(work.as_json()["steps"][0]["agent"]["agentId"], json!(inner.id));
    let executed = member.run(&outer, &order(1_001));
    assert_eq!(executed.answer.outcome, Outcome::Failure);
    let work = executed.work.expect("work");
    assert_eq!(work.as_json()["steps"][0]["agent"]["outcome"], "failure", "as far as it came");
}

#[test]
fn an_agent_reaches_only_the_agents_and_tools_that_it_names() {
    let inner = agent("inner", &[]);
    let member = Member::new().with(&inner);
    let order = json!({"do": "nest", "agent": "inner", "order": {"do": "answer", "with": "in"}});
    let executed = member.run(&agent("outer", &[]), &order);
    assert_eq!(executed.answer.outcome, Outcome::Failure);
    assert!(executed.reason.expect("why").ends_with("is not among the agent's tools"));
    let without = member.run(&agent("plain", &[]), &json!({"do": "tool"}));
    assert_eq!(without.result, b"", "longer than the result may be");
    let with = member.run(&agent("counting", &["math_eval".to_owned()]), &json!({"do": "tool"}));
    assert_eq!(with.result, b"42");
}

#[test]
fn agents_nest_three_deep() {
    let third = agent("third", &[]);
    let second = agent("second", &[tool_of(&third)]);
    let first = agent("first", &[tool_of(&second)]);
    let above = agent("above", &[tool_of(&first)]);
    let member = Member::new().with(&third).with(&second).with(&first);
    let nest = |name: &str, order: Value| json!({"do": "nest", "agent": name, "order": order});
    let below = nest("third", json!({"do": "answer", "with": "deep"}));
    let two = nest("second", below.clone());
    assert_eq!(member.run(&first, &nest("second", below)).result, b"deep");
    let executed = member.run(&above, &nest("first", two));
    assert_eq!(executed.reason.as_deref(), Some("agents nest at most 3 deep"));
}

#[test]
fn what_is_not_here_makes_a_member_unable_and_nothing_else() {
    let inner = agent("inner", &[]);
    let outer = agent("outer", &[tool_of(&inner)]);
    let member = Member::new();
    let missing = member.executors.missing(&outer, &member.library).expect("something");
    assert_eq!(missing, format!("the agent {} 1.0.0 is not here", inner.id));
    let order = json!({"do": "nest", "agent": "inner", "order": {"do": "answer", "with": ""}});
    let executed = member.run(&outer, &order);
    assert_eq!(executed.answer.outcome, Outcome::Unable);
    assert_eq!(executed.answer.usage, Usage::default());
    let member = member.with(&inner);
    assert_eq!(member.executors.missing(&outer, &member.library), None);
    let none = Executors::default().missing(&outer, &member.library);
    assert_eq!(none, Some(format!("the executor model-1:{MANIFEST} is not here")));
}

#[test]
fn a_member_that_stops_says_that_it_is_unable() {
    let token = CancellationToken::new();
    token.cancel();
    let (order, stop) = (br#"{"do":"answer","with":"a"}"#, Stop::new(token, None));
    let executed = Member::new().execute(&agent("speaker", &[]), order, LIMITS, stop);
    assert_eq!(executed.answer.outcome, Outcome::Unable);
}

#[test]
fn agents_that_are_tools_of_each_other_are_found_out() {
    let id = |name: &str| format!("agent:{}@1.0.0", Hash::digest(name.as_bytes()));
    let (one, other) = (agent("one", &[id("other")]), agent("other", &[id("one")]));
    let member = Member::new().with(&one).with(&other);
    let missing = member.executors.missing(&one, &member.library);
    assert_eq!(missing.as_deref(), Some("agents nest deeper than 3"));
}
