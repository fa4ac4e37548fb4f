//! What a tool is: its description, its terms, and how a call of it can fail.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use types::text::Quoted;

use crate::messages::ToolSpec;

/// What the result of a call depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// On the arguments alone: every miner gets the same bytes at any time.
    Pure,
    /// On the arguments and on the newest block that the miner's node has.
    Snapshot,
    /// On anything else: the time, other machines, earlier calls.
    Volatile,
}

/// The bounds of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a call may take.
    pub timeout: Duration,
    /// Bytes of the arguments as canonical JSON.
    pub input_bytes_max: usize,
    /// Bytes of the result; a longer one is cut.
    pub output_bytes_max: usize,
}

impl Limits {
    /// What holds unless a tool or the operator says otherwise.
    pub const DEFAULT: Self = Self {
        timeout: Duration::from_secs(10),
        input_bytes_max: 16 * 1024,
        output_bytes_max: 16 * 1024,
    };
}

/// What may be relied on in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// What the result depends on.
    pub class: Class,
    /// Whether a second call with the same arguments does nothing that the first did not do, so
    /// that a call whose result was lost may be made again.
    pub is_idempotent: bool,
    /// The bounds.
    pub limits: Limits,
}

/// Why a call has no result, as fixed words: they are part of the result's text, which is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// There is no such tool here now.
    UnknownTool,
    /// The run does not grant the tool.
    NotGranted,
    /// The arguments do not fit the tool's schema or meaning.
    BadArguments,
    /// The tool says that it cannot do it.
    Failed,
    /// A rule of the operator forbids it.
    Refused,
    /// It took longer than its limit.
    Timeout,
    /// What the tool asks could not be reached, or broke off.
    Transport,
    /// The tool has a fault.
    Panicked,
    /// The miner stops.
    Cancelled,
}

impl Code {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::UnknownTool,
        Self::NotGranted,
        Self::BadArguments,
        Self::Failed,
        Self::Refused,
        Self::Timeout,
        Self::Transport,
        Self::Panicked,
        Self::Cancelled,
    ];

    /// The word, as it stands in results.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownTool => "unknown_tool",
            Self::NotGranted => "not_granted",
            Self::BadArguments => "bad_arguments",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Timeout => "timeout",
            Self::Transport => "transport",
            Self::Panicked => "panicked",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A call that has no result: the word, and a sentence for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", code.as_str())]
pub struct Failure {
    /// The word.
    pub code: Code,
    /// The sentence. Must not hold what differs between builds, such as names of types.
    pub message: String,
}

impl Failure {
    /// A failure with this word and sentence.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The tool cannot do it, for this reason.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Code::Failed, message)
    }

    /// A rule of the operator forbids it.
    #[must_use]
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(Code::Refused, message)
    }

    /// An argument means something that the tool does not take.
    #[must_use]
    pub fn argument(name: &str, value: &str, expected: &str) -> Self {
        let value = shortened(value);
        let value = Quoted(&value);
        Self::new(Code::BadArguments, format!("argument {name} is {value}: expected {expected}"))
    }
}

/// The most characters of a value in a message.
const QUOTED_CHARACTERS_MAX: usize = 80;

/// A text short enough to be quoted in a message.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A tool that a model may call.
#[async_trait]
pub trait Tool: Send + Sync + Debug {
    /// Its name, description and schema.
    fn spec(&self) -> &ToolSpec;

    /// What may be relied on.
    fn terms(&self) -> Terms;

    /// Runs it. The arguments fit the schema, and the caller keeps the limits.
    ///
    /// # Errors
    /// When there is no result, with what the model is told.
    async fn call(&self, arguments: &Map<String, Value>) -> Result<String, Failure>;

    /// The same, with how many tokens a model put out for it; none for most tools.
    ///
    /// # Errors
    /// As for [`Tool::call`].
    async fn call_counted(&self, arguments: &Map<String, Value>) -> Result<(String, u64), Failure> {
        Ok((self.call(arguments).await?, 0))
    }
}
