//! How refusals and faults become JSON-RPC errors: the only place that knows the numbers.
//!
//! | number | `data.code` | when |
//! |---|---|---|
//! | −32602 | `INVALID_PARAMS` | a parameter is missing, unknown or not of its type |
//! | −32050 | the codes of docs/protocol.md section 9 | the chain refuses a transaction |
//! | −32051 | `NOT_FOUND` | there is no such block, transaction, run, … |
//! | −32052 | `SYNCING`, `SHUTTING_DOWN` | the node cannot serve the call now |
//! | −32052 | `HISTORY_UNAVAILABLE` | the node began later than what was asked for, or knows no events of it; `earliestBlock` or `eventsFrom` |
//! | −32053 | `TOO_MANY_ITEMS`, `TOO_MANY_CALLS`, `TOO_MANY_WAITING`, `TOO_MANY_CONNECTIONS`, `TOO_LARGE`, `TOO_SLOW`, `BROKEN`, `BUSY` | a limit of this node |
//! | −32600 | `NOT_IN_BATCH`, `WEBSOCKET_ONLY` | a call in a place where it cannot be answered |
//! | −32603 | – | a fault of this node; the cause is in its log only |
//!
//! The numbers −32006 … −32011 are jsonrpsee's own.

use jsonrpsee::types::error::{INTERNAL_ERROR_CODE, INVALID_PARAMS_CODE, INVALID_REQUEST_CODE};
use jsonrpsee::types::{ErrorObject, ErrorObjectOwned};
use schemars::JsonSchema;
use serde::Serialize;
use types::Rejection;

use crate::ports::{Fault, Missing, SubmitError};

/// The chain refuses a transaction.
pub const REJECTED: i32 = -32050;
/// There is no such thing.
pub const NOT_FOUND: i32 = -32051;
/// The node is catching up or stopping, or began later than what was asked for.
pub const UNAVAILABLE: i32 = -32052;
/// A limit on rate or size.
pub const LIMITED: i32 = -32053;

/// Why a call is not answered with a result.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RpcError {
    /// A parameter is missing, unknown, or not of its type.
    #[error("invalid parameter {field}: {got}, expected {expected}")]
    InvalidParams {
        /// The parameter, with the path inside it.
        field: String,
        /// What was there, shortened.
        got: String,
        /// What would have been right.
        expected: String,
    },
    /// The chain refuses the transaction.
    #[error("{0}")]
    Rejected(Box<Rejection>),
    /// There is no such thing.
    #[error("{what} {name} not found")]
    NotFound {
        /// The kind of thing: `transaction`, `block`, …
        what: &'static str,
        /// Its name as the client gave it.
        name: String,
    },
    /// The node is catching up with the chain.
    #[error("the node is catching up with the chain")]
    Syncing,
    /// What was asked for stands, or may stand, in a block before the first one that the node has.
    #[error("this node has no blocks before {earliest}: it began with a snapshot")]
    History {
        /// The first block that the node has.
        earliest: u64,
    },
    /// The events that were asked for stand before the first block whose events the node has.
    #[error(
        "this node has no events of blocks before {from}: an older version of the program committed them"
    )]
    NoEvents {
        /// The first block whose events the node has.
        from: u64,
    },
    /// The node is stopping.
    #[error("the node is shutting down")]
    ShuttingDown,
    /// A limit of this node.
    #[error("{message}")]
    Limited {
        /// Which limit.
        code: &'static str,
        /// The limit in words.
        message: String,
        /// When the same call may succeed; none if it never will.
        retry_after_ms: Option<u64>,
    },
    /// The method exists but not here: inside a batch, or over plain HTTP.
    #[error("{message}")]
    Misplaced {
        /// `NOT_IN_BATCH` or `WEBSOCKET_ONLY`.
        code: &'static str,
        /// What to do instead.
        message: String,
    },
    /// A fault of this node.
    #[error("internal error")]
    Internal,
}

/// The member `data` of an error.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorData {
    /// A fixed code for programs.
    pub code: String,
    /// The parameter or transaction field at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The value found, shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub got: Option<String>,
    /// What would have been right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// When the same call may succeed, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Further values of a refusal: `available`, `minerReward`, …
    #[serde(flatten)]
    pub extra: serde_json::Map<String, serde_json::Value>,
}

impl ErrorData {
    /// Only a code.
    #[must_use]
    pub fn of(code: &str) -> Self {
        Self {
            code: code.to_owned(),
            field: None,
            got: None,
            expected: None,
            retry_after_ms: None,
            extra: serde_json::Map::new(),
        }
    }
}

impl From<&Rejection> for ErrorData {
    fn from(rejection: &Rejection) -> Self {
        // A time, and so a number, as in every other error; the other values are texts.
        let is_hint = |key: &str| key == "retryAfterMs";
        let hint = rejection.extra().find(|(key, _)| is_hint(key));
        let extra = rejection.extra().filter(|(key, _)| !is_hint(key));
        Self {
            field: Some(rejection.field().to_owned()),
            got: Some(rejection.got().to_owned()),
            expected: Some(rejection.expected().to_owned()),
            retry_after_ms: hint.and_then(|(_, value)| value.parse().ok()),
            extra: extra.map(|(key, value)| (key.to_owned(), extra_value(key, value))).collect(),
            ..Self::of(rejection.code().as_str())
        }
    }
}

/// A further value of a refusal: a text, but for the number of a rule.
fn extra_value(key: &str, value: &str) -> serde_json::Value {
    let rule = (key == "rule").then(|| value.parse::<u64>().ok()).flatten();
    rule.map_or_else(|| value.into(), serde_json::Value::from)
}

impl RpcError {
    /// A parameter at fault.
    pub fn invalid(
        field: impl Into<String>,
        got: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        let got: String = got.into();
        Self::InvalidParams {
            field: field.into(),
            got: types::text::shorten(&got),
            expected: expected.into(),
        }
    }

    /// There is no `what` of that name.
    pub fn not_found(what: &'static str, name: impl ToString) -> Self {
        Self::NotFound { what, name: name.to_string() }
    }

    /// A limit that a later call may not meet.
    pub fn busy(code: &'static str, message: impl Into<String>, retry_after_ms: u64) -> Self {
        Self::Limited { code, message: message.into(), retry_after_ms: Some(retry_after_ms) }
    }

    /// A limit that the same call will always meet.
    pub fn too_large(code: &'static str, message: impl Into<String>) -> Self {
        Self::Limited { code, message: message.into(), retry_after_ms: None }
    }

    /// The JSON-RPC number.
    #[must_use]
    pub const fn number(&self) -> i32 {
        match self {
            Self::InvalidParams { .. } => INVALID_PARAMS_CODE,
            Self::Rejected(_) => REJECTED,
            Self::NotFound { .. } => NOT_FOUND,
            Self::Syncing | Self::ShuttingDown | Self::History { .. } | Self::NoEvents { .. } => {
                UNAVAILABLE
            }
            Self::Limited { .. } => LIMITED,
            Self::Misplaced { .. } => INVALID_REQUEST_CODE,
            Self::Internal => INTERNAL_ERROR_CODE,
        }
    }

    /// What programs are told; nothing of a fault of this node.
    pub(crate) fn data(&self) -> Option<ErrorData> {
        match self {
            Self::InvalidParams { field, got, expected } => Some(ErrorData {
                field: Some(field.clone()),
                got: Some(got.clone()),
                expected: Some(expected.clone()),
                ..ErrorData::of("INVALID_PARAMS")
            }),
            Self::Rejected(rejection) => Some(ErrorData::from(&**rejection)),
            Self::NotFound { name, .. } => {
                Some(ErrorData { got: Some(name.clone()), ..ErrorData::of("NOT_FOUND") })
            }
            Self::Syncing => {
                Some(ErrorData { retry_after_ms: Some(1_000), ..ErrorData::of("SYNCING") })
            }
            Self::ShuttingDown => Some(ErrorData::of("SHUTTING_DOWN")),
            Self::History { earliest } => {
                let mut data = ErrorData::of("HISTORY_UNAVAILABLE");
                data.extra.insert("earliestBlock".to_owned(), (*earliest).into());
                Some(data)
            }
            Self::NoEvents { from } => {
                let mut data = ErrorData::of("HISTORY_UNAVAILABLE");
                data.extra.insert("eventsFrom".to_owned(), (*from).into());
                Some(data)
            }
            Self::Limited { code, retry_after_ms, .. } => {
                Some(ErrorData { retry_after_ms: *retry_after_ms, ..ErrorData::of(code) })
            }
            Self::Misplaced { code, .. } => Some(ErrorData::of(code)),
            Self::Internal => None,
        }
    }
}

impl From<RpcError> for ErrorObjectOwned {
    fn from(error: RpcError) -> Self {
        ErrorObject::owned(error.number(), error.to_string(), error.data())
    }
}

impl From<Rejection> for RpcError {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(Box::new(rejection))
    }
}

impl From<Fault> for RpcError {
    fn from(fault: Fault) -> Self {
        match fault.missing {
            Some(Missing::BlocksBefore(earliest)) => return Self::History { earliest },
            Some(Missing::EventsBefore(from)) => return Self::NoEvents { from },
            None => {}
        }
        tracing::error!(error = %fault.source, "a query failed: {fault}");
        Self::Internal
    }
}

impl From<SubmitError> for RpcError {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Rejected(rejection) => rejection.into(),
            SubmitError::Syncing => Self::Syncing,
            SubmitError::ShuttingDown => Self::ShuttingDown,
            SubmitError::Busy { retry_after_ms } => {
                Self::busy("BUSY", "too many submissions at the same time", retry_after_ms)
            }
            SubmitError::Fault(fault) => fault.into(),
        }
    }
}
