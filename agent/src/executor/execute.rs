//! What every executor is: a function of an agent and a payload.

use std::fmt::Debug;

use super::halt::Halt;
use super::scope::Scope;
use super::{Agent, Verdict};

/// One kind of executor: a pure function of an agent and a payload, as far as committees compare it.
pub trait Execute: Debug + Send + Sync {
    /// Runs an agent whose executor this is, on a thread that it may block.
    ///
    /// # Errors
    /// [`Halt`] where this member cannot execute the agent, or a limit of the call is reached.
    fn execute(
        &self,
        agent: &Agent,
        payload: &[u8],
        scope: &mut Scope<'_>,
    ) -> Result<Verdict, Halt>;

    /// Why it cannot work at the moment; none if it can.
    fn absent(&self) -> Option<String> {
        None
    }
}
