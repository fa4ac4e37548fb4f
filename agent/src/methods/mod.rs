//! The five agent methods: what a run asks for, how its output is judged, what its answer is.
//!
//! ```text
//! prompt ──Request::parse──▶ Request ──AgentSession::begin──▶ messages, tools, constraint ──▶ model
//!                                        ▲                                            │
//!                                        └── results ── Move::Tools ◀── AgentSession::take ◀─┘
//!                                                       Move::Finish ──▶ Answer ──▶ chain
//! ```
//!
//! Everything here is pure: a miner interprets requests with it, a requester writes them and reads
//! answers, and neither waits for anything. docs/agent-methods.md has the rules.
//!
//! Entry points: [`Request::parse`], [`Request::to_prompt`], [`AgentSession`], [`Answer::parse`].
//! Not here: who claims a run, models, the tools themselves, the chain.

mod abi;
mod answer;
mod ask;
mod conversation;
mod functions;
mod integer;
mod members;
mod messages;
mod method;
mod path;
mod refused;
mod request;
mod schema;
mod session;
#[cfg(test)]
mod tests;

pub use answer::{ANSWER_BYTES_MAX, Answer, HandBack, PendingCall, Reason};
pub use ask::{
    ALLOWED_VALUE_BYTES_MAX, ALLOWED_VALUES_BYTES_MAX, ALLOWED_VALUES_MAX, Ask, ITERATIONS_MAX,
    MCP_SERVER_URL_BYTES_MAX, MCP_SERVERS_MAX,
};
pub use conversation::{CALL_ID_BYTES_MAX, MESSAGES_MAX};
pub use functions::{
    CALLDATA_BYTES_MAX, DESCRIPTION_BYTES_MAX, Declaration, DecodedCall, FUNCTIONS_MAX, Functions,
    NAME_BYTES_MAX, PARAMETERS_MAX, SIGNATURE_BYTES_MAX,
};
pub use integer::Integer;
#[cfg(feature = "clients")]
pub(crate) use messages::first_of;
pub use messages::{
    DECLARED_MAX, Declared, Messages, OUTPUT_TOKENS_MAX, ResponseSchema, STOP_BYTES_MAX, STOPS_MAX,
    ToolChoice,
};
pub use method::Method;
pub use refused::Refused;
pub use request::{ENVELOPE_BYTES_MAX, Parsed, Request, Written};
pub use schema::bytes_min;
pub use schema::{
    SCHEMA_BRANCHES_MAX, SCHEMA_BYTES_MAX, SCHEMA_COUNT_MAX, SCHEMA_DEPTH_MAX, SCHEMA_OPTIONAL_MAX,
    SCHEMA_PARTS_MAX, SCHEMA_TEXT_BYTES_MAX, SCHEMA_VALUES_MAX, SCHEMAS_BYTES_MAX, Schema,
};
pub use session::{AgentSession, Ending, Move};
