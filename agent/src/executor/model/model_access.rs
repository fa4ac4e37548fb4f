//! Where an agent asks its model and its tools.

use types::Hash;

use super::super::{Agent, Form, Halt, Inference, ModelSettings, Scope};
use super::tools::OwnTools;
use crate::messages::{Message, Role, ToolCall};

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Stopped {
    /// For everybody.
    Failure(String),
    /// A limit, or this member alone.
    Halt(Halt),
}

impl Stopped {
    pub(super) fn failure(why: &str) -> Self {
        Self::Failure(why.to_owned())
    }
}

impl From<Halt> for Stopped {
    fn from(halt: Halt) -> Self {
        Self::Halt(halt)
    }
}

/// An agent at work.
pub(super) struct ModelAccess<'d, 's> {
    agent: &'d Agent,
    scope: &'d mut Scope<'s>,
    manifest: Hash,
    pub(super) settings: &'d ModelSettings,
}

impl<'d, 's> ModelAccess<'d, 's> {
    pub(super) fn of(agent: &'d Agent, scope: &'d mut Scope<'s>) -> Result<Self, Stopped> {
        let settings = agent.model.as_ref().zip(agent.metadata.executor.manifest());
        let (settings, manifest) =
            settings.ok_or_else(|| Stopped::failure("the agent names no model"))?;
        Ok(Self { agent, scope, manifest, settings })
    }

    /// The agent's tools.
    pub(super) fn tools(&self) -> Result<OwnTools, Stopped> {
        Ok(OwnTools::of(self.agent, self.scope)?)
    }

    /// What is said of a method.
    pub(super) fn describe(&self, method: &types::abi::Method) -> &str {
        self.agent.describe(method)
    }

    /// Asks the model for at most so many tokens; answers with how many it put out.
    pub(super) fn ask(
        &mut self,
        messages: &[Message],
        form: &Form,
        output_tokens_max: u32,
    ) -> Result<(Inference, u32), Stopped> {
        let before = self.scope.left().output_tokens;
        let answer = self.scope.ask(self.manifest, messages, form, output_tokens_max)?;
        let inference = answer.map_err(Stopped::Failure)?;
        let used = before.saturating_sub(self.scope.left().output_tokens);
        Ok((inference, u32::try_from(used).unwrap_or(u32::MAX)))
    }

    /// Calls tools; answers with their results in the same order.
    pub(super) fn call(
        &mut self,
        tools: &OwnTools,
        calls: &[ToolCall],
    ) -> Result<Vec<String>, Stopped> {
        let mut results = Vec::new();
        for call in calls {
            results.push(tools.call(self.agent, self.scope, call)?);
        }
        Ok(results)
    }
}

/// A message of a conversation.
pub(super) const fn message(role: Role, text: String) -> Message {
    Message { role, text, tool_calls: Vec::new(), tool_call_id: None }
}

/// Instructions, one part after the other with a blank line between; none if all are empty.
pub(super) fn instructions(parts: &[&str]) -> Option<Message> {
    let parts: Vec<_> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| message(Role::System, parts.join("\n\n")))
}
