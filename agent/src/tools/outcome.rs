//! What became of a call.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use types::params::INTEGER_MAX;
use types::tx::ToolCall as Record;

use super::tool::{Class, Code, Failure};
use super::{args_hash, result_hash};
use crate::text::cut;

/// Bytes of a tool's name in an AGENT_STEP (docs/protocol.md section 5).
const NAME_BYTES_MAX: usize = 256;

/// What became of a call of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Whether there is a result; if not, `result` tells the model why.
    pub ok: bool,
    /// What the model is told.
    pub result: String,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// Tokens that a model put out for it.
    pub tokens: u64,
    /// What the result depends on. A failure of the transport or by time is volatile whatever the tool is.
    pub class: Class,
    /// Why there is no result; none where `ok`.
    pub code: Option<Code>,
}

impl Outcome {
    /// A call that was not answered, for example because the miner was restarted meanwhile.
    #[must_use]
    pub fn of_failure(failure: &Failure, class: Class, duration: Duration) -> Self {
        let class = match failure.code {
            Code::UnknownTool
            | Code::Refused
            | Code::Timeout
            | Code::Transport
            | Code::Panicked
            | Code::Cancelled => Class::Volatile,
            Code::NotGranted | Code::BadArguments | Code::Failed => class,
        };
        Self {
            ok: false,
            result: failure.to_string(),
            duration_ms: milliseconds(duration),
            tokens: 0,
            class,
            code: Some(failure.code),
        }
    }
}

/// A call as AGENT_STEP records it. A name that is too long for it, which only a tool that is not
/// there can have, is cut.
#[must_use]
pub fn record(
    name: &str,
    arguments: &Map<String, Value>,
    result: &str,
    duration_ms: u64,
    ok: bool,
) -> Record {
    Record {
        name: cut(name, NAME_BYTES_MAX).to_owned(),
        args_hash: args_hash(arguments),
        result_hash: result_hash(result),
        duration_ms: duration_ms.min(INTEGER_MAX),
        ok,
    }
}

/// Whole milliseconds.
pub(super) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A text of at most `max` bytes: its beginning and a mark, if it is longer.
pub(super) fn cut_result(mut text: String, max: usize) -> String {
    if text.len() <= max {
        return text;
    }
    let mark = format!("\n[cut off: the result is longer than {max} bytes]");
    text.truncate(cut(&text, max.saturating_sub(mark.len())).len());
    text.push_str(&mark);
    text
}
