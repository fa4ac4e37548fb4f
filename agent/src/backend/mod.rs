//! Models behind one trait: servers over HTTP, and a model inside the process; and both as agents of the
//! market ask them.

pub mod breaker;
mod check;
pub mod config;
mod count;
mod dialect;
mod embedded;
mod error;
mod http;
mod inference;
mod lines;
pub mod ollama;
pub mod openai;
mod prompted;
mod served;
#[cfg(test)]
mod tests;
mod wire;

pub use count::about as tokens_about;
pub use embedded::{Embedded, EmbeddedConfig, EmbeddedError, MarketModel};
pub use error::{BackendError, SetupError};
pub use inference::{Backend, Health, Manifest};
pub use served::ServedModel;
