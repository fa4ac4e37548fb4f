//! Why a call failed: the node was not there, it refused, or it said something strange.

use std::time::Duration;

use jsonrpsee::core::client::Error as CallError;
use jsonrpsee::types::ErrorObjectOwned;
use serde_json::Value;
use types::Hash;

use super::url::shown;
use crate::OtherChain;

/// A rejection by the rules of the chain (docs/protocol.md section 9).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Rejection {
    /// The stable code, for example `NONCE_STALE`.
    pub code: String,
    /// The sentence for people, naming the field and both values.
    pub message: String,
    /// The whole `data` of the rejection.
    pub data: Value,
}

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The URL is not one of a node.
    #[error("{url:?} is not a node's URL: expected http://HOST:PORT or ws://HOST:PORT")]
    BadUrl {
        /// What was given.
        url: String,
    },
    /// No connection, a broken one, or no answer in time. Nothing is known about the request's effect.
    #[error("node {url} is not reachable: {}", causes(.source))]
    Unreachable {
        /// The node's address.
        url: String,
        /// What the connection said.
        source: Box<CallError>,
    },
    /// The chain's rules reject the transaction.
    #[error("{0}")]
    Rejected(Rejection),
    /// What was asked for does not exist on this chain.
    #[error("{message}")]
    NotFound {
        /// The node's sentence.
        message: String,
    },
    /// The node does not understand the parameters.
    #[error("{message}")]
    BadParams {
        /// The node's sentence.
        message: String,
    },
    /// The node is syncing or shutting down.
    #[error("the node is not serving now: {message}")]
    NotServing {
        /// The node's sentence.
        message: String,
    },
    /// The node began with a snapshot, and what was asked for is in blocks before it. Asking again does
    /// not help; another node may have them.
    #[error("{message}")]
    HistoryUnavailable {
        /// The node's sentence.
        message: String,
    },
    /// A rate or size limit of the node.
    #[error("limit of the node: {message}")]
    Limited {
        /// The node's sentence.
        message: String,
        /// After how many milliseconds a new attempt makes sense, where the node says it.
        retry_after_ms: Option<u64>,
    },
    /// Any other JSON-RPC error.
    #[error("the node answered error {code}: {message}")]
    Other {
        /// The JSON-RPC error number.
        code: i32,
        /// The node's sentence.
        message: String,
    },
    /// The server answered, but not as a node does: an HTTP error or a broken JSON-RPC frame.
    #[error("{url} did not answer like a node: {}", causes(.source))]
    Strange {
        /// The address.
        url: String,
        /// What was wrong.
        source: Box<CallError>,
    },
    /// The result has another shape than documented.
    #[error("the answer to {method} cannot be read: {source}")]
    Unreadable {
        /// The method called.
        method: &'static str,
        /// What does not fit.
        source: serde_json::Error,
    },
    /// The parameters cannot be written as JSON.
    #[error("the parameters of {method} cannot be written: {source}")]
    Unwritable {
        /// The method called.
        method: &'static str,
        /// What does not fit.
        source: serde_json::Error,
    },
    /// The node names another hash for a transaction than its signer computed.
    #[error("the node answered hash {answered} for transaction {signed}")]
    WrongHash {
        /// The hash that was signed.
        signed: Hash,
        /// The hash that came back.
        answered: Hash,
    },
    /// The node is of another chain than the one that is signed for.
    #[error("nothing was signed: {0}")]
    OtherChain(Box<OtherChain>),
}

impl ClientError {
    /// After how long the same call may succeed; none where asking again makes no sense. Zero means
    /// that the node did not say.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unreachable { .. } | Self::NotServing { .. } => Some(Duration::ZERO),
            Self::Limited { retry_after_ms, .. } => retry_after_ms.map(Duration::from_millis),
            Self::BadUrl { .. }
            | Self::Rejected(_)
            | Self::NotFound { .. }
            | Self::BadParams { .. }
            | Self::HistoryUnavailable { .. }
            | Self::Other { .. }
            | Self::Strange { .. }
            | Self::Unreadable { .. }
            | Self::Unwritable { .. }
            | Self::WrongHash { .. }
            | Self::OtherChain(_) => None,
        }
    }

    /// Whether it is the node that failed, and not what was asked.
    pub(super) const fn is_of_node(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::NotServing { .. }
            | Self::Limited { .. }
            | Self::Strange { .. }
            | Self::Unreadable { .. } => true,
            Self::BadUrl { .. }
            | Self::Rejected(_)
            | Self::NotFound { .. }
            | Self::BadParams { .. }
            | Self::HistoryUnavailable { .. }
            | Self::Other { .. }
            | Self::Unwritable { .. }
            | Self::WrongHash { .. }
            | Self::OtherChain(_) => false,
        }
    }

    /// Sorts an error of the transport or of the node.
    pub(super) fn from_call(url: &str, error: CallError) -> Self {
        let url = shown(url);
        match error {
            CallError::Call(object) => Self::from_object(&object),
            CallError::ParseError(_)
            | CallError::InvalidRequestId(_)
            | CallError::InvalidSubscriptionId => Self::Strange { url, source: Box::new(error) },
            CallError::Transport(ref cause) => match http_status(&**cause) {
                Some(UNAVAILABLE) => Self::NotServing { message: causes(&error) },
                Some(_) => Self::Strange { url, source: Box::new(error) },
                None => Self::Unreachable { url, source: Box::new(error) },
            },
            CallError::RestartNeeded(_)
            | CallError::RequestTimeout
            | CallError::ServiceDisconnect
            | CallError::Custom(_)
            | CallError::HttpNotImplemented
            | CallError::EmptyBatchRequest(_)
            | CallError::RegisterMethod(_) => Self::Unreachable { url, source: Box::new(error) },
        }
    }

    /// Sorts a JSON-RPC error object by the numbers of docs/rpc.md.
    pub(super) fn from_object(object: &ErrorObjectOwned) -> Self {
        let message = object.message().to_owned();
        let data: Value = object
            .data()
            .and_then(|data| serde_json::from_str(data.get()).ok())
            .unwrap_or(Value::Null);
        match object.code() {
            REFUSED => Self::Rejected(Rejection::new(message, data)),
            NOT_FOUND => Self::NotFound { message },
            NOT_SERVING if data["code"] == HISTORY_UNAVAILABLE => {
                Self::HistoryUnavailable { message }
            }
            NOT_SERVING => Self::NotServing { message },
            LIMITED => Self::Limited { message, retry_after_ms: data["retryAfterMs"].as_u64() },
            BAD_PARAMS => Self::BadParams { message },
            code => Self::Other { code, message },
        }
    }
}

impl Rejection {
    /// A rejection from its sentence and its data, which names the code.
    pub(super) fn new(message: String, data: Value) -> Self {
        let code = data["code"].as_str().unwrap_or("REFUSED").to_owned();
        Self { code, message, data }
    }
}

/// An error with its causes, outermost first, each said once.
fn causes(error: &CallError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let said = inner.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = inner.source();
    }
    text
}

const BAD_PARAMS: i32 = -32602;
const REFUSED: i32 = -32050;
const NOT_FOUND: i32 = -32051;
const NOT_SERVING: i32 = -32052;
const LIMITED: i32 = -32053;

/// What an error with the number [`NOT_SERVING`] has as its code where the node serves, but does not have
/// the blocks.
const HISTORY_UNAVAILABLE: &str = "HISTORY_UNAVAILABLE";

/// The HTTP status of "too many connections" and of proxies whose node is away.
const UNAVAILABLE: u16 = 503;

/// The status, when a server answered with one instead of a connection failing; 0 when the request
/// was too large to be sent.
fn http_status(error: &(dyn std::error::Error + Send + Sync + 'static)) -> Option<u16> {
    use jsonrpsee::http_client::transport::Error;
    match error.downcast_ref()? {
        Error::Rejected { status_code } => Some(*status_code),
        Error::RequestTooLarge => Some(0),
        Error::Url(_) | Error::Http(_) | Error::InvalidCertficateStore => None,
    }
}
