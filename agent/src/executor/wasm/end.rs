//! How a program ends without a result.

use crate::executor::Halt;

/// How a program ends without a result.
#[derive(Debug)]
pub(super) enum End {
    /// For everybody, why.
    Failure(String),
    /// Otherwise.
    Halt(Halt),
}

impl From<Halt> for End {
    fn from(halt: Halt) -> Self {
        Self::Halt(halt)
    }
}

impl From<&str> for End {
    fn from(reason: &str) -> Self {
        Self::Failure(reason.to_owned())
    }
}
