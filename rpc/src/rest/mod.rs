//! REST, event streams and the WebSocket of the public clients, under `/api` (docs/rest.md). The
//! answers are made by the same functions as those of JSON-RPC; only their shapes differ.

mod agents;
mod ascii;
mod blob;
mod call_events;
mod census;
mod chain;
mod endpoint;
mod fees;
mod market;
mod openapi;
mod params;
mod place;
mod refusal;
mod rendered;
mod socket;
mod streams;
mod submit;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{FromRequestParts, RawPathParams, Request, State};
use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::request;
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use crate::api::Api;
use crate::error::{ErrorData, RpcError};
use crate::memory::Kept;
use crate::metrics::Metrics;
use crate::ports::{Census as Counted, Ports};
use crate::rate::Client;
use crate::readers::Readers;
use crate::server::BodyReader;
use crate::share::{Held, Shares};
use census::Census;
use endpoint::{Asked, Endpoint};
use fees::Fees;
use refusal::{JSON, refuse};
use rendered::Rendered;

/// Families of endpoints of the public network that are about what this chain does not have.
const NOT_SUPPORTED: [&str; 9] =
    ["analytics", "audio", "chain/task", "chain/tasks", "images", "nft", "nfts", "tasks", "web"];

/// What endpoints are answered from. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Rest(Arc<Inner>);

struct Inner {
    api: Api,
    resources: Resources,
    census: Arc<Census>,
    fees: Fees,
    rendered: Rendered,
    streams: Arc<Semaphore>,
    openapi: Bytes,
}

/// What is shared with JSON-RPC.
#[derive(Clone)]
pub(crate) struct Resources {
    pub(crate) metrics: Metrics,
    /// For bodies of requests.
    pub(crate) bodies: BodyReader,
    /// What each client may have.
    pub(crate) shares: Shares,
    /// Who asks where nobody is asked who it is, and the node itself.
    pub(crate) nobody: Client,
    /// Places for calls that read.
    pub(crate) readers: Readers,
    /// What the node waits for when it stops.
    pub(crate) tasks: TaskTracker,
}

impl Rest {
    pub(crate) fn new(api: Api, resources: Resources) -> Self {
        let openapi = openapi_document(&api.facts.version).to_string().into();
        let streams = usize::try_from(api.limits.streams_max).unwrap_or(Semaphore::MAX_PERMITS);
        Self(Arc::new(Inner {
            api,
            resources,
            census: Arc::default(),
            fees: Fees::default(),
            rendered: Rendered::default(),
            streams: Arc::new(Semaphore::new(streams.min(Semaphore::MAX_PERMITS))),
            openapi,
        }))
    }

    fn api(&self) -> &Api {
        &self.0.api
    }

    fn ports(&self) -> &Ports {
        &self.0.api.ports
    }

    fn census(&self) -> Result<Arc<Counted>, RpcError> {
        self.0.census.get(self.ports())
    }

    fn fees(&self) -> &Fees {
        &self.0.fees
    }

    /// Does something for a client that may touch the disk, off the runtime's own threads.
    async fn blocking<T: Send + 'static>(
        &self,
        client: &Client,
        work: impl FnOnce(&Self) -> Result<T, RpcError> + Send + 'static,
    ) -> Result<T, RpcError> {
        if self.api().shutdown.is_cancelled() {
            return Err(RpcError::ShuttingDown);
        }
        let rest = self.clone();
        self.0.resources.readers.read(client.share(), move || work(&rest)).await
    }

    /// A place among the open streams of the client and of all.
    fn place(&self, client: &Client) -> Result<Place, RpcError> {
        if self.api().shutdown.is_cancelled() {
            return Err(RpcError::ShuttingDown);
        }
        let of_client = client.share().stream()?;
        let of_all = Arc::clone(&self.0.streams).try_acquire_owned().map_err(|_error| {
            let message = format!("{} streams are open already", self.api().limits.streams_max);
            RpcError::busy("TOO_MANY_STREAMS", message, 5_000)
        })?;
        Ok(Place { _of_client: of_client, _of_all: of_all })
    }

    /// An answer that counts in the memory for answers until its last byte was written.
    fn counted(
        &self,
        client: &Client,
        kind: HeaderValue,
        bytes: Vec<u8>,
    ) -> Result<Response, RpcError> {
        let most = usize::try_from(self.api().limits.response_bytes_max).unwrap_or(usize::MAX);
        if bytes.len() > most {
            let message = format!("an answer of {} bytes, at most {most}", bytes.len());
            return Err(RpcError::too_large("TOO_LARGE", message));
        }
        let room = client.share().hold(bytes.len())?;
        let kept = Kept { bytes: bytes.into(), _room: room };
        Ok(([(CONTENT_TYPE, kind)], Body::from(Bytes::from_owner(kept))).into_response())
    }

    /// The answer, counted in the metrics under the name of its endpoint.
    fn observed(
        &self,
        name: &'static str,
        started: Instant,
        answer: Result<Response, RpcError>,
    ) -> Response {
        let metrics = &self.0.resources.metrics;
        metrics.observe(name, started.elapsed());
        metrics.count(name, answer.as_ref().err().map_or(0, RpcError::number), 1);
        answer.unwrap_or_else(IntoResponse::into_response)
    }
}

/// A place among the open streams, until this is dropped.
#[derive(Debug)]
struct Place {
    _of_client: Held,
    _of_all: OwnedSemaphorePermit,
}

impl FromRequestParts<Rest> for Client {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut request::Parts,
        rest: &Rest,
    ) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().unwrap_or(&rest.0.resources.nobody).clone())
    }
}

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
        .route(socket::PATH, get(socket::open))
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
        rest.blocking(&client, move |rest| endpoint.read(rest, &asked)).await
    };
    let response = answer.await.and_then(|bytes| rest.counted(&client, JSON, bytes));
    rest.observed(name, started, response)
}

fn asked(params: &RawPathParams, uri: &Uri) -> Result<Asked, RpcError> {
    let query = uri.query().unwrap_or_default();
    if query.len() > params::QUERY_BYTES_MAX {
        let got = format!("{} bytes", query.len());
        let expected = format!("at most {} bytes", params::QUERY_BYTES_MAX);
        return Err(RpcError::invalid("query", got, expected));
    }
    let path = form_urlencoded::Serializer::new(String::new()).extend_pairs(params).finish();
    Ok(Asked { path, query: query.to_owned() })
}

fn not_text(uri: &Uri) -> RpcError {
    RpcError::invalid("path", uri.path(), "UTF-8 in percent-encoding")
}

async fn openapi(State(rest): State<Rest>) -> Response {
    ([(CONTENT_TYPE, JSON)], Body::from(rest.0.openapi.clone())).into_response()
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
    refuse(StatusCode::NOT_FOUND, message, ErrorData::of(code))
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
    let mut response = refuse(StatusCode::METHOD_NOT_ALLOWED, message, data);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}
