//! How a command failed, and with which exit code.

use std::io;

use wallet::{ClientError, WalletError};

/// A command's failure. Codes: 1 failed, 2 wrong usage, 3 node not reachable, 4 refused by the chain.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The command line does not make sense, or something needed was not given.
    #[error("{0}")]
    Usage(String),
    /// The work failed.
    #[error("{0}")]
    Failed(String),
    /// The node stopped, and must not be started again before somebody has looked at it.
    #[error("{0}; do not start this node again before you know why (docs/operating.md section 3)")]
    Unsafe(String),
    /// The chain's rules refuse a transaction: its code and sentence.
    #[error("refused by the chain: {code}: {message}")]
    Refused {
        /// The code of docs/protocol.md section 9.
        code: String,
        /// The sentence for people.
        message: String,
    },
    /// A call to the node failed.
    #[error(transparent)]
    Client(ClientError),
    /// Keys or wallet files are at fault.
    #[error(transparent)]
    Wallet(#[from] WalletError),
    /// Reading or writing failed.
    #[error("{what}: {source}")]
    File {
        /// What was read or written.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// Writing the answer failed.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

impl CliError {
    /// The process's exit code. A reader who closed the pipe early is not a failure.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Refused { .. } => 4,
            Self::Unsafe(_) => 5,
            Self::Client(error) => client_exit_code(error),
            Self::Output(_) if self.is_quiet() => 0,
            Self::Failed(_) | Self::Wallet(_) | Self::File { .. } | Self::Output(_) => 1,
        }
    }

    /// True when nothing is to be said: the reader of the output went away.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// A failure of reading or writing `what`.
    pub(super) fn file(what: impl std::fmt::Display, source: io::Error) -> Self {
        Self::File { what: what.to_string(), source }
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        let ClientError::Refused(refusal) = error else {
            return Self::Client(error);
        };
        Self::Refused { code: refusal.code, message: refusal.message }
    }
}

/// Exit codes of failed calls.
fn client_exit_code(error: &ClientError) -> u8 {
    match error {
        ClientError::Unreachable { .. } => 3,
        ClientError::BadUrl { .. } | ClientError::BadParams { .. } => 2,
        ClientError::Refused(_) => 4,
        ClientError::NotFound { .. }
        | ClientError::NotServing { .. }
        | ClientError::Limited { .. }
        | ClientError::Other { .. }
        | ClientError::Strange { .. }
        | ClientError::Unreadable { .. }
        | ClientError::Unwritable { .. }
        | ClientError::WrongHash { .. } => 1,
    }
}
