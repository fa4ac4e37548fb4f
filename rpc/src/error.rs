//! Why calls fail, with the numbers of JSON-RPC. No other file knows the numbers.
//!
//! | number | `data.code` | when |
//! |---|---|---|
//! | −32602 | `INVALID_PARAMS` | a parameter is missing, unknown, or has the wrong type |
//! | −32050 | the codes of docs/protocol.md section 9 | the transaction breaks the rules of the chain |
//! | −32051 | `NOT_FOUND` | the requested block, transaction, run, … does not exist |
//! | −32052 | `SYNCING`, `SHUTTING_DOWN` | the node cannot serve the call now |
//! | −32052 | `HISTORY_UNAVAILABLE` | the node does not have the requested blocks or events; with `earliestBlock` or `eventsFrom` |
//! | −32053 | `TOO_MANY_ITEMS`, `TOO_MANY_CALLS`, `TOO_MANY_WAITING`, `TOO_MANY_CONNECTIONS`, `TOO_LARGE`, `TOO_SLOW`, `BROKEN`, `BUSY` | a limit of this node |
//! | −32600 | `NOT_IN_BATCH`, `WEBSOCKET_ONLY` | a call in a place where it cannot be answered |
//! | −32603 | – | a fault of this node; the cause is in its log only |
//!
//! The numbers −32006 … −32011 are jsonrpsee's own.

use schemars::JsonSchema;
use serde::Serialize;
use types::Rejection;

use crate::ports::{AdminError, Missing, PortFault, SubmitError};

/// JSON-RPC's own: the call is not one that can be answered here.
const INVALID_REQUEST: i32 = -32600;
/// JSON-RPC's own: a parameter is not what the method takes.
const INVALID_PARAMS: i32 = -32602;
/// JSON-RPC's own: a fault of this node.
const INTERNAL: i32 = -32603;
/// The transaction breaks the rules of the chain.
pub const REJECTED: i32 = -32050;
/// The requested object does not exist.
pub const NOT_FOUND: i32 = -32051;
/// The node is catching up or stopping, or does not have the requested blocks or events.
pub const UNAVAILABLE: i32 = -32052;
/// A limit on rate or size.
pub const LIMITED: i32 = -32053;

/// Why the node does not answer a call with a result.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RpcError {
    /// A parameter is missing, unknown, or has the wrong type.
    #[error("invalid parameter {field}: {got}, expected {expected}")]
    InvalidParams {
        /// The parameter, with the path inside it.
        field: String,
        /// The value found, shortened.
        got: String,
        /// What was expected.
        expected: String,
    },
    /// The transaction breaks the rules of the chain.
    #[error("{0}")]
    Rejected(Box<Rejection>),
    /// The requested object does not exist.
    #[error("{what} {name} not found")]
    NotFound {
        /// The kind of object: `transaction`, `block`, …
        what: &'static str,
        /// Its name as the client gave it.
        name: String,
    },
    /// The node is catching up with the chain.
    #[error("the node is catching up with the chain")]
    Syncing,
    /// The requested data is, or may be, in a block before the first one that the node has.
    #[error("this node has no blocks before {earliest}: it began with a snapshot")]
    History {
        /// The first block that the node has.
        earliest: u64,
    },
    /// The requested events are in blocks before the first one whose events the node has.
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
        /// The limit, in words.
        message: String,
        /// How long to wait before the same call can succeed; `None` if it never can.
        retry_after_ms: Option<u64>,
    },
    /// The method cannot be called here: inside a batch, or over plain HTTP.
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
    /// What was expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// How long to wait before the same call can succeed, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Further values of a rejection: `available`, `minerReward`, …
    #[serde(flatten)]
    pub extra: serde_json::Map<String, serde_json::Value>,
}

impl ErrorData {
    /// Data with only a code.
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

/// A further value of a rejection: a text, except for the number of a rule.
fn extra_value(key: &str, value: &str) -> serde_json::Value {
    let rule = (key == "rule").then(|| value.parse::<u64>().ok()).flatten();
    rule.map_or_else(|| value.into(), serde_json::Value::from)
}

impl RpcError {
    /// The error for a wrong parameter.
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

    /// The error for a `what` that does not exist.
    pub fn not_found(what: &'static str, name: impl ToString) -> Self {
        Self::NotFound { what, name: name.to_string() }
    }

    /// A limit that a later call may not exceed.
    pub fn busy(code: &'static str, message: impl Into<String>, retry_after_ms: u64) -> Self {
        Self::Limited { code, message: message.into(), retry_after_ms: Some(retry_after_ms) }
    }

    /// A limit that the same call will always exceed.
    pub fn too_large(code: &'static str, message: impl Into<String>) -> Self {
        Self::Limited { code, message: message.into(), retry_after_ms: None }
    }

    /// The JSON-RPC number.
    #[must_use]
    pub const fn number(&self) -> i32 {
        match self {
            Self::InvalidParams { .. } => INVALID_PARAMS,
            Self::Rejected(_) => REJECTED,
            Self::NotFound { .. } => NOT_FOUND,
            Self::Syncing | Self::ShuttingDown | Self::History { .. } | Self::NoEvents { .. } => {
                UNAVAILABLE
            }
            Self::Limited { .. } => LIMITED,
            Self::Misplaced { .. } => INVALID_REQUEST,
            Self::Internal => INTERNAL,
        }
    }

    /// The data for programs. It reveals nothing about a fault of this node.
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

impl From<Rejection> for RpcError {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(Box::new(rejection))
    }
}

impl From<PortFault> for RpcError {
    fn from(fault: PortFault) -> Self {
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

impl From<AdminError> for RpcError {
    fn from(error: AdminError) -> Self {
        match error {
            AdminError::Invalid { field, got, expected } => Self::invalid(field, got, expected),
            AdminError::Fault(fault) => fault.into(),
        }
    }
}
