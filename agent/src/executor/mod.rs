//! Executors: what runs an agent of the market for a payload (docs/market.md section 9).
//!
//! ```text
//!   Task ──▶ Executors::run ──▶ Execute: model-1, wasm-1, container
//!                                 │  ▲
//!                                 ▼  │ Scope: the model, the built-in tools, nested agents,
//!                               Meter     and the trace that becomes the receipt's `work`
//! ```
//!
//! Invariants: members of a committee have to agree byte for byte, so what an executor answers, counts and
//! traces is a function of the agent, the payload and the limits of the call alone. It never depends on the
//! time, on the machine, on threads, or on what ran before. What depends on them ends an execution as
//! [`Halt::Unable`], of which no member has to agree with another. Containers are the exception: nobody
//! compares their answers.
//!
//! Entry points: [`Executors::run`], [`Execute`], [`Scope`]. Not here: who is elected, commitments and
//! reveals, and where agents and programs are fetched.

mod agent;
#[cfg(feature = "clients")]
mod container;
mod execute;
mod halt;
mod inference;
mod library;
mod local;
mod meter;
mod model;
mod reading;
mod registry;
mod scope;
mod selftest;
#[cfg(test)]
mod tests;
mod trace;
mod verdict;
mod wasm;

pub use agent::{Agent, AgentError, MethodText, ModelSettings};
#[cfg(feature = "clients")]
pub use container::{Containers, ContainersConfig, executor_of};
pub use execute::Execute;
pub use halt::{Halt, Stop};
pub use inference::{Form, Inference, Model, ModelAsk, ModelFault, Served};
pub use library::Library;
pub use local::Local;
pub use meter::{Limit, Meter};
pub use model::{MethodTool, ModelAgents, values};
pub use reading::{Chosen, Reading};
pub use registry::{Executed, Executors, Task};
pub use scope::{Context, Nested, Scope};
pub use selftest::{SelftestFault, Tested, faults_of, selftest};
pub use trace::Work;
pub use verdict::Verdict;
pub use wasm::{Refused as ProgramRefused, Wasm, check as check_program};
