//! Tools of MCP servers: programs that the operator names, over their standard input and output, and
//! servers on the network, over streamable HTTP.
//!
//! ```text
//! Server --task--> connect (handshake, list of tools) --> serve --> close --+
//!                     ^                                                     |
//!                     +------------- pause, longer each time ---------------+
//! ```
//!
//! A server's tools are offered while it is connected. Nothing that a server says is trusted: its
//! hints about its tools are not read, its lists, lines and schemas are bounded.

mod config;
mod connection;
mod offer;
mod process;
mod server;

pub use config::{SandboxConfig, ServerConfig};
pub use server::{Server, StartError};

#[cfg(test)]
mod tests;
