//! A client for HTTP, as this program asks model servers and nodes.

use std::time::Duration;

use reqwest::Client;

use crate::text::with_causes;
use crate::tls;

/// How long connecting may take.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A client for HTTP with the process's TLS provider: ring, which the libraries of the node use too.
///
/// # Errors
/// When none can be made.
pub fn client() -> Result<Client, reqwest::Error> {
    tls::prepare();
    let builder = || {
        let builder = Client::builder().connect_timeout(CONNECT_TIMEOUT);
        builder.redirect(reqwest::redirect::Policy::none())
    };
    builder().build().or_else(|error| {
        // A small container has no certificates; a node or a server of models beside it needs none.
        tracing::warn!(error = with_causes(&error), "no TLS: using plain HTTP only");
        builder().tls_certs_only([]).build()
    })
}
