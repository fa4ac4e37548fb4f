//! Web pages that call the node from a browser: only its own and those that the operator names may. A
//! browser lets any page send requests and open web sockets to the user's own machine, and tells the
//! page's origin; a page whose name was made to point at this machine is told by the host that it asks
//! for.

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
pub(super) struct OriginCheck {
    origins: Vec<String>,
    /// Names that the node is known by.
    hosts: Vec<String>,
    /// Whether it answers by those only.
    host_matters: bool,
}

impl OriginCheck {
    /// The host matters where only this machine can call: elsewhere a page gains nothing by it.
    /// Behind a port that is published on loopback alone, the node cannot see that; there the
    /// operator says so by naming hosts.
    pub(super) fn new(origins: Vec<String>, hosts: Vec<String>, bound: IpAddr) -> Self {
        let host_matters = bound.is_loopback() || !hosts.is_empty();
        Self { origins, hosts, host_matters }
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
        !self.host_matters || headers.get_all(HOST).iter().all(|host| self.knows_host(host))
    }

    /// Whether nobody else's name can lead here by this host: an address, `localhost`, a known name.
    fn knows_host(&self, host: &HeaderValue) -> bool {
        let Ok(authority) = Authority::try_from(host.as_bytes()) else { return false };
        let name = authority.host();
        let address = name.trim_start_matches('[').trim_end_matches(']');
        address.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name))
    }

    /// Whether the node itself served the page. The host is looked at wherever the node listens: the
    /// owner of a strange name can make it point here after the browser took his page from elsewhere.
    fn is_own_page(&self, headers: &HeaderMap, origin: &HeaderValue) -> bool {
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
        let schemes = [b"http://".as_slice(), b"https://"];
        let own = schemes.iter().find_map(|scheme| origin.as_bytes().strip_prefix(*scheme));
        own.is_some_and(|own| own.eq_ignore_ascii_case(host.as_bytes())) && self.knows_host(host)
    }
}

async fn admit(
    State(origin_check): State<Arc<OriginCheck>>,
    request: Request,
    next: Next,
) -> Response {
    if !origin_check.allows_host(request.headers()) {
        return (StatusCode::FORBIDDEN, "this host is not in rpc.hosts\n").into_response();
    }
    let Some(origin) = request.headers().get(ORIGIN).cloned() else {
        return next.run(request).await;
    };
    if origin_check.is_own_page(request.headers(), &origin) {
        return next.run(request).await;
    }
    if !origin_check.allows_origin(&origin) {
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

    fn origin_check(hosts: &[&str], bound: Ipv4Addr) -> OriginCheck {
        let hosts = hosts.iter().map(|&name| name.to_owned()).collect();
        OriginCheck::new(Vec::new(), hosts, bound.into())
    }

    fn answers(hosts: &[&str], bound: Ipv4Addr, host: &'static str) -> bool {
        let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
        origin_check(hosts, bound).allows_host(&headers)
    }

    fn takes_for_own(hosts: &[&str], host: &'static str, origin: &'static str) -> bool {
        let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
        let origin_check = origin_check(hosts, Ipv4Addr::UNSPECIFIED);
        origin_check.is_own_page(&headers, &HeaderValue::from_static(origin))
    }

    #[test]
    fn its_own_page_is_one_of_the_same_host_by_a_name_that_it_knows() {
        for (host, origin) in [
            ("127.0.0.1:8777", "http://127.0.0.1:8777"),
            ("localhost:8777", "http://localhost:8777"),
            ("[::1]:8777", "http://[::1]:8777"),
            ("node.example", "https://node.example"),
        ] {
            assert!(takes_for_own(&["node.example"], host, origin), "{origin} of {host}");
        }
        for (host, origin) in [
            ("127.0.0.1:8777", "http://127.0.0.1:8778"),
            ("127.0.0.1:8777", "http://127.0.0.1"),
            ("127.0.0.1:8777", "http://localhost:8777"),
            ("127.0.0.1:8777", "null"),
            ("127.0.0.1:8777", "127.0.0.1:8777"),
            ("127.0.0.1:8777", "file://127.0.0.1:8777"),
            ("evil.example:8777", "http://evil.example:8777"),
        ] {
            assert!(!takes_for_own(&["node.example"], host, origin), "{origin} of {host}");
        }
        assert!(!takes_for_own(&[], "node.example", "https://node.example"), "a name of nobody's");
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
