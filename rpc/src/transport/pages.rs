//! The web page for people: files of this repository's `explorer/` and `examples/js/`, which are part
//! of the program. The page asks the interfaces of this crate like any client does.
//!
//! The headers let a browser run scripts and styles of this node and nothing else: what strangers
//! wrote on the chain could not load or send anything even if the page took it for markup.

use std::sync::LazyLock;

use axum::Router;
use axum::extract::{Path, Request};
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use types::Hash;

/// Where the page is.
const PLACE: &str = "/explorer/";

/// Nothing but what this node serves, no markup from text, no place in somebody's frame.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'",
);

/// With every answer below [`PLACE`].
const GUARDS: [(HeaderName, HeaderValue); 6] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// A file: its path below [`PLACE`], and its bytes.
struct File {
    path: &'static str,
    bytes: &'static [u8],
}

const fn file(path: &'static str, bytes: &'static [u8]) -> File {
    File { path, bytes }
}

/// Every file. Those below `lib/` are what the wallet needs of the JavaScript library.
const FILES: &[File] = &[
    file("index.html", include_bytes!("../../../explorer/index.html")),
    file("style.css", include_bytes!("../../../explorer/style.css")),
    file("icon.svg", include_bytes!("../../../explorer/icon.svg")),
    file("app.js", include_bytes!("../../../explorer/app.js")),
    file("blob.js", include_bytes!("../../../explorer/blob.js")),
    file("call-data.js", include_bytes!("../../../explorer/call-data.js")),
    file("dom.js", include_bytes!("../../../explorer/dom.js")),
    file("format.js", include_bytes!("../../../explorer/format.js")),
    file("keyring.js", include_bytes!("../../../explorer/keyring.js")),
    file("kinds.js", include_bytes!("../../../explorer/kinds.js")),
    file("live.js", include_bytes!("../../../explorer/live.js")),
    file("page.js", include_bytes!("../../../explorer/page.js")),
    file("parts.js", include_bytes!("../../../explorer/parts.js")),
    file("rawjson.js", include_bytes!("../../../explorer/rawjson.js")),
    file("rpc.js", include_bytes!("../../../explorer/rpc.js")),
    file("text.js", include_bytes!("../../../explorer/text.js")),
    file("txpool.js", include_bytes!("../../../explorer/txpool.js")),
    file("views/account.js", include_bytes!("../../../explorer/views/account.js")),
    file("views/agent-call.js", include_bytes!("../../../explorer/views/agent-call.js")),
    file("views/agents.js", include_bytes!("../../../explorer/views/agents.js")),
    file("views/block.js", include_bytes!("../../../explorer/views/block.js")),
    file("views/calls.js", include_bytes!("../../../explorer/views/calls.js")),
    file("views/conversation.js", include_bytes!("../../../explorer/views/conversation.js")),
    file("views/directory.js", include_bytes!("../../../explorer/views/directory.js")),
    file("views/network.js", include_bytes!("../../../explorer/views/network.js")),
    file("views/overview.js", include_bytes!("../../../explorer/views/overview.js")),
    file("views/pool.js", include_bytes!("../../../explorer/views/pool.js")),
    file("views/run.js", include_bytes!("../../../explorer/views/run.js")),
    file("views/search.js", include_bytes!("../../../explorer/views/search.js")),
    file("views/transaction.js", include_bytes!("../../../explorer/views/transaction.js")),
    file("views/wallet-forms.js", include_bytes!("../../../explorer/views/wallet-forms.js")),
    file("views/wallet-send.js", include_bytes!("../../../explorer/views/wallet-send.js")),
    file("views/wallet.js", include_bytes!("../../../explorer/views/wallet.js")),
    file("lib/abi-types.js", include_bytes!("../../../examples/js/abi-types.js")),
    file("lib/agent-abi.js", include_bytes!("../../../examples/js/agent-abi.js")),
    file("lib/bytes.js", include_bytes!("../../../examples/js/bytes.js")),
    file("lib/call-check.js", include_bytes!("../../../examples/js/call-check.js")),
    file("lib/ed25519.js", include_bytes!("../../../examples/js/ed25519.js")),
    file("lib/election.js", include_bytes!("../../../examples/js/election.js")),
    file("lib/errors.js", include_bytes!("../../../examples/js/errors.js")),
    file("lib/fields.js", include_bytes!("../../../examples/js/fields.js")),
    file("lib/hash.js", include_bytes!("../../../examples/js/hash.js")),
    file("lib/keccak.js", include_bytes!("../../../examples/js/keccak.js")),
    file("lib/kinds.js", include_bytes!("../../../examples/js/kinds.js")),
    file("lib/keys.js", include_bytes!("../../../examples/js/keys.js")),
    file("lib/mnemonic.js", include_bytes!("../../../examples/js/mnemonic.js")),
    file("lib/transactions.js", include_bytes!("../../../examples/js/transactions.js")),
    file("lib/wordlist.js", include_bytes!("../../../examples/js/wordlist.js")),
];

/// The marks by which browsers know what they have, in the order of [`FILES`].
static MARKS: LazyLock<Vec<HeaderValue>> = LazyLock::new(|| {
    let mark = |file: &File| {
        let quoted = format!("\"{}\"", Hash::digest(file.bytes));
        HeaderValue::from_str(&quoted).expect("hex digits in quotes are a header")
    };
    FILES.iter().map(mark).collect()
});

/// The page and what it is made of.
pub(crate) fn routes() -> Router {
    Router::new()
        .route("/explorer", get(|| async { Redirect::permanent(PLACE) }))
        .route(PLACE, get(|headers: HeaderMap| async move { answer("index.html", &headers) }))
        .route("/explorer/{*path}", get(serve))
}

async fn serve(Path(path): Path<String>, headers: HeaderMap) -> Response {
    answer(&path, &headers)
}

/// To the page, for a browser that somebody has pointed at the node.
pub(crate) fn welcome(request: &Request) -> Option<Response> {
    let accepts_page = request.headers().get_all(ACCEPT).iter().any(|accepted| {
        accepted
            .to_str()
            .is_ok_and(|list| list.split([',', ';']).any(|it| it.trim() == "text/html"))
    });
    accepts_page.then(|| Redirect::to(PLACE).into_response())
}

/// A browser asks again each time, and gets the bytes when they are others than it has.
fn answer(path: &str, headers: &HeaderMap) -> Response {
    let known = FILES.iter().zip(MARKS.iter()).find(|(file, _)| file.path == path);
    let Some((file, mark)) = known else {
        return (StatusCode::NOT_FOUND, GUARDS, "there is no such file\n").into_response();
    };
    let remembered = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut remembered = remembered.flat_map(|list| list.split(',')).map(str::trim);
    let has_it = remembered.any(|one| one.trim_start_matches("W/").as_bytes() == mark.as_bytes());
    let about = [(ETAG, mark.clone()), (CACHE_CONTROL, HeaderValue::from_static("no-cache"))];
    if has_it {
        return (StatusCode::NOT_MODIFIED, GUARDS, about).into_response();
    }
    (GUARDS, about, [(CONTENT_TYPE, content_type(file.path))], file.bytes).into_response()
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests;
