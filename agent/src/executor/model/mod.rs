//! Agents of `model-1`: a prompt for a language model, and tools (docs/market.md section 9.3).
//!
//! ```text
//!   payload ──▶ one of the four methods of docs/agent-methods.md ──▶ published ─┐
//!          └──▶ any other method ──────────────────────────────────▶ own ───────┤
//!                                                                 ModelAccess, OwnTools ──▶ Scope
//! ```
//!
//! Invariant: what a model reads, and why an agent fails, is the same for every member; so are the words
//! in here.

mod method_tool;
mod model_access;
mod own;
mod published;
#[cfg(test)]
mod tests;
mod tools;
pub mod values;

pub use self::method_tool::MethodTool;

use self::model_access::{ModelAccess, Stopped};
use super::{Agent, Execute, Halt, Scope, Verdict};

/// Executes agents that are a prompt for a language model.
#[derive(Clone, Copy, Debug, Default)]
pub struct ModelAgents;

impl Execute for ModelAgents {
    fn execute(
        &self,
        agent: &Agent,
        payload: &[u8],
        scope: &mut Scope<'_>,
    ) -> Result<Verdict, Halt> {
        match answer(agent, payload, scope) {
            Ok(result) => Ok(Verdict::Success(result)),
            Err(Stopped::Failure(why)) => Ok(Verdict::Failure(why)),
            Err(Stopped::Halt(halt)) => Err(halt),
        }
    }
}

fn answer(agent: &Agent, payload: &[u8], scope: &mut Scope<'_>) -> Result<Vec<u8>, Stopped> {
    let method = agent.method_of(payload);
    let method =
        method.ok_or_else(|| Stopped::failure("the payload calls no method of the agent"))?;
    let published = published::find(method);
    let arguments = match published {
        Some(_) => published::unnamed(method).decode_arguments(payload),
        None => method.decode_arguments(payload),
    };
    let arguments =
        arguments.map_err(|error| Stopped::Failure(format!("the arguments: {error}")))?;
    let arguments = values::of(&arguments);
    let mut access = ModelAccess::of(agent, scope)?;
    match published {
        Some(published) => published::answer(published, &arguments, &mut access),
        None => own::answer(method, arguments, &mut access),
    }
}
