//! The tools that a miner runs for a model (docs/miner.md, section Tools).
//!
//! ```text
//! model --name, arguments--> Toolbox: granted? small enough? fits the schema?
//!                               |  time limit, panic caught, output cut
//!                               v
//!                    built-in tool | tool of an MCP server --> Outcome --> AGENT_STEP
//! ```
//!
//! Invariants: a call always ends, in an [`Outcome`] and never in an error of the miner; a run gets
//! only tools that both its whitelist and the operator name; what a tool's failure says to the model
//! never holds a name of a Rust type, so that hashes of results mean the same everywhere.
//!
//! Entry points: [`Config`], [`Toolbox`], [`Grant`], [`Tool`], [`sandbox`].
//!
//! Not here: tools that the requester runs itself (they are only encoded), what a model is told
//! about a result, and when a run is claimed.

#[cfg(feature = "clients")]
mod apart;
mod arguments;
#[cfg(feature = "clients")]
mod builtin;
#[cfg(feature = "clients")]
mod chain;
#[cfg(feature = "clients")]
mod config;
#[cfg(feature = "clients")]
mod config_fault;
mod definition;
#[cfg(feature = "clients")]
mod fetch;
mod hashes;
mod math;
#[cfg(feature = "clients")]
pub mod mcp;
mod names;
#[cfg(feature = "clients")]
mod offered;
mod outcome;
mod pattern;
pub mod ports;
mod pure;
#[cfg(feature = "clients")]
pub mod sandbox;
mod schema_cost;
#[cfg(feature = "clients")]
mod surroundings;
mod time;
mod tool;
#[cfg(feature = "clients")]
mod toolbox;

pub use arguments::{Schema, SchemaFault};
#[cfg(feature = "clients")]
pub use config::{Config, FetchConfig, LimitsConfig};
#[cfg(feature = "clients")]
pub use config_fault::{ConfigFault, ConfigFaults};
pub use hashes::{args_hash, canonical_json, offer_hash, result_hash};
pub use names::{BUILT_IN, OFFERED_BY_DEFAULT};
pub use outcome::{Outcome, record};
pub use pure::{call_pure, pure_spec};
#[cfg(feature = "clients")]
pub use surroundings::Surroundings;
pub use tool::{Class, Code, Failure, Limits, Terms, Tool};
#[cfg(feature = "clients")]
pub use toolbox::{Grant, OpenError, Toolbox};

#[cfg(test)]
pub(crate) mod tests;
