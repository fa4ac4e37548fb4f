//! `POST /api/chain/tx`.

use std::time::Instant;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::value::RawValue;
use types::Hash;

use super::error::JSON;
use super::state::Rest;
use crate::admission::Client;
use crate::error::RpcError;
use crate::service::submit;
use crate::transport::body::ReadBody;
use crate::transport::resources::Resources;
use crate::wire::{Accepted, SignedParts};

/// Where transactions are handed in.
pub(super) const PATH: &str = "/api/chain/tx";

/// A body that is no flat transaction: no type of transaction has a member `tx`.
#[derive(Deserialize)]
struct MaybeParts {
    tx: Option<serde::de::IgnoredAny>,
}

/// Takes a signed transaction, flat or as `{tx, signature}`. One that is known already is answered
/// as the first time.
pub(super) async fn submit(State(rest): State<Rest>, client: Client, request: Request) -> Response {
    let started = Instant::now();
    let (parts, body) = request.into_parts();
    let accepted = async {
        // The memory of the body is held until the transaction is in the pool.
        let body = read(&rest, &client, &parts.headers, body).await?;
        take(&rest, text_of(&body)?).await
    };
    let response = accepted.await.map(|hash| {
        let accepted = Accepted { ok: true, hash };
        let text = serde_json::to_vec(&accepted).expect("plain data with text keys");
        ([(axum::http::header::CONTENT_TYPE, JSON)], text).into_response()
    });
    rest.observed(PATH, started, response)
}

async fn read(
    rest: &Rest,
    client: &Client,
    headers: &axum::http::HeaderMap,
    body: Body,
) -> Result<ReadBody, RpcError> {
    let Resources { bodies, metrics, .. } = rest.resources();
    bodies.read(client.share(), headers, body).await.map_err(|error| {
        metrics.request_refused();
        error.told(bodies.bytes_max())
    })
}

/// The text is the signer's: it goes on as it is.
fn text_of(body: &ReadBody) -> Result<Box<RawValue>, RpcError> {
    serde_json::from_slice(&body.bytes).map_err(|error| {
        RpcError::invalid("body", error.to_string(), "a signed transaction as JSON")
    })
}

async fn take(rest: &Rest, text: Box<RawValue>) -> Result<Hash, RpcError> {
    let has_parts = |parts: MaybeParts| parts.tx.is_some();
    if serde_json::from_str::<MaybeParts>(text.get()).is_ok_and(has_parts) {
        let parts: SignedParts = serde_json::from_str(text.get()).map_err(|error| {
            RpcError::invalid("body", error.to_string(), "a transaction, or {tx, signature}")
        })?;
        return submit::send_signed(rest.context(), parts).await;
    }
    submit::send(rest.ports(), text).await
}
