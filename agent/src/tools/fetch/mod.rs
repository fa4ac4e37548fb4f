//! `fetch_url`: reads a text from a host that the operator allows.
//!
//! A prompt comes from a stranger, and so does the URL. So the name is resolved here, every address
//! is judged, the connection goes to one of exactly these addresses, and each redirect is judged anew.

mod address;
mod host;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{self, HeaderMap};
use reqwest::{Client, Response, Url, redirect};
use serde_json::{Map, Value, json};

use super::config::FetchConfig;
use super::definition::{spec, terms, text};
use super::names::FETCH_URL;
use super::ports::Names;
use super::tool::{Class, Code, Failure, Limits, Terms, Tool};
use crate::messages::ToolSpec;

pub(super) use host::HostRule;

/// Redirects that are followed.
const REDIRECTS_MAX: usize = 3;
/// Characters of a URL.
const URL_CHARACTERS_MAX: usize = 2000;
/// How long a connection may take to stand.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// What the miner calls itself.
const USER_AGENT: &str = concat!("ombra-miner/", env!("CARGO_PKG_VERSION"));
/// Bytes that are read beyond any result's limit are of no use.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// The tool `fetch_url`.
#[derive(Debug)]
pub(super) struct FetchUrl {
    spec: ToolSpec,
    hosts: Vec<HostRule>,
    networks: Vec<IpNet>,
    names: Arc<dyn Names>,
    limits: Limits,
}

impl FetchUrl {
    /// The tool with these rules; entries that are not rules allow nothing.
    pub(super) fn new(config: &FetchConfig, names: &Arc<dyn Names>, limits: Limits) -> Self {
        let url = json!({
            "type": "string", "maxLength": URL_CHARACTERS_MAX,
            "description": "the address, with http:// or https://",
        });
        let what = "Reads the text at a web address, as it is.";
        Self {
            spec: spec(FETCH_URL, what, &json!({"url": url}), &["url"]),
            hosts: config.hosts_allow.iter().filter_map(|host| HostRule::parse(host)).collect(),
            networks: config.networks_allow.clone(),
            names: Arc::clone(names),
            limits,
        }
    }

    /// The answer at the end of the redirects.
    async fn follow(&self, mut url: Url) -> Result<Response, Failure> {
        for _ in 0..=REDIRECTS_MAX {
            let response = self.ask(&url).await?;
            if !response.status().is_redirection() {
                return Ok(response);
            }
            let target = response.headers().get(header::LOCATION);
            let target = target.and_then(|value| value.to_str().ok());
            let next = target.and_then(|target| url.join(target).ok());
            url = next.ok_or_else(|| Failure::failed("the server redirects to nowhere"))?;
        }
        Err(Failure::failed(format!("the server redirects more than {REDIRECTS_MAX} times")))
    }

    /// One request, to an address that was judged.
    async fn ask(&self, url: &Url) -> Result<Response, Failure> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Failure::refused("only http and https may be fetched"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Failure::refused("an address with a user or a password is not fetched"));
        }
        if !self.hosts.iter().any(|rule| rule.allows(url)) {
            return Err(Failure::refused("the miner does not fetch from this host and port"));
        }
        let addresses = self.addresses(url).await?;
        let client = client(addresses)?;
        client.get(url.clone()).send().await.map_err(|error| {
            tracing::debug!(%error, "fetch_url could not ask");
            Failure::new(Code::Transport, "the server could not be asked")
        })
    }

    /// The addresses of a URL's host, all of which may be reached.
    async fn addresses(&self, url: &Url) -> Result<Vec<SocketAddr>, Failure> {
        let nowhere = || Failure::new(Code::Transport, "the host has no address");
        let host = url.host_str().ok_or_else(nowhere)?;
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let found = match literal {
            Ok(address) => vec![address],
            Err(_) => self.names.addresses(host).await.map_err(|_unknown| nowhere())?,
        };
        if found.is_empty() {
            return Err(nowhere());
        }
        if !found.iter().all(|address| address::may_be_reached(*address, &self.networks)) {
            return Err(Failure::refused("the host's address is not one of the public internet"));
        }
        let port = url.port_or_known_default().unwrap_or_default();
        Ok(found.into_iter().map(|address| SocketAddr::new(address, port)).collect())
    }
}

/// A client that connects every name to these addresses and to no others.
fn client(addresses: Vec<SocketAddr>) -> Result<Client, Failure> {
    crate::tls::prepare();
    Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .referer(false)
        .user_agent(USER_AGENT)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_max_idle_per_host(0)
        .dns_resolver(Pinned(addresses))
        .build()
        .map_err(|error| {
            tracing::error!(%error, "fetch_url cannot make a client");
            Failure::new(Code::Transport, "the miner cannot make a connection")
        })
}

/// Answers every question for addresses with those that were judged.
#[derive(Debug)]
struct Pinned(Vec<SocketAddr>);

impl Resolve for Pinned {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

#[async_trait]
impl Tool for FetchUrl {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn terms(&self) -> Terms {
        terms(Class::Volatile)
    }

    async fn call(&self, arguments: &Map<String, Value>) -> Result<String, Failure> {
        let given = text(arguments, "url");
        let url = Url::parse(given).map_err(|_unread| {
            Failure::argument("url", given, "an address with http:// or https://")
        })?;
        let response = self.follow(url).await?;
        let status = response.status();
        if !status.is_success() {
            return Err(Failure::failed(format!("the server answers with status {status}")));
        }
        check_is_text(response.headers())?;
        read(response, self.limits.output_bytes_max).await
    }
}

/// Whether a body is text as UTF-8, by what its headers say.
fn check_is_text(headers: &HeaderMap) -> Result<(), Failure> {
    let value = |name| headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let encoding = value(header::CONTENT_ENCODING);
    if !matches!(encoding, "" | "identity") {
        return Err(Failure::failed("the server compresses the text, though nobody asked for it"));
    }
    let described = value(header::CONTENT_TYPE).to_ascii_lowercase();
    let mut parts = described.split(';').map(str::trim);
    let kind = parts.next().unwrap_or_default();
    let is_text = kind.starts_with("text/")
        || matches!(kind, "application/json" | "application/xml")
        || (kind.starts_with("application/")
            && (kind.ends_with("+json") || kind.ends_with("+xml")));
    if !is_text {
        return Err(Failure::failed("the server answers with something that is not text"));
    }
    let charset = parts.find_map(|part| part.strip_prefix("charset="));
    match charset.map(|name| name.trim_matches('"')) {
        None | Some("utf-8" | "us-ascii") => Ok(()),
        Some(_) => Err(Failure::failed("the text is not written in UTF-8")),
    }
}

/// The body, or a little more of it than is wanted, so that it can be seen to be too long.
async fn read(mut response: Response, wanted: usize) -> Result<String, Failure> {
    let most = wanted.saturating_add(1).min(BODY_BYTES_MAX);
    let mut body = Vec::new();
    loop {
        let chunk = response.chunk().await;
        let chunk =
            chunk.map_err(|_unread| Failure::new(Code::Transport, "the answer broke off"))?;
        let Some(chunk) = chunk else { break };
        body.extend_from_slice(&chunk);
        if body.len() >= most {
            body.truncate(most);
            break;
        }
    }
    Ok(String::from_utf8_lossy(&body).into_owned())
}

#[cfg(test)]
mod tests;
