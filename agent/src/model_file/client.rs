//! The client for HTTP that gets files.

use std::time::Duration;

use reqwest::Client;
use reqwest::redirect::Policy;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// The longest silence of a server.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(30);
const REDIRECTS_MAX: usize = 5;

/// A client for files: redirects are followed, and the environment's proxies are used.
pub(super) fn client() -> Result<Client, reqwest::Error> {
    crate::tls::prepare();
    Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(SILENCE_MAX)
        .redirect(Policy::limited(REDIRECTS_MAX))
        .build()
}
