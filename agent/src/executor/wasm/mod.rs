//! The executor `wasm-1`: programs in WebAssembly that agents publish (docs/market.md section 9.4).
//!
//! ```text
//!   execute ──▶ Program (bounds, compiled once) ──▶ Guest (memory, fuel in slices)
//!                                                     │ Ask: the program waits, the host answers
//!                                                     ▼
//!                                                   asks: the model, tools, agents by way of the Scope
//! ```
//!
//! Invariants: what a program burns depends on the program, the payload and the answers it gets alone, not
//! on whether it was compiled before, nor on how the fuel is handed out. The program never runs while the
//! host answers it, so it cannot call itself through the host.

mod asks;
mod bounds;
mod cache;
mod end;
mod fuel;
mod guest;
mod imports;
mod limiter;
mod program;
#[cfg(test)]
mod tests;

pub use program::{Refused, check};

use types::agent;

use self::cache::Cache;
use self::end::End;
use self::guest::Guest;
use super::{Agent, Execute, Halt, Scope, Verdict};

/// The executor `wasm-1`, with or without a model.
#[derive(Debug, Default)]
pub struct Wasm {
    cache: Cache,
}

impl Execute for Wasm {
    fn execute(
        &self,
        agent: &Agent,
        payload: &[u8],
        scope: &mut Scope<'_>,
    ) -> Result<Verdict, Halt> {
        let agent::Executor::Wasm { blob_id, .. } = &agent.metadata.executor else {
            return Err(Halt::Unable("the agent is no program".to_owned()));
        };
        let Some(method) = agent.method_of(payload) else {
            return Ok(Verdict::Failure(
                "the payload calls none of the agent's methods".to_owned(),
            ));
        };
        if method.decode_arguments(payload).is_err() {
            return Ok(Verdict::Failure("the payload has no arguments of the method".to_owned()));
        }
        let bytes = scope.program(blob_id)?;
        let answer = Guest::begin(&self.cache, &bytes, agent, scope)
            .and_then(|mut guest| guest.handle(payload));
        match answer {
            Ok(result) if method.decode_answer(&result).is_err() => {
                let reason = "the program's result is none of the method's outputs";
                Ok(Verdict::Failure(reason.to_owned()))
            }
            Ok(result) => Ok(Verdict::Success(result)),
            Err(End::Failure(reason)) => Ok(Verdict::Failure(reason)),
            Err(End::Halt(halt)) => Err(halt),
        }
    }
}
