//! Why a back end gave no output.

use std::time::Duration;

/// Why a back end gave no output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackendError {
    /// No connection, or one that broke before an answer.
    #[error("{url} is not reachable: {cause}")]
    Unreachable {
        /// The address.
        url: String,
        /// What the connection said.
        cause: String,
    },
    /// It is overloaded or still loading: status 429 or 503.
    #[error("{url} is busy: status {status}: {body}")]
    Busy {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The begin of what it said.
        body: String,
        /// When to ask again, where it says so.
        retry_after: Option<Duration>,
    },
    /// It failed: another status from 500 on.
    #[error("{url} failed: status {status}: {body}")]
    Failed {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The begin of what it said.
        body: String,
    },
    /// It refuses the request: any other status but 200.
    #[error("{url} refuses the request: status {status}: {body}")]
    Refused {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The begin of what it said.
        body: String,
    },
    /// It was silent for too long.
    #[error("{url} was silent for {silent_ms} ms")]
    Stalled {
        /// The address.
        url: String,
        /// For how long.
        silent_ms: u64,
    },
    /// The answer broke off or is not of the documented form.
    #[error("{url} gave an answer that cannot be read: {what}")]
    Broken {
        /// The address.
        url: String,
        /// What is wrong.
        what: String,
    },
    /// The answer does not count its tokens; such a back end cannot be used.
    #[error("{url} does not count tokens: the answer has no {field}; such a server cannot be used")]
    NoUsage {
        /// The address.
        url: String,
        /// What is missing.
        field: &'static str,
    },
    /// The counts cannot be true.
    #[error("{url} counts {field} {got}; expected {expected}")]
    WrongUsage {
        /// The address.
        url: String,
        /// Which count.
        field: &'static str,
        /// Its value.
        got: u64,
        /// What would be possible.
        expected: String,
    },
    /// The server cut the prompt.
    #[error(
        "the prompt was cut: {prompt_bytes} bytes were counted as {prompt_tokens} tokens, fewer than {tokens_min}"
    )]
    Truncated {
        /// Bytes that were sent.
        prompt_bytes: u64,
        /// What the server counted.
        prompt_tokens: u32,
        /// The least that is possible.
        tokens_min: u64,
    },
    /// The prompt does not fit.
    #[error(
        "the prompt has at least {tokens_min} tokens and {output_tokens} may be put out; the context has {context_tokens_max}"
    )]
    TooLong {
        /// The least that the prompt can be.
        tokens_min: u64,
        /// The most that may be put out.
        output_tokens: u32,
        /// The context.
        context_tokens_max: u32,
    },
    /// The caller gave up.
    #[error("cancelled")]
    Cancelled,
    /// It failed too often and is left alone for a while.
    #[error("paused for {left_ms} ms after failures: {cause}")]
    Open {
        /// Until it is tried again.
        left_ms: u64,
        /// The last failure.
        cause: String,
    },
    /// A model inside the process failed.
    #[error("the model failed: {0}")]
    Model(String),
}

impl BackendError {
    /// Whether the same question may be answered later.
    #[must_use]
    pub const fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Busy { .. }
            | Self::Failed { .. }
            | Self::Stalled { .. }
            | Self::Broken { .. }
            | Self::Open { .. } => true,
            Self::Refused { .. }
            | Self::NoUsage { .. }
            | Self::WrongUsage { .. }
            | Self::Truncated { .. }
            | Self::TooLong { .. }
            | Self::Cancelled
            | Self::Model(_) => false,
        }
    }

    /// Whether it says something about the back end, and not about the question or the caller.
    #[must_use]
    pub const fn is_of_backend(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Busy { .. }
            | Self::Failed { .. }
            | Self::Stalled { .. }
            | Self::Broken { .. }
            | Self::NoUsage { .. }
            | Self::WrongUsage { .. }
            | Self::Model(_) => true,
            Self::Refused { .. }
            | Self::Truncated { .. }
            | Self::TooLong { .. }
            | Self::Cancelled
            | Self::Open { .. } => false,
        }
    }

    /// Whether the back end cannot be used at all, until an operator has changed something.
    #[must_use]
    pub const fn is_unfit(&self) -> bool {
        matches!(self, Self::NoUsage { .. } | Self::WrongUsage { .. })
    }

    /// How long the server wants to be left alone.
    #[must_use]
    pub fn retry_after(&self) -> Duration {
        if let Self::Busy { retry_after: Some(pause), .. } = self { *pause } else { Duration::ZERO }
    }
}

/// Why a client cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// Settings make no sense.
    #[error("{}", .0.join("; "))]
    Faults(Vec<String>),
    /// The key's file cannot be read.
    #[error("backend.api_key_file {path}: {source}")]
    Key {
        /// Which file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// TLS or the resolver cannot be set up.
    #[error("cannot create the HTTP client: {0}")]
    Client(#[from] reqwest::Error),
    /// The server does not do what is needed.
    #[error(transparent)]
    Server(#[from] BackendError),
}

impl SetupError {
    /// Whether the same settings may do later: the server is away, busy or loading.
    #[must_use]
    pub const fn is_passing(&self) -> bool {
        match self {
            Self::Server(error) => error.is_passing(),
            Self::Faults(_) | Self::Key { .. } | Self::Client(_) => false,
        }
    }
}
