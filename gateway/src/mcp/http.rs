//! `/mcp`: streamable HTTP.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::WWW_AUTHENTICATE;
use axum::middleware::Next;
use axum::response::Response;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::{Access, Server};
use crate::http::authentication::key;
use crate::http::body::{fault, in_turn};
use crate::operate::{Asking, Interface};
use crate::request_service::RequestService;

/// The tools of a service, over HTTP.
pub(crate) fn service(
    service: &Arc<RequestService>,
) -> StreamableHttpService<Server, NeverSessionManager> {
    let settings = &service.settings;
    let loopback = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_allowed_hosts(loopback.into_iter().chain(settings.hosts.iter().cloned()))
        .with_allowed_origins(settings.origins.iter().map(|origin| with_port(origin)))
        .enforce_origin_validation()
        .with_max_request_body_bytes(settings.request_bytes_max)
        .with_cancellation_token(service.stop.child_token());
    let server = Server { service: Arc::clone(service), access: Access::Each };
    StreamableHttpService::new(move || Ok(server.clone()), Arc::default(), config)
}

/// An origin with its port: one without it would mean all of its ports.
fn with_port(origin: &str) -> String {
    let after_scheme = origin.split_once("://").map_or(origin, |(_, rest)| rest);
    let after_name = after_scheme.rsplit_once(']').map_or(after_scheme, |(_, rest)| rest);
    let port = match origin.split_once("://") {
        Some(("https", _)) => "443",
        Some(_) => "80",
        None => return origin.to_owned(),
    };
    if after_name.contains(':') { origin.to_owned() } else { format!("{origin}:{port}") }
}

/// Lets requests in that have a key, and puts it into them.
pub(crate) async fn guard(
    State(service): State<Arc<RequestService>>,
    request: Request,
    next: Next,
) -> Response {
    match key(&service, request.headers()) {
        Ok(key) => {
            let (mut parts, body) = request.into_parts();
            let body = match in_turn(&service, key.id, body).await {
                Ok(body) => body,
                Err(late) => return fault(&late),
            };
            parts.extensions.insert(key);
            next.run(Request::from_parts(parts, body)).await
        }
        Err(wrong) => {
            Asking::over(Interface::Mcp, &service.store.meter.counters).failed(&wrong);
            let mut response = fault(&wrong);
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            response
        }
    }
}

#[cfg(test)]
mod tests {
    //! Origins.

    use super::with_port;

    #[test]
    fn an_origin_means_one_port() {
        for (origin, expected) in [
            ("https://a.example", "https://a.example:443"),
            ("http://a.example", "http://a.example:80"),
            ("http://localhost:5173", "http://localhost:5173"),
            ("http://[::1]", "http://[::1]:80"),
            ("http://[::1]:9", "http://[::1]:9"),
            ("null", "null"),
        ] {
            assert_eq!(expected, with_port(origin));
        }
    }
}
