//! What is under `/api`.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;

use super::endpoint::{Endpoint, RestQuery};
use super::error::{JSON, error_response};
use super::params::{self, not_text};
use super::state::Rest;
use super::{agents, blob, call_events, chain, market, openapi, streams, submit};
use crate::admission::Client;
use crate::error::{ErrorData, RpcError};
use crate::transport::websocket;

/// Families of endpoints of the public network that are about what this chain does not have.
const NOT_SUPPORTED: [&str; 9] =
    ["analytics", "audio", "chain/task", "chain/tasks", "images", "nft", "nfts", "tasks", "web"];

/// The OpenAPI 3.1 document of everything under `/api`.
#[must_use]
pub fn openapi_document(version: &str) -> serde_json::Value {
    openapi::document(&endpoints(), version)
}

/// Every endpoint that only reads.
fn endpoints() -> Vec<Endpoint> {
    [chain::endpoints(), market::endpoints(), agents::endpoints()].into_iter().flatten().collect()
}

/// Everything under `/api`.
pub(crate) fn routes(rest: Rest) -> Router {
    let document: Bytes = openapi_document(&rest.context().facts.version).to_string().into();
    let openapi = move || {
        let document = Body::from(document.clone());
        async move { ([(CONTENT_TYPE, JSON)], document) }
    };
    let mut router = Router::new();
    for endpoint in endpoints() {
        let path = endpoint.path;
        let endpoint = Arc::new(endpoint);
        let answer = move |State(rest): State<Rest>, client: Client, params: Params, uri: Uri| {
            answer(rest, client, Arc::clone(&endpoint), params, uri)
        };
        router = router.route(path, get(answer));
    }
    router
        .route(submit::PATH, post(submit::submit))
        .route(blob::PATH, get(blob::blob))
        .route(call_events::PATH, get(call_events::events))
        .route(streams::CHAIN, get(streams::chain))
        .route(streams::MEMPOOL, get(streams::mempool))
        .route(websocket::PATH, get(websocket::open))
        .route(openapi::PATH, get(openapi))
        .route("/api", get(unknown))
        .route("/api/{*rest}", get(unknown).post(unknown))
        .method_not_allowed_fallback(other_method)
        .with_state(rest)
}

/// Parameters in a path, unless they are no text.
type Params = Result<RawPathParams, RawPathParamsRejection>;

async fn answer(
    rest: Rest,
    client: Client,
    endpoint: Arc<Endpoint>,
    params: Params,
    uri: Uri,
) -> Response {
    let (started, name) = (Instant::now(), endpoint.path);
    let answer = async {
        let asked = asked(&params.map_err(|_error| not_text(&uri))?, &uri)?;
        rest.context().read(&client, move |context| endpoint.read(context, &asked)).await
    };
    let response = answer.await.and_then(|bytes| rest.counted(&client, JSON, bytes));
    rest.observed(name, started, response)
}

fn asked(params: &RawPathParams, uri: &Uri) -> Result<RestQuery, RpcError> {
    let query = uri.query().unwrap_or_default();
    if query.len() > params::QUERY_BYTES_MAX {
        let got = format!("{} bytes", query.len());
        let expected = format!("at most {} bytes", params::QUERY_BYTES_MAX);
        return Err(RpcError::invalid("query", got, expected));
    }
    let path = form_urlencoded::Serializer::new(String::new()).extend_pairs(params).finish();
    Ok(RestQuery { path, query: query.to_owned() })
}

async fn unknown(uri: Uri) -> Response {
    let path = uri.path().trim_start_matches("/api").trim_matches('/');
    let belongs = |family: &str| {
        path.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let (code, message) = if NOT_SUPPORTED.into_iter().any(belongs) {
        ("NOT_SUPPORTED", format!("this chain has no {path}"))
    } else {
        ("NOT_FOUND", format!("there is no endpoint /api/{path}; {} lists all", openapi::PATH))
    };
    error_response(StatusCode::NOT_FOUND, message, ErrorData::of(code))
}

async fn other_method(request: Request) -> Response {
    let allowed = if request.method() == Method::GET { "POST" } else { "GET" };
    let message = format!("{} is not for {}", request.method(), request.uri().path());
    let data = ErrorData {
        field: Some("method".to_owned()),
        got: Some(request.method().to_string()),
        expected: Some(allowed.to_owned()),
        ..ErrorData::of("METHOD_NOT_ALLOWED")
    };
    let mut response = error_response(StatusCode::METHOD_NOT_ALLOWED, message, data);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}
