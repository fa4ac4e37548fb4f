//! Programs of `wasm-1`: what they may do, and what they may not do to a member.

mod asks;
mod attacks;
mod cache;
mod cost;
mod examples;
mod floats;
mod modules;

use std::sync::Arc;

use serde_json::{Value, json};
use types::call::{CallLimits, Outcome};
use types::{Hash, Usage};

use crate::executor::tests::{Member, never};
use crate::executor::{
    Agent, Chosen, Executed, Executors, Inference, Model, ModelAsk, ModelFault, Reading, Stop,
};

const MANIFEST: Hash = Hash::new([7; 32]);
const LIMITS: CallLimits = CallLimits {
    usage: Usage { input_tokens: 1_000, output_tokens: 100, fuel: 50_000_000 },
    result_bytes: 4_096,
};

/// A module with memory, an `alloc` that gives the same place each time, and a `handle` with this body.
fn module(imports: &str, body: &str) -> Vec<u8> {
    with_alloc(imports, "i32.const 4096", body)
}

fn with_alloc(imports: &str, alloc: &str, body: &str) -> Vec<u8> {
    with_memory(1, imports, alloc, body)
}

fn with_memory(pages: u32, imports: &str, alloc: &str, body: &str) -> Vec<u8> {
    wasm(&format!(
        "(module {imports} (memory (export \"memory\") {pages})
           (func (export \"alloc\") (param i32) (result i32) {alloc})
           (func (export \"handle\") (param i32 i32) (result i64) {body}))"
    ))
}

/// A body that does something so often and answers with nothing. It declares a local, so it must come first.
fn repeated(times: u32, what: &str) -> String {
    format!(
        "(local $n i32)
         (loop $again {what}
           (local.set $n (i32.add (local.get $n) (i32.const 1)))
           (br_if $again (i32.lt_u (local.get $n) (i32.const {times}))))
         i64.const 32"
    )
}

fn wasm(text: &str) -> Vec<u8> {
    wat::parse_str(text).expect("the text of a module")
}

/// The text of a segment at a place.
fn says(place: usize, text: &str) -> String {
    let bytes: String = text.bytes().map(|byte| format!("\\{byte:02x}")).collect();
    format!("(data (i32.const {place}) \"{bytes}\")")
}

/// A module that asks an import for a text, and answers with what comes back.
fn asking(import: &str, text: &str) -> Vec<u8> {
    let ask = "(func $ask (param i32 i32) (result i64))";
    let imports = format!("(import \"ombra\" \"{import}\" {ask}) {}", says(8192, text));
    telling(&imports, &format!("(call $ask (i32.const 8192) (i32.const {}))", text.len()))
}

/// A module that calls the host, and answers with what comes back: an encoded text of at most 3 KiB.
fn telling(imports: &str, call: &str) -> Vec<u8> {
    let length = "(i32.wrap_i64 (local.get $told))";
    module(
        imports,
        &format!(
            "(local $told i64)
             (local.set $told {call})
             ;; the offset, 32, and the length, both big-endian, then the text
             (i32.store8 (i32.const 95) (i32.const 32))
             (i32.store8 (i32.const 126) (i32.shr_u {length} (i32.const 8)))
             (i32.store8 (i32.const 127) {length})
             (memory.copy (i32.const 128)
               (i32.wrap_i64 (i64.shr_u (local.get $told) (i64.const 32))) {length})
             (i64.or (i64.const 0x4000000000)
               (i64.extend_i32_u
                 (i32.and (i32.add {length} (i32.const 95)) (i32.const -32))))"
        ),
    )
}

/// A module that asks an agent with this payload, and answers with what comes back.
fn asking_agent(agent: &Agent, payload: &[u8]) -> Vec<u8> {
    let payload = const_hex::encode_prefixed(payload);
    let ask = json!({"agent": agent.id, "version": "1.0.0", "payload": payload});
    asking("agent", &ask.to_string())
}

/// An agent, and one that has it for a tool.
fn nested() -> (Arc<Agent>, Arc<Agent>) {
    let inner = agent("inner", "uint256", &[]);
    let outer = agent("outer", "string", &[format!("agent:{}@1.0.0", inner.id)]);
    (inner, outer)
}

/// Metadata of a program's agent with these outputs of its method `f(uint256)`, and these tools.
fn agent(name: &str, output: &str, tools: &[String]) -> Arc<Agent> {
    let blob = format!("blob-{name}");
    let metadata = json!({
        "name": name, "description": "A program.", "version": "1.0.0",
        "container_image": format!("ombra-blob:{blob}"),
        "executor": {
            "kind": "wasm", "blobId": blob, "runtime": "wasm-1", "tools": tools, "model": MANIFEST,
        },
        "abi": [{
            "type": "function", "name": "f",
            "inputs": [{"name": "n", "type": "uint256"}],
            "outputs": [{"name": "out", "type": output}],
        }],
    });
    let id = Hash::digest(name.as_bytes());
    Arc::new(Agent::read(id, metadata.to_string().as_bytes()).expect("metadata in order"))
}

/// A model that says what it was asked, a token for each byte.
#[derive(Debug)]
struct Echo;

impl Model for Echo {
    fn manifest(&self) -> Hash {
        MANIFEST
    }

    fn infer(&self, ask: &ModelAsk<'_>, _: &Stop) -> Result<Inference, ModelFault> {
        let said: Vec<_> = ask.messages.iter().map(|it| it.text.as_str()).collect();
        if said.contains(&"machine") {
            return Err(ModelFault::Unable("the machine is too small".to_owned()));
        }
        if said.contains(&"nonsense") {
            return Err(ModelFault::Question("nobody can say that".to_owned()));
        }
        let text = said.join("+");
        let prompt = text.bytes().map(u32::from).collect();
        let chosen = vec![Chosen { token: 1, scores: None }];
        let readings = vec![Reading { prompt, chosen, ..Reading::default() }];
        let text = format!("{text} as {:?}", ask.form);
        Ok(Inference { text, readings, ..Inference::default() })
    }
}

/// A member with the model, and without programs.
fn member() -> Member {
    Member::of(Executors::of(Some(Arc::new(Echo))))
}

fn payload(agent: &Agent) -> Vec<u8> {
    agent.metadata.methods[0].encode_arguments("[5]").expect("arguments")
}

impl Member {
    fn with_program(mut self, agent: &Arc<Agent>, program: &[u8]) -> Self {
        self.library.add_agent(Arc::clone(agent));
        let name = &agent.metadata.name;
        self.library.add_program(format!("blob-{name}"), Arc::from(program));
        self
    }

    fn call(&self, agent: &Agent, limits: CallLimits) -> Executed {
        self.execute(agent, &payload(agent), limits, never())
    }
}

/// Limits with so much fuel.
fn fuelled(fuel: u64) -> CallLimits {
    CallLimits { usage: Usage { fuel, ..LIMITS.usage }, ..LIMITS }
}

/// Runs a program whose method has one output of type `uint256`.
fn run(program: &[u8]) -> Executed {
    run_within(program, LIMITS)
}

fn run_within(program: &[u8], limits: CallLimits) -> Executed {
    let agent = agent("alone", "uint256", &[]);
    member().with_program(&agent, program).call(&agent, limits)
}

/// Runs a program whose method has one output of type `string`, and tells that.
#[expect(
    clippy::unwrap_in_result,
    reason = "the error is what the agent says, not a fault of the test"
)]
fn said(member: &Member, agent: &Agent) -> Result<Value, String> {
    let executed = member.call(agent, LIMITS);
    match executed.answer.outcome {
        Outcome::Success => {
            let method = &agent.metadata.methods[0];
            let decoded = method.decode_answer(&executed.result).expect("outputs");
            let decoded: Value = serde_json::from_str(&decoded).expect("JSON");
            let text = decoded[0]["value"].as_str().expect("a text");
            Ok(serde_json::from_str(text).expect("JSON of the host"))
        }
        Outcome::Failure => Err(executed.reason.expect("why")),
        Outcome::Unable => Err(format!("unable: {}", executed.reason.expect("why"))),
    }
}

#[track_caller]
fn succeeds(program: &[u8]) -> Executed {
    let executed = run(program);
    assert_eq!(executed.answer.outcome, Outcome::Success, "{:?}", executed.reason);
    executed
}

#[track_caller]
fn fails(program: &[u8], reason: &str) -> Executed {
    let executed = run(program);
    assert_eq!(executed.reason.as_deref(), Some(reason));
    assert_eq!(executed.answer.outcome, Outcome::Failure);
    executed
}
