//! `GET /api/blob/{blobId}`: the bytes of a finalised blob.

use std::time::Instant;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, Uri};
use axum::response::Response;

use super::{Rest, not_text};
use crate::error::RpcError;

/// Where blobs are.
pub(super) const PATH: &str = "/api/blob/{blobId}";

/// Tells the type that the blob's owner gave; browsers must not act upon it.
const CLAIMED_TYPE: HeaderName = HeaderName::from_static("x-blob-content-type");

/// Whatever strangers put into blobs must not run as a page of this node: it is a file to be kept.
const HARMLESS: [(HeaderName, HeaderValue); 4] = [
    (CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox")),
    // The bytes of a final blob never change.
    (CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
];

pub(super) async fn blob(
    State(rest): State<Rest>,
    blob_id: Result<Path<String>, PathRejection>,
    uri: Uri,
) -> Response {
    let started = Instant::now();
    let read = match blob_id {
        Ok(Path(blob_id)) => rest.blocking(move |rest| read(rest, &blob_id)).await,
        Err(_) => Err(not_text(&uri)),
    };
    let response = read.and_then(|(claimed, bytes)| {
        let kind = HeaderValue::from_static("application/octet-stream");
        let mut response = rest.counted(kind, bytes)?;
        response.headers_mut().extend(HARMLESS);
        if let Ok(claimed) = HeaderValue::from_str(&claimed) {
            response.headers_mut().insert(CLAIMED_TYPE, claimed);
        }
        Ok(response)
    });
    rest.observed(PATH, started, response)
}

fn read(rest: &Rest, blob_id: &str) -> Result<(String, Vec<u8>), RpcError> {
    let directory = &rest.ports().directory;
    let unknown = || RpcError::not_found("blob", blob_id);
    let record = directory.blob(blob_id)?.ok_or_else(unknown)?;
    if !record.is_final {
        return Err(RpcError::not_found("finalised blob", blob_id));
    }
    let bytes = directory.blob_bytes(blob_id)?.ok_or_else(unknown)?;
    Ok((record.content_type, bytes))
}
