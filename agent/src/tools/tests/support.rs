//! What the tests of the tools share: surroundings, and servers that do what a test wants.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wallet::Client;

use crate::tools::ports::{Clock, Names};
use crate::tools::{Config, Grant, Outcome, Surroundings, Toolbox};

/// How long a test waits for what must happen.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// A clock that stands.
#[derive(Debug)]
pub(in crate::tools) struct Stopped(pub(in crate::tools) u64);

impl Clock for Stopped {
    fn now_ms(&self) -> u64 {
        self.0
    }
}

/// Names with answers of the test's choice: each question takes the next answer, the last one stays.
#[derive(Debug, Default)]
pub(in crate::tools) struct Book {
    pages: Mutex<BTreeMap<String, Vec<Vec<IpAddr>>>>,
}

impl Book {
    pub(in crate::tools) fn of(entries: &[(&str, &[&[&str]])]) -> Arc<Self> {
        let page = |answers: &[&[&str]]| {
            let answer = |it: &&[&str]| it.iter().map(|it| it.parse().unwrap()).collect();
            answers.iter().map(answer).collect()
        };
        let pages = entries.iter().map(|(name, it)| ((*name).to_owned(), page(it))).collect();
        Arc::new(Self { pages: Mutex::new(pages) })
    }
}

#[async_trait]
impl Names for Book {
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let mut pages = self.pages.lock();
        let answers = pages.get_mut(host).ok_or(io::ErrorKind::NotFound)?;
        Ok(if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() })
    }
}

/// Surroundings with a folder for servers and no node.
pub(in crate::tools) fn surroundings(folder: &Path) -> Surroundings {
    Surroundings {
        node: Client::new("http://127.0.0.1:1").unwrap(),
        clock: Arc::new(Stopped(1_795_368_900_123)),
        names: Book::of(&[]),
        folder: folder.to_owned(),
        wrapper: None,
        stop: CancellationToken::new(),
    }
}

/// A toolbox with these settings, as TOML, and nothing around it.
pub(crate) fn toolbox(settings: &str) -> Toolbox {
    let folder = tempfile::tempdir().unwrap();
    Toolbox::open(&config(settings), &surroundings(folder.path())).unwrap()
}

pub(in crate::tools) fn config(settings: &str) -> Config {
    toml::from_str(settings).unwrap()
}

/// A JSON object from its text.
pub(in crate::tools) fn object(json: &str) -> Map<String, Value> {
    serde_json::from_str(json).unwrap()
}

/// Calls a tool that the run grants.
pub(in crate::tools) async fn call(toolbox: &Toolbox, name: &str, arguments: &str) -> Outcome {
    let grant = Grant { tools: [name.to_owned()].into(), ..Grant::default() };
    toolbox.call(name, &object(arguments), &grant, &CancellationToken::new()).await
}

/// What the model is told; a failure begins with its word.
pub(in crate::tools) async fn said(toolbox: &Toolbox, name: &str, arguments: &str) -> String {
    let outcome = call(toolbox, name, arguments).await;
    assert_eq!(outcome.ok, outcome.code.is_none(), "{outcome:?}");
    outcome.result
}

/// Waits until something is so.
pub(in crate::tools) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    let waiting = async {
        while !is_so() {
            ticks.tick().await;
        }
    };
    assert!(tokio::time::timeout(DEADLINE, waiting).await.is_ok(), "in time: {what}");
}

/// A request that a [`Web`] got.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Method and path.
    pub(crate) line: String,
    /// Headers, in lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

/// What a [`Web`] answers.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// These bytes.
    Bytes(String),
    /// These bytes, which are no text.
    Binary(Vec<u8>),
    /// These bytes, and then this one for ever, …
    Endless(String, u8),
    /// … or once in so many milliseconds.
    Drip(String, u8, u64),
}

type Answering = dyn Fn(&Request) -> Reply + Send + Sync;

/// A server that speaks HTTP as plainly as a test wants.
#[derive(Debug)]
pub(crate) struct Web {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    task: JoinHandle<()>,
}

impl Web {
    /// Listens on this address, with any port if it has none.
    pub(crate) async fn start(
        address: &str,
        answer: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let (answer, seen): (Arc<Answering>, _) = (Arc::new(answer), Arc::clone(&requests));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(converse(stream, Arc::clone(&answer), Arc::clone(&seen)));
            }
        });
        Self { address, requests, task }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().clone()
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn converse(
    mut stream: TcpStream,
    answer: Arc<Answering>,
    seen: Arc<Mutex<Vec<Request>>>,
) -> Option<()> {
    let request = request(&mut stream).await?;
    seen.lock().push(request.clone());
    match answer(&request) {
        Reply::Bytes(bytes) => stream.write_all(bytes.as_bytes()).await.ok(),
        Reply::Binary(bytes) => stream.write_all(&bytes).await.ok(),
        Reply::Endless(head, byte) => {
            stream.write_all(head.as_bytes()).await.ok()?;
            loop {
                stream.write_all(&[byte; 4096]).await.ok()?;
            }
        }
        Reply::Drip(head, byte, ms) => {
            stream.write_all(head.as_bytes()).await.ok()?;
            let mut ticks = tokio::time::interval(Duration::from_millis(ms));
            loop {
                ticks.tick().await;
                stream.write_all(&[byte]).await.ok()?;
            }
        }
    }
}

async fn request(stream: &mut TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut head) = (String::new(), String::new());
    reader.read_line(&mut line).await.ok()?;
    while !head.ends_with("\r\n\r\n") && head != "\r\n" {
        reader.read_line(&mut head).await.ok().filter(|bytes| *bytes > 0)?;
    }
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).await.ok()?;
    let body = String::from_utf8(body).unwrap();
    Some(Request { line: line.trim_end().to_owned(), head, body })
}

/// An answer of HTTP with this status, these headers and this body.
pub(crate) fn http(status: &str, headers: &str, body: &str) -> Reply {
    let length = body.len();
    Reply::Bytes(format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    ))
}

/// The program that confines itself, which `cargo test` builds beside the tests.
pub(in crate::tools) fn sandbox_program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples/sandbox");
    assert!(program.exists(), "cargo build --example sandbox makes {}", program.display());
    program
}
