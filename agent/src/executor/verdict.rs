//! What an agent answers.

/// How an execution ended for everybody.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The ABI-encoded outputs.
    Success(Vec<u8>),
    /// Why the agent does not answer.
    Failure(String),
}
