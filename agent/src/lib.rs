//! What executes agents: the methods of requests, the tools of models and their sandbox, the models
//! themselves, and the executors of agents of the market.
//!
//! ```text
//! methods ──a conversation, step by step──▶ messages
//! backend ──asks a model: a server's, or the one inside the process
//! tools   ──runs what a model calls: built-in tools, MCP servers, agents
//! executor──runs an agent for a payload: by a model, as a program, in a container
//! ```
//!
//! Invariant: nothing in this crate knows the miner's journal, money or policy. Only the tools that
//! query a node know the chain, and they use it as any client does.
//!
//! Entry points: [`methods::Request`], [`backend::Backend`], [`tools::Toolbox`],
//! [`executor::Executors`]. Rules: docs/agent-methods.md, docs/market.md section 9, docs/miner.md.
//!
//! The feature `clients`, which is on by default, has everything that asks others: servers of models, MCP
//! servers, engines of containers.
//!
//! Not here: which runs and calls are worked on, and what becomes of the answers.

// Some of what remains is there for the clients.
#![cfg_attr(not(feature = "clients"), allow(dead_code, reason = "clients use it"))]

#[cfg(feature = "clients")]
pub mod backend;
pub mod clock;
pub mod executor;
#[cfg(feature = "clients")]
pub mod http_client;
pub mod messages;
pub mod methods;
#[cfg(feature = "clients")]
pub mod model_file;
pub mod text;
#[cfg(feature = "clients")]
mod tls;
pub mod tools;
