//! How errors become HTTP answers: `{"error": message, "code": CODE, …}`, with the values of
//! JSON-RPC's `data`.
//!
//! | status | when |
//! |---|---|
//! | 400 | a parameter or a transaction is malformed |
//! | 403 | the chain does not accept transactions of this type yet |
//! | 404 | the requested object or endpoint does not exist |
//! | 405 | the endpoint has another method |
//! | 408, 413 | a body that came too slowly, or is too large |
//! | 409 | the nonce is already used, reserved by another pending transaction, or too far ahead |
//! | 422 | the chain rejects the transaction for another reason |
//! | 429 | the rate limit; `Retry-After` says when to try again |
//! | 503 | the pool is full, the node is busy, catching up, or stopping |
//!
//! The public client tries again after a 5xx, and never after a 4xx.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use types::Code;

use crate::error::{ErrorData, RpcError};

/// An error.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub(super) struct RestError {
    /// The message, for people.
    pub(super) error: String,
    /// The code and the details, for programs.
    #[serde(flatten)]
    pub(super) data: ErrorData,
}

/// The status of an error.
pub(super) fn status(error: &RpcError) -> StatusCode {
    match error {
        RpcError::InvalidParams { .. } | RpcError::Misplaced { .. } => StatusCode::BAD_REQUEST,
        RpcError::Rejected(rejection) => of_code(rejection.code()),
        RpcError::NotFound { .. } | RpcError::History { .. } | RpcError::NoEvents { .. } => {
            StatusCode::NOT_FOUND
        }
        RpcError::Syncing | RpcError::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
        RpcError::Limited { code, retry_after_ms, .. } => match *code {
            "RATE_LIMITED" => StatusCode::TOO_MANY_REQUESTS,
            "TOO_SLOW" => StatusCode::REQUEST_TIMEOUT,
            "BROKEN" => StatusCode::BAD_REQUEST,
            _ if retry_after_ms.is_some() => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::PAYLOAD_TOO_LARGE,
        },
        RpcError::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "every other code is the ledger's")]
const fn of_code(code: Code) -> StatusCode {
    match code {
        _ if code.is_peer_fault() => StatusCode::BAD_REQUEST,
        Code::ForkNotActive => StatusCode::FORBIDDEN,
        Code::NonceStale | Code::NonceTooHigh | Code::NonceTaken => StatusCode::CONFLICT,
        Code::PoolFull => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    }
}

impl IntoResponse for RpcError {
    fn into_response(self) -> Response {
        let status = status(&self);
        let data = self.data().unwrap_or_else(|| ErrorData::of("INTERNAL"));
        let retry_after = data.retry_after_ms.map(|ms| ms.div_ceil(1_000).max(1));
        let mut response = error_response(status, self.to_string(), data);
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// An error that JSON-RPC does not have.
pub(crate) fn error_response(status: StatusCode, message: String, data: ErrorData) -> Response {
    let body = RestError { error: message, data };
    let text = serde_json::to_vec(&body).expect("an error is plain data with text keys");
    (status, [(CONTENT_TYPE, JSON)], text).into_response()
}

/// The content type of JSON.
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

#[cfg(test)]
mod tests {
    //! What clients decide by.

    use types::Rejection;

    use super::*;

    #[test]
    fn a_client_that_can_only_try_again_is_told_with_a_status_that_makes_it_do_so() {
        let rejected = |code| RpcError::from(Rejection::new(code, "nonce", 4, "5"));
        let statuses = [
            (rejected(Code::NonceStale), 409),
            (rejected(Code::NonceTooHigh), 409),
            (rejected(Code::NonceTaken), 409),
            (rejected(Code::ForkNotActive), 403),
            (rejected(Code::BadSignature), 400),
            (rejected(Code::Malformed), 400),
            (rejected(Code::AddressMismatch), 400),
            (rejected(Code::InsufficientBalance), 422),
            (rejected(Code::SenderLimit), 422),
            (rejected(Code::PoolFull), 503),
            (RpcError::Syncing, 503),
            (RpcError::busy("BUSY", "busy", 100), 503),
            (RpcError::busy("RATE_LIMITED", "too fast", 100), 429),
            (RpcError::too_large("TOO_LARGE", "too large"), 413),
            (RpcError::not_found("block", 9), 404),
            (RpcError::History { earliest: 7 }, 404),
            (RpcError::NoEvents { from: 7 }, 404),
        ];
        for (error, expected) in statuses {
            assert_eq!(expected, status(&error).as_u16(), "{error}");
        }
    }

    #[test]
    fn who_shall_come_back_is_told_when_in_whole_seconds() {
        let response = RpcError::busy("RATE_LIMITED", "too fast", 1_200).into_response();
        assert_eq!(Some(&HeaderValue::from(2)), response.headers().get(RETRY_AFTER));
    }
}
