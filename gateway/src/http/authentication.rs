//! The door: which hosts and pages may ask, and whose key it is.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName};
use axum::middleware::Next;
use axum::response::Response;

use super::body;
use crate::keys::{Key, hash_of};
use crate::openai::ApiFault;
use crate::request_service::RequestService;

/// The names of this machine for itself.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// Turns away what calls the gateway by a name that it does not have, as a page does whose own name was
/// made to lead here, and pages of origins that may not ask.
pub(super) async fn guard(
    State(service): State<Arc<RequestService>>,
    request: Request,
    next: Next,
) -> Response {
    match check(request.headers(), &service.settings.hosts, &service.settings.origins) {
        Ok(()) => next.run(request).await,
        Err(fault) => body::fault(&fault),
    }
}

fn check(headers: &HeaderMap, hosts: &[String], origins: &[String]) -> Result<(), ApiFault> {
    let host = text(headers, &HOST).unwrap_or_default();
    let name = host_name(host);
    let is_known = |known: &str| known.eq_ignore_ascii_case(name);
    if !LOOPBACK.into_iter().any(is_known) && !hosts.iter().any(|it| is_known(it)) {
        return Err(ApiFault::forbidden(format!(
            "Host: {host:?} is not a name of this gateway; to allow it, add it to hosts in the \
             settings"
        )));
    }
    let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    if origins.iter().any(|it| it == origin) {
        return Ok(());
    }
    Err(ApiFault::forbidden(format!(
        "Origin: pages from {origin:?} are not allowed; to allow them, add it to origins in the \
         settings"
    )))
}

/// A host without its port.
fn host_name(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|it| it.is_ascii_digit()) && !port.is_empty() => {
            name
        }
        Some(_) | None => host,
    }
}

/// Whose key a request has.
///
/// # Errors
/// When it has none that is in force.
pub(crate) fn key(service: &RequestService, headers: &HeaderMap) -> Result<Key, ApiFault> {
    let Some(given) = text(headers, &AUTHORIZATION) else {
        return Err(ApiFault::key("no key: expected the header Authorization: Bearer KEY"));
    };
    let secret = given.split_once(' ').filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
    let Some((_, secret)) = secret else {
        return Err(ApiFault::key("Authorization: expected Bearer KEY"));
    };
    let found = service.store.key_of(&hash_of(secret.trim())).map_err(|error| {
        tracing::error!(%error, "cannot read the keys");
        ApiFault::internal()
    })?;
    let key = found.ok_or_else(|| {
        ApiFault::key("Incorrect API key provided: it is unknown, or was revoked")
    })?;
    if key.limits.expires_ms.is_some_and(|end| service.clock.now_ms() >= end) {
        return Err(ApiFault::key("the key has expired"));
    }
    Ok(key)
}

/// A header as text.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    //! Who is turned away.

    use axum::http::{HeaderMap, HeaderValue};

    use super::check;

    #[test]
    fn only_names_of_the_gateway_and_listed_origins_come_in() {
        let hosts = ["gateway.example".to_owned()];
        let origins = ["https://app.example".to_owned()];
        for (host, origin, comes_in) in [
            ("127.0.0.1:8788", None, true),
            ("localhost", None, true),
            ("[::1]:8788", None, true),
            ("GATEWAY.example:443", None, true),
            ("evil.example:8788", None, false),
            ("", None, false),
            ("127.0.0.1.evil.example", None, false),
            ("localhost:8788", Some("https://app.example"), true),
            ("localhost:8788", Some("https://evil.example"), false),
            ("localhost:8788", Some("null"), false),
            ("localhost:8788", Some("http://localhost:8788"), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("host", HeaderValue::from_static(host));
            if let Some(origin) = origin {
                headers.insert("origin", HeaderValue::from_static(origin));
            }
            assert_eq!(comes_in, check(&headers, &hosts, &origins).is_ok(), "{host} {origin:?}");
        }
        assert!(check(&HeaderMap::new(), &hosts, &origins).is_err());
    }
}
