//! The interface of `OpenAI`: what is asked, what is answered, and how faults are told. Pure.

mod answer;
mod calls;
mod fault;
mod messages;
mod request;
#[cfg(test)]
mod tests;
mod tools;

pub use answer::{Completion, Reply, Spent, chunks, completion};
pub use fault::ApiFault;
pub(crate) use request::short;
pub use request::{ChatRequest, parse};
