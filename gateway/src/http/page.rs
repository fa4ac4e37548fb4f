//! The page for people: files of `gateway/page/`, which are part of the program. It shows what a key may
//! see, and asks the interface like any client does.

use axum::http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse as _, Response};

/// Nothing but what the gateway serves, no markup from text, no place in somebody's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";
/// With every file.
const GUARDS: [(HeaderName, HeaderValue); 4] = [
    (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
];

/// The page.
pub(super) async fn index() -> Response {
    file("text/html; charset=utf-8", include_str!("../../page/index.html"))
}

/// Its script.
pub(super) async fn script() -> Response {
    file("text/javascript; charset=utf-8", include_str!("../../page/page.js"))
}

/// Its style.
pub(super) async fn style() -> Response {
    file("text/css; charset=utf-8", include_str!("../../page/page.css"))
}

fn file(kind: &'static str, text: &'static str) -> Response {
    let mut response = ([(CONTENT_TYPE, kind)], text).into_response();
    response.headers_mut().extend(GUARDS.map(|(name, value)| (name, value)));
    response
}
