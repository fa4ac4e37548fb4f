//! A method of an agent as a tool of a model: what the model reads of it, and of its answers.

use std::sync::Arc;

use serde_json::{Map, Value};
use types::abi::Method;

use super::super::{Agent, Verdict};
use super::values::{self, Detail};
use crate::messages::ToolSpec;
use crate::tools::canonical_json;

/// A method of an agent as a tool of a model.
#[derive(Clone, Debug)]
pub struct MethodTool {
    spec: ToolSpec,
    agent: Arc<Agent>,
    method: Method,
}

impl MethodTool {
    /// The methods of an agent in their order, each with a name of its own: that of agent and method, and
    /// a number where `is_taken` says that there is such a tool already.
    #[must_use]
    pub fn all(agent: &Arc<Agent>, is_taken: impl Fn(&str) -> bool) -> Vec<Self> {
        let mut tools: Vec<Self> = Vec::new();
        for method in &agent.metadata.methods {
            let has = |name: &str| is_taken(name) || tools.iter().any(|it| it.spec.name == name);
            let name = free_name(agent, method, has);
            tools.push(Self::named(name, agent, method));
        }
        tools
    }

    fn named(name: String, agent: &Arc<Agent>, method: &Method) -> Self {
        let parts = [agent.description.as_str(), agent.describe(method)];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        let spec = ToolSpec {
            name,
            description: parts.collect::<Vec<_>>().join("\n"),
            parameters: values::schema(&method.inputs, Detail::Told),
        };
        Self { spec, agent: Arc::clone(agent), method: method.clone() }
    }

    /// As a model sees it.
    #[must_use]
    pub const fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Whose method it is.
    #[must_use]
    pub const fn agent(&self) -> &Arc<Agent> {
        &self.agent
    }

    /// The selector and the encoded arguments of a call.
    ///
    /// # Errors
    /// A sentence for the model, when the arguments are not those of the method.
    pub fn payload(&self, arguments: &Map<String, Value>) -> Result<Vec<u8>, String> {
        let arguments = Value::Object(arguments.clone()).to_string();
        self.method.encode_arguments(&arguments).map_err(|error| error.to_string())
    }

    /// What the model reads of an answer: the outputs by their names.
    ///
    /// # Errors
    /// A sentence for the model, when there is no success.
    pub fn text(&self, verdict: Verdict) -> Result<String, String> {
        match verdict {
            Verdict::Failure(why) => Err(why),
            Verdict::Success(result) => match self.method.decode_answer(&result) {
                // An object, so that a text in it is quoted and says nothing on its own.
                Ok(decoded) => {
                    let answer = values::by_name(&self.method.outputs, values::of(&decoded));
                    Ok(canonical_json(&answer))
                }
                Err(error) => Err(format!("the answer cannot be read: {error}")),
            },
        }
    }
}

fn free_name(agent: &Agent, method: &Method, is_taken: impl Fn(&str) -> bool) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let agent: String = agent.metadata.name.chars().map(plain).collect();
    let wanted = format!("{agent}_{}", method.name.replace('$', "_"));
    let mut name = wanted.clone();
    let mut number: u32 = 2;
    while is_taken(&name) {
        name = format!("{wanted}_{number}");
        number = number.saturating_add(1);
    }
    name
}
