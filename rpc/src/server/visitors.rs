//! Web pages that call the node from a browser: only those that the operator names may. A browser
//! lets any page send requests and open web sockets to the user's own machine, and tells the page's
//! origin; a page whose name was made to point at this machine is told by the host that it asks for.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, HOST, ORIGIN, VARY,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};

/// Chrome asks with it before a public page calls a private address.
const ALLOW_PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-allow-private-network");
/// For how many seconds a browser may remember what is allowed.
const MAX_AGE_SECONDS: HeaderValue = HeaderValue::from_static("600");

/// Who may call.
pub(super) struct Visitors {
    origins: Vec<String>,
    /// Names that the node may be called by, if only some may.
    hosts: Option<Vec<String>>,
}

impl Visitors {
    /// The host matters where only this machine can call: elsewhere a page gains nothing by it.
    /// Behind a port that is published on loopback alone, the node cannot see that; there the
    /// operator says so by naming hosts.
    pub(super) fn new(origins: Vec<String>, hosts: Vec<String>, bound: IpAddr) -> Self {
        let matters = bound.is_loopback() || !hosts.is_empty();
        Self { origins, hosts: matters.then_some(hosts) }
    }

    /// The routes, for those who may call.
    pub(super) fn guard(self, routes: Router) -> Router {
        routes.layer(middleware::from_fn_with_state(Arc::new(self), admit))
    }

    fn allows_origin(&self, origin: &HeaderValue) -> bool {
        self.origins.iter().any(|allowed| {
            allowed == "*" || allowed.as_bytes().eq_ignore_ascii_case(origin.as_bytes())
        })
    }

    fn allows_host(&self, headers: &HeaderMap) -> bool {
        let Some(hosts) = &self.hosts else { return true };
        headers.get_all(HOST).iter().all(|host| {
            let Ok(authority) = Authority::try_from(host.as_bytes()) else { return false };
            let name = authority.host();
            let address = name.trim_start_matches('[').trim_end_matches(']');
            address.parse::<IpAddr>().is_ok()
                || name.eq_ignore_ascii_case("localhost")
                || hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name))
        })
    }
}

async fn admit(State(visitors): State<Arc<Visitors>>, request: Request, next: Next) -> Response {
    if !visitors.allows_host(request.headers()) {
        return (StatusCode::FORBIDDEN, "this host is not in rpc.hosts\n").into_response();
    }
    let Some(origin) = request.headers().get(ORIGIN).cloned() else {
        return next.run(request).await;
    };
    if !visitors.allows_origin(&origin) {
        return (StatusCode::FORBIDDEN, "this origin is not in rpc.origins\n").into_response();
    }
    let mut response =
        if request.method() == Method::OPTIONS { preflight() } else { next.run(request).await };
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(VARY, HeaderValue::from_static("origin"));
    response
}

/// What a browser asks before a page may post JSON.
fn preflight() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
    headers
        .insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("content-type, x-api-key"));
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE_SECONDS);
    headers.insert(ALLOW_PRIVATE_NETWORK, HeaderValue::from_static("true"));
    response
}

#[cfg(test)]
mod tests {
    //! Where the host of a request matters.

    use std::net::Ipv4Addr;

    use super::*;

    fn answers(hosts: &[&str], bound: Ipv4Addr, host: &'static str) -> bool {
        let hosts = hosts.iter().map(|&name| name.to_owned()).collect();
        let visitors = Visitors::new(Vec::new(), hosts, bound.into());
        visitors.allows_host(&HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]))
    }

    #[test]
    fn behind_a_published_port_the_node_answers_to_the_names_that_it_was_given() {
        let everywhere = Ipv4Addr::UNSPECIFIED;
        assert!(answers(&[], everywhere, "any.example"), "no name was given");
        for known in ["node0:8777", "localhost:31000", "127.0.0.1:31000"] {
            assert!(answers(&["node0"], everywhere, known), "{known}");
        }
        assert!(!answers(&["node0"], everywhere, "any.example"));
        assert!(!answers(&[], Ipv4Addr::LOCALHOST, "any.example"));
    }
}
