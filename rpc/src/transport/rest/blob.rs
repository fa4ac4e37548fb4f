//! `GET /api/blob/{blobId}`: the bytes of a finalized blob.

use std::time::Instant;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, ETAG, IF_NONE_MATCH,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use types::Hash;

use super::params::not_text;
use super::state::Rest;
use crate::admission::Client;
use crate::error::RpcError;
use crate::ports::Ports;
use crate::service::blobs;

/// Where blobs are.
pub(super) const PATH: &str = "/api/blob/{blobId}";

/// Tells the type that the blob's owner gave; browsers must not act upon it.
const CLAIMED_TYPE: HeaderName = HeaderName::from_static("x-blob-content-type");

/// Whatever strangers put into blobs must not run as a page of this node: it is a file to be kept.
const HARMLESS: [(HeaderName, HeaderValue); 4] = [
    (CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox")),
    // The bytes of a final blob never change, but another chain at this address has others.
    (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
];

pub(super) async fn blob(
    State(rest): State<Rest>,
    client: Client,
    blob_id: Result<Path<String>, PathRejection>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let started = Instant::now();
    let known = headers.get(IF_NONE_MATCH).cloned();
    let read = match blob_id {
        Ok(Path(blob_id)) => {
            rest.context().read(&client, move |context| read(&context.ports, &blob_id, known)).await
        }
        Err(_) => Err(not_text(&uri)),
    };
    let response = read.and_then(|Content { claimed, tag, bytes }| {
        let mut response = match bytes {
            Some(bytes) => {
                let kind = HeaderValue::from_static("application/octet-stream");
                rest.counted(&client, kind, bytes)?
            }
            None => StatusCode::NOT_MODIFIED.into_response(),
        };
        response.headers_mut().extend(HARMLESS);
        response.headers_mut().insert(ETAG, tag);
        if let Ok(claimed) = HeaderValue::from_str(&claimed) {
            response.headers_mut().insert(CLAIMED_TYPE, claimed);
        }
        Ok(response)
    });
    rest.observed(PATH, started, response)
}

/// A blob as it is answered.
struct Content {
    /// The type that the blob's owner gave.
    claimed: String,
    /// Names the bytes.
    tag: HeaderValue,
    /// The bytes; none if the client has them.
    bytes: Option<Vec<u8>>,
}

fn tag_of(hash: &Hash) -> Result<HeaderValue, RpcError> {
    HeaderValue::try_from(format!("\"{hash}\"")).map_err(|_error| RpcError::Internal)
}

fn read(ports: &Ports, blob_id: &str, known: Option<HeaderValue>) -> Result<Content, RpcError> {
    let record = blobs::final_record(ports, blob_id)?;
    let tag = tag_of(&record.content_hash)?;
    let bytes = match known {
        Some(known) if known == tag => None,
        Some(_) | None => Some(blobs::bytes(ports, blob_id)?),
    };
    Ok(Content { claimed: record.content_type, tag, bytes })
}
