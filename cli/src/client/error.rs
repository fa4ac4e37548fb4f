//! How a command failed, and with which exit code.

use std::io;

use miner::chain::ChainError;
use serde_json::Value;
use types::Hash;
use wallet::{ClientError, WalletError};

use super::output::one_line;

/// Longer places in metadata are cut.
const PATH_CHARS_MAX: usize = 200;

/// A command's failure. Codes: 1 failed, 2 wrong usage, 3 node not reachable, 4 rejected by the chain.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The command line does not make sense, or something needed was not given.
    #[error("{0}")]
    Usage(String),
    /// The work failed.
    #[error("{0}")]
    Failed(String),
    /// The node stopped, and must not be started again before somebody has looked at it.
    #[error("{0}; do not start this node again before you know why (docs/operations.md section 7)")]
    Unsafe(String),
    /// The node stopped before a fork that this program does not know: another release goes on.
    #[error("{0}")]
    UnknownFork(String),
    /// The chain's rules refuse a transaction: its code and sentence.
    #[error("rejected by the chain: {code}: {message}")]
    Rejected {
        /// The code of docs/protocol.md section 9.
        code: String,
        /// The sentence for people.
        message: String,
    },
    /// A call to the node failed.
    #[error(transparent)]
    Client(ClientError),
    /// The node cannot answer now.
    #[error("the node cannot answer: {0}")]
    Away(String),
    /// The node of a home does not answer.
    #[error("the node at {address} does not answer: {why}")]
    NoAnswer {
        /// Where it was asked.
        address: std::net::SocketAddr,
        /// What happened instead.
        why: String,
    },
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
    /// A failure, and what its reader has to know before doing the same again.
    #[error("{failure}\n{note}")]
    Noted {
        /// What failed.
        failure: Box<Self>,
        /// What is left of the work.
        note: String,
    },
    /// Writing the answer failed.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

/// What a command ends with.
pub type Outcome = Result<(), CliError>;

impl CliError {
    /// The process's exit code. A reader who closed the pipe early is not a failure.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::NoAnswer { .. } | Self::Away(_) => 3,
            Self::Rejected { .. } => 4,
            Self::Unsafe(_) | Self::UnknownFork(_) => 5,
            Self::Client(error) => client_exit_code(error),
            Self::Wallet(error) if is_wrong_usage(error) => 2,
            Self::Noted { failure, .. } => failure.exit_code(),
            Self::Output(_) if self.is_quiet() => 0,
            Self::Failed(_) | Self::Wallet(_) | Self::File { .. } | Self::Output(_) => 1,
        }
    }

    /// True when nothing is to be said: the reader of the output went away.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Whether the chain's rules refuse a transaction with this code.
    pub(super) fn is_rejection(&self, wanted: &str) -> bool {
        match self {
            Self::Rejected { code, .. } => code == wanted,
            Self::Noted { failure, .. } => failure.is_rejection(wanted),
            Self::Usage(_)
            | Self::Failed(_)
            | Self::Unsafe(_)
            | Self::UnknownFork(_)
            | Self::Client(_)
            | Self::NoAnswer { .. }
            | Self::Away(_)
            | Self::Wallet(_)
            | Self::File { .. }
            | Self::Output(_) => false,
        }
    }

    /// The same failure with a note below it.
    pub(crate) fn noted(self, note: String) -> Self {
        Self::Noted { failure: Box::new(self), note }
    }

    /// The failure of work on a transaction that was signed already: it names the hash, so that
    /// nobody signs and pays a second time unaware.
    pub(super) fn after_signing(self, hash: &Hash) -> Self {
        let note = match self {
            Self::Rejected { .. } => format!("the transaction was {hash}"),
            Self::Usage(_)
            | Self::Failed(_)
            | Self::Unsafe(_)
            | Self::UnknownFork(_)
            | Self::Client(_)
            | Self::NoAnswer { .. }
            | Self::Away(_)
            | Self::Wallet(_)
            | Self::File { .. }
            | Self::Noted { .. }
            | Self::Output(_) => format!(
                "transaction {hash} may have been accepted; before you repeat it, ask: \
                 ombra query tx {hash}"
            ),
        };
        self.noted(note)
    }

    /// A failure of reading or writing `what`.
    pub(crate) fn file(what: impl std::fmt::Display, source: io::Error) -> Self {
        Self::File { what: what.to_string(), source }
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        let ClientError::Rejected(rejection) = error else {
            return Self::Client(error);
        };
        let message = with_rule(rejection.message, &rejection.data);
        Self::Rejected { code: rejection.code, message }
    }
}

/// The sentence, with the place and the number of the broken rule if an agent's metadata is at fault.
fn with_rule(message: String, data: &Value) -> String {
    let (Some(path), Some(rule)) = (data["path"].as_str(), data["rule"].as_u64()) else {
        return message;
    };
    let place = if path.is_empty() { "the top".to_owned() } else { one_line(path, PATH_CHARS_MAX) };
    format!("{message} (at {place}; rule {rule} of docs/market.md section 3)")
}

impl From<ChainError> for CliError {
    fn from(error: ChainError) -> Self {
        match error {
            ChainError::Rejected { code, message } => Self::Rejected { code, message },
            ChainError::Away(why) => Self::Away(why),
            ChainError::NoHistory(why) | ChainError::Strange(why) => Self::Failed(why),
        }
    }
}

/// Whether the command line named or gave the wrong thing.
const fn is_wrong_usage(error: &WalletError) -> bool {
    match error {
        WalletError::BadMnemonic(_)
        | WalletError::WordCount(_)
        | WalletError::IndexTooHigh(_)
        | WalletError::BadPrivateKey
        | WalletError::EmptyPassword
        | WalletError::NoMnemonic
        | WalletError::BadName
        | WalletError::NotFound { .. }
        | WalletError::Ambiguous { .. }
        | WalletError::OtherChain { .. }
        | WalletError::NotTheNamed { .. }
        | WalletError::BadChainId { .. }
        | WalletError::ChainNotKept { .. } => true,
        WalletError::NoKeyAtIndex(_)
        | WalletError::NoRandomness(_)
        | WalletError::NotAWalletFile(_)
        | WalletError::UnknownVersion(_)
        | WalletError::WrongPassword
        | WalletError::Inconsistent(_)
        | WalletError::ChainDamaged { .. }
        | WalletError::Exists(_)
        | WalletError::Io { .. } => false,
    }
}

/// Exit codes of failed calls.
fn client_exit_code(error: &ClientError) -> u8 {
    match error {
        ClientError::Unreachable { .. } => 3,
        ClientError::BadUrl { .. } | ClientError::BadParams { .. } | ClientError::OtherChain(_) => {
            2
        }
        ClientError::Rejected(_) => 4,
        ClientError::NotFound { .. }
        | ClientError::NotServing { .. }
        | ClientError::HistoryUnavailable { .. }
        | ClientError::Limited { .. }
        | ClientError::Other { .. }
        | ClientError::Strange { .. }
        | ClientError::Unreadable { .. }
        | ClientError::Unwritable { .. }
        | ClientError::WrongHash { .. } => 1,
    }
}
