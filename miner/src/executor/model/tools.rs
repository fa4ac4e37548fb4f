//! The tools of an agent of `model-1`: built-in ones, and the methods of other agents.

use std::collections::BTreeMap;

use serde_json::Value;
use types::Hash;
use types::abi::Method;
use types::agent::Tool;

use super::super::{Agent, Halt, Scope, Verdict};
use super::values::{self, Detail};
use crate::talk::{ToolCall, ToolSpec};
use crate::text::cut;
use crate::tools::{Limits, canonical_json, pure_spec};

/// The tools of one agent, each with a name of its own.
#[derive(Debug)]
pub(super) struct OwnTools {
    specs: Vec<ToolSpec>,
    methods: BTreeMap<String, NestedMethod>,
}

/// A method of a nested agent.
#[derive(Debug)]
struct NestedMethod {
    id: Hash,
    version: String,
    method: Method,
}

impl OwnTools {
    /// The tools that the metadata name, in their order; of an agent the methods in theirs.
    pub(super) fn of(agent: &Agent, scope: &Scope<'_>) -> Result<Self, Halt> {
        let mut tools = Self { specs: Vec::new(), methods: BTreeMap::new() };
        for tool in &agent.metadata.tools {
            match tool {
                Tool::BuiltIn(name) => {
                    let spec = pure_spec(name).filter(|_| !tools.has(name));
                    tools.specs.extend(spec.cloned());
                }
                Tool::Agent { id, version } => {
                    let nested = scope.described(id, version.as_str())?;
                    for method in &nested.metadata.methods {
                        tools.add(&nested, method);
                    }
                }
            }
        }
        Ok(tools)
    }

    fn add(&mut self, nested: &Agent, method: &Method) {
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
        let agent: String = nested.metadata.name.chars().map(plain).collect();
        let wanted = format!("{agent}_{}", method.name.replace('$', "_"));
        let mut name = wanted.clone();
        let mut number: u32 = 2;
        while self.has(&name) {
            name = format!("{wanted}_{number}");
            number = number.saturating_add(1);
        }
        let parts = [nested.description.as_str(), nested.describe(method)];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        self.specs.push(ToolSpec {
            name: name.clone(),
            description: parts.collect::<Vec<_>>().join("\n"),
            parameters: values::schema(&method.inputs, Detail::Told),
        });
        let version = nested.metadata.version.as_str().to_owned();
        self.methods.insert(name, NestedMethod { id: nested.id, version, method: method.clone() });
    }

    fn has(&self, name: &str) -> bool {
        self.specs.iter().any(|spec| spec.name == name)
    }

    /// As a model sees them.
    pub(super) fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    /// Calls one; what goes wrong is a result for the model.
    pub(super) fn call(
        &self,
        agent: &Agent,
        scope: &mut Scope<'_>,
        call: &ToolCall,
    ) -> Result<String, Halt> {
        let Some(NestedMethod { id, version, method }) = self.methods.get(&call.name) else {
            return Ok(scope.tool(agent, &call.name, &call.arguments).1);
        };
        let arguments = Value::Object(call.arguments.clone()).to_string();
        let payload = match method.encode_arguments(&arguments) {
            Ok(payload) => payload,
            Err(error) => return Ok(failed(&error.to_string())),
        };
        let answer = match scope.agent(agent, id, version, &payload)? {
            Ok(nested) => nested.verdict,
            Err(why) => Verdict::Failure(why),
        };
        Ok(match answer {
            Verdict::Failure(why) => failed(&why),
            Verdict::Success(result) => match method.decode_answer(&result) {
                // An object, so that a text in it is quoted and says nothing on its own.
                Ok(decoded) => {
                    let answer = values::by_name(&method.outputs, values::of(&decoded));
                    bounded(&canonical_json(&answer))
                }
                Err(error) => failed(&format!("the answer cannot be read: {error}")),
            },
        })
    }
}

/// A failure as a model reads it.
fn failed(why: &str) -> String {
    bounded(&format!("error: {why}"))
}

/// As much of a result as a built-in tool may have.
fn bounded(result: &str) -> String {
    cut(result, Limits::DEFAULT.output_bytes_max).to_owned()
}
