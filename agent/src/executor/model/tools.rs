//! The tools of an agent of `model-1`: built-in ones, and the methods of other agents.

use std::collections::BTreeMap;

use types::agent::Tool;

use super::super::{Agent, Halt, Scope};
use super::method_tool::MethodTool;
use crate::messages::{ToolCall, ToolSpec};
use crate::text::cut;
use crate::tools::{Limits, pure_spec};

/// The tools of one agent, each with a name of its own.
#[derive(Debug)]
pub(super) struct OwnTools {
    specs: Vec<ToolSpec>,
    methods: BTreeMap<String, MethodTool>,
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
                    for method in MethodTool::all(&nested, |name| tools.has(name)) {
                        let name = method.spec().name.clone();
                        tools.specs.push(method.spec().clone());
                        tools.methods.insert(name, method);
                    }
                }
            }
        }
        Ok(tools)
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
        let Some(method) = self.methods.get(&call.name) else {
            return Ok(scope.tool(agent, &call.name, &call.arguments)?.1);
        };
        let payload = match method.payload(&call.arguments) {
            Ok(payload) => payload,
            Err(error) => return Ok(failed(&error)),
        };
        let Agent { id, metadata, .. } = &**method.agent();
        let answer = match scope.agent(agent, id, metadata.version.as_str(), &payload)? {
            Ok(nested) => method.text(nested.verdict),
            Err(why) => Err(why),
        };
        Ok(answer.map_or_else(|why| failed(&why), |text| bounded(&text)))
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
