//! Indexes of packages: PyPI and its mirrors, which list the files of a package as JSON (PEP 691) or
//! as a page of links (PEP 503).

use std::time::Duration;

use regex::Regex;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, Response, Url};
use serde::Deserialize;
use tokio::time::timeout;

use super::client::client;
use super::error::FetchError;
use crate::text::with_causes;

/// What an address looks like.
const EXAMPLE: &str = "https://pypi.org/simple";
const JSON: &str = "application/vnd.pypi.simple.v1+json";
const ACCEPTED: &str = "application/vnd.pypi.simple.v1+json, text/html;q=0.5";
/// The longest page of a package: some list thousands of files.
const PAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How long the page may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// An index of packages.
#[derive(Clone)]
pub struct Index(Url);

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Index").field(&shown(&self.0)).finish()
    }
}

/// The files of a package; other members are of no interest.
#[derive(Deserialize)]
struct Listing {
    files: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    filename: String,
    url: String,
}

impl Index {
    /// The index that everybody uses who has no other.
    pub const DEFAULT: &'static str = EXAMPLE;

    /// An index by its address, which may hold a name and a password.
    ///
    /// # Errors
    /// If it is no address of HTTP.
    pub fn parse(text: &str) -> Result<Self, FetchError> {
        let wrong = |given: String, why: &str| FetchError::Index {
            given,
            expected: EXAMPLE,
            why: why.to_owned(),
        };
        // What cannot be read is not repeated: there may be a password in it.
        let mut url = Url::parse(text.trim())
            .map_err(|error| wrong("(unreadable)".to_owned(), &error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(wrong(shown(&url), "only http and https are supported"));
        }
        // So that names are joined to it and do not take the place of its last part.
        if !url.path().ends_with('/') {
            let path = format!("{}/", url.path());
            url.set_path(&path);
        }
        Ok(Self(url))
    }

    /// The address of a package's file.
    pub(super) async fn find(&self, package: &str, archive: &str) -> Result<Url, FetchError> {
        let page = self.0.join(&format!("{package}/"));
        let page =
            page.map_err(|error| FetchError::Page { url: shown(&self.0), why: error.to_string() })?;
        let asked = shown(&page);
        let client = client().map_err(|error| unreachable(&asked, error))?;
        let read = read_page(&client, &page);
        let (is_json, base, text) = match timeout(TIMEOUT, read).await {
            Ok(page) => page?,
            Err(_) => {
                let cause = format!("no answer within {} seconds", TIMEOUT.as_secs());
                return Err(FetchError::Unreachable { url: asked, cause });
            }
        };
        let link = if is_json { listed(&asked, &text, archive)? } else { linked(&text, archive) };
        let link = link
            .ok_or_else(|| FetchError::NotListed { url: asked.clone(), archive: archive.into() })?;
        let url = base.join(&link);
        let mut url =
            url.map_err(|error| FetchError::Page { url: asked, why: error.to_string() })?;
        url.set_fragment(None);
        self.lend_credentials(&mut url);
        Ok(url)
    }

    /// Files of the same server are asked for with the same name and password.
    fn lend_credentials(&self, url: &mut Url) {
        if url.origin() == self.0.origin() && url.username().is_empty() {
            // Both fail only for addresses without a host, which `parse` has refused.
            let (Ok(()) | Err(())) = url.set_username(self.0.username());
            let (Ok(()) | Err(())) = url.set_password(self.0.password());
        }
    }
}

/// A page of an index: whether it is JSON, its address after redirects, its text.
async fn read_page(client: &Client, page: &Url) -> Result<(bool, Url, String), FetchError> {
    let url = shown(page);
    let answer = client.get(page.clone()).header(ACCEPT, ACCEPTED).send().await;
    let mut answer: Response = answer.map_err(|error| unreachable(&url, error))?;
    let status = answer.status();
    if !status.is_success() {
        return Err(FetchError::Status { url, status: status.as_u16() });
    }
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_json = kind.is_some_and(|kind| kind.starts_with(JSON) || kind.contains("json"));
    let base = answer.url().clone();
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| unreachable(&url, error))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > PAGE_BYTES_MAX {
            let why = format!("it has more than {PAGE_BYTES_MAX} bytes");
            return Err(FetchError::Page { url, why });
        }
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| FetchError::Page { url, why: error.to_string() })?;
    Ok((is_json, base, text))
}

/// The address of a file in a list of JSON.
fn listed(url: &str, text: &str, archive: &str) -> Result<Option<String>, FetchError> {
    let listing: Listing = serde_json::from_str(text)
        .map_err(|error| FetchError::Page { url: url.to_owned(), why: error.to_string() })?;
    let mut files = listing.files.into_iter();
    Ok(files.find(|file| file.filename == archive).map(|file| file.url))
}

/// The address of a file in a page of links.
fn linked(text: &str, archive: &str) -> Option<String> {
    let links = Regex::new(r#"(?i)href\s*=\s*["']([^"']+)["']"#).expect("the pattern is right");
    let mut addresses = links.captures_iter(text).map(|found| found[1].replace("&amp;", "&"));
    addresses.find(|address| {
        let path = address.split(['#', '?']).next().unwrap_or_default();
        path.rsplit('/').next() == Some(archive)
    })
}

/// A server that could not be asked; the address is told without its credentials.
pub(super) fn unreachable(url: &str, error: reqwest::Error) -> FetchError {
    FetchError::Unreachable { url: url.to_owned(), cause: with_causes(&error.without_url()) }
}

/// An address without name, password and question.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let (Ok(()) | Err(())) = url.set_username("");
    let (Ok(()) | Err(())) = url.set_password(None);
    url.set_query(None);
    url.to_string()
}
