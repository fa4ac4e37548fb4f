//! Calls of agents: a committee of miners answers, and what its majority says is the answer
//! (docs/market.md section 5).
//!
//! ```text
//! agent.rs      published agents, as the chain has them
//! question.rs   a call before it is asked: its payload, its prices, what it holds
//! answer.rs     a call that is settled: the answer, who agreed, the bill
//! pinned.rs     methods that the settings make tools of
//! ```

mod agent;
mod answer;
mod pinned;
mod question;

pub use self::agent::Published;
pub(crate) use self::agent::{Agents, answer_schema, arguments_schema};
pub use answer::CallAnswer;
pub(crate) use answer::{CallState, Closed};
pub use pinned::Pinned;
pub use question::CallQuestion;
pub(crate) use question::{AskedCall, COMMITTEE_DEFAULT, TIMEOUT_MS_DEFAULT};
