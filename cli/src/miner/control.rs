//! The control socket of a running miner: how `ombra miner status` and others ask the process.
//!
//! HTTP over a Unix socket in the miner's folder. The file has mode 0600, and only the user of the process and
//! root are answered. It tells; all that can be changed is that paused
//! offers are resumed.

use std::io::{Error as IoError, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path as UrlPath, Query, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::Listener;
use axum::{Json, Router};
use miner::journal::JournalError;
use miner::operate::StatusService;
use miner::operate::tell::Wanted;
use rpc::socket::PrivateSocket;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;
use types::Hash;
use types::agent::ExecutorId;

use super::super::client::CliError;
use super::super::http;

/// The socket's file in the miner's folder.
const SOCKET: &str = "control.sock";
/// How long a running miner may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// More than a receipt of a run with 200 steps and long tool results.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;
/// A pause after a connection that could not be accepted, for want of file handles for example.
const PAUSE: Duration = Duration::from_millis(100);
/// The user id of root.
const ROOT: u32 = 0;
/// How long a request that is under way may take to end when the miner ends.
const GRACE: Duration = Duration::from_secs(2);

/// The socket, bound.
pub(crate) struct Socket(PrivateSocket);

impl Socket {
    /// Binds in the miner's folder, in place of a socket that a killed miner left. The miner has its
    /// journal, so nobody else serves there.
    pub(crate) fn bind(folder: &Path) -> Result<Self, CliError> {
        let path = folder.join(SOCKET);
        let what = format!("the control socket {}", path.display());
        PrivateSocket::bind(path).map(Self).map_err(|source| CliError::File { what, source })
    }

    /// Answers until `stop` is cancelled, and a little longer who is being answered.
    pub(crate) async fn serve(self, status_service: Arc<StatusService>, stop: CancellationToken) {
        let routes = Router::new()
            .route("/status", get(status))
            .route("/runs", get(runs))
            .route("/why/{run}", get(why))
            .route("/receipt/{run}", get(receipt))
            .route("/market", get(market))
            .route("/assignments", get(assignments))
            .route("/calls/{call}", get(why_call))
            .route("/resume/{executor}", post(resume))
            .with_state(status_service);
        let serving = axum::serve(SameUserOrRoot(self.0), routes);
        let serving = serving.with_graceful_shutdown(stop.clone().cancelled_owned());
        let late = async {
            stop.cancelled().await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! {
            biased;
            outcome = serving.into_future() => if let Err(error) = outcome {
                tracing::error!(%error, "the control socket stopped working");
            },
            () = late => tracing::debug!("cutting off a connection to the control socket"),
        }
    }
}

/// Accepts connections of the user that the process runs as, and of root, who asks a service by its socket.
pub(crate) struct SameUserOrRoot(pub(crate) PrivateSocket);

impl Listener for SameUserOrRoot {
    type Io = UnixStream;
    type Addr = ();

    async fn accept(&mut self) -> (UnixStream, ()) {
        let own = rustix::process::geteuid().as_raw();
        loop {
            match self.0.accept().await.and_then(|stream| Ok((stream.peer_cred()?.uid(), stream))) {
                Ok((uid, stream)) if uid == own || uid == ROOT => return (stream, ()),
                Ok((uid, _)) => tracing::warn!(uid, "another user connected to the control socket"),
                Err(error) => {
                    tracing::warn!(%error, "a connection to the control socket failed");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> Result<(), IoError> {
        Ok(())
    }
}

/// Which runs are listed, in a URL.
#[derive(Deserialize, Serialize)]
struct RunsQuery {
    open: bool,
    limit: usize,
}

type At = State<Arc<StatusService>>;

async fn status(State(status_service): At) -> Response {
    told(move || status_service.status().map(Some)).await
}

async fn runs(
    State(status_service): At,
    Query(RunsQuery { open, limit }): Query<RunsQuery>,
) -> Response {
    told(move || status_service.runs(Wanted { only_open: open, limit }).map(Some)).await
}

async fn why(State(status_service): At, UrlPath(run): UrlPath<Hash>) -> Response {
    told(move || status_service.why(&run)).await
}

async fn receipt(State(status_service): At, UrlPath(run): UrlPath<Hash>) -> Response {
    told(move || status_service.receipt(&run)).await
}

async fn market(State(status_service): At) -> Response {
    told(move || status_service.market().map(Some)).await
}

async fn assignments(
    State(status_service): At,
    Query(RunsQuery { open, limit }): Query<RunsQuery>,
) -> Response {
    told(move || status_service.assignments(Wanted { only_open: open, limit }).map(Some)).await
}

async fn why_call(State(status_service): At, UrlPath(call): UrlPath<Hash>) -> Response {
    told(move || status_service.why_call(&call).map(Some)).await
}

async fn resume(State(status_service): At, UrlPath(executor): UrlPath<ExecutorId>) -> Response {
    match status_service.resume_offers(&executor).await {
        Ok(was_paused) => Json(was_paused).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// What the journal says, which is read on a thread that may wait for the disk.
async fn told<T: Serialize + Send + 'static>(
    read: impl FnOnce() -> Result<Option<T>, JournalError> + Send + 'static,
) -> Response {
    match tokio::task::spawn_blocking(read).await {
        Ok(Ok(Some(record))) => Json(record).into_response(),
        Ok(Ok(None)) => StatusCode::NOT_FOUND.into_response(),
        Ok(Err(error)) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        Err(_panic) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// A running miner, as others ask it.
pub(super) struct Control {
    stream: UnixStream,
}

/// Why a running miner did not tell.
#[derive(Debug)]
pub(super) enum Untold {
    /// It was gone before it had answered: it ended, or was killed, and has left its journal.
    Gone(String),
    /// It answered something that it should not, or nothing.
    Strange(CliError),
}

impl From<Untold> for CliError {
    fn from(untold: Untold) -> Self {
        match untold {
            Untold::Gone(why) => strange(&why),
            Untold::Strange(error) => error,
        }
    }
}

impl Control {
    /// The miner that works in a folder; none if there is none, also where a killed one left its
    /// socket.
    pub(super) async fn reach(folder: &Path) -> Result<Option<Self>, CliError> {
        Self::at(folder.join(SOCKET)).await
    }

    /// Who serves at a socket, if anybody does.
    pub(super) async fn at(path: PathBuf) -> Result<Option<Self>, CliError> {
        match UnixStream::connect(&path).await {
            Ok(stream) => Ok(Some(Self { stream })),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) =>
            {
                Ok(None)
            }
            Err(source) => Err(CliError::File { what: path.display().to_string(), source }),
        }
    }

    /// How the miner is.
    pub(super) async fn status(self) -> Result<miner::operate::Status, Untold> {
        self.get("/status").await?.ok_or_else(|| Untold::Strange(strange("no status")))
    }

    /// The runs of its journal, newest first.
    pub(super) async fn runs(self, wanted: Wanted) -> Result<Vec<miner::operate::RunLine>, Untold> {
        let Wanted { only_open, limit } = wanted;
        let path = format!("/runs?open={only_open}&limit={limit}");
        self.get(&path).await?.ok_or_else(|| Untold::Strange(strange("no runs")))
    }

    /// Why a run was claimed or not; none if the journal does not know it.
    pub(super) async fn why(self, run: &Hash) -> Result<Option<miner::operate::WhyRecord>, Untold> {
        self.get(&format!("/why/{run}")).await
    }

    /// The receipt of a run; none if the journal does not know it.
    pub(super) async fn receipt(
        self,
        run: &Hash,
    ) -> Result<Option<miner::engine::receipt::Receipt>, Untold> {
        self.get(&format!("/receipt/{run}")).await
    }

    /// What a miner says at a path; none if it does not know.
    pub(super) async fn get<T: DeserializeOwned>(self, path: &str) -> Result<Option<T>, Untold> {
        self.send(Method::GET, path).await
    }

    /// The same for what it always says.
    pub(super) async fn told<T: DeserializeOwned>(self, path: &str) -> Result<T, Untold> {
        self.get(path).await?.ok_or_else(|| Untold::Strange(strange("nothing")))
    }

    /// What a miner says after it did something.
    pub(super) async fn post<T: DeserializeOwned>(self, path: &str) -> Result<T, Untold> {
        let done = self.send(Method::POST, path).await?;
        done.ok_or_else(|| Untold::Strange(strange("nothing")))
    }

    async fn send<T: DeserializeOwned>(
        self,
        method: Method,
        path: &str,
    ) -> Result<Option<T>, Untold> {
        let strange = |what: &str| Untold::Strange(strange(what));
        let asked = http::send(self.stream, method, ("localhost", path), ANSWER_BYTES_MAX);
        let answer = tokio::time::timeout(PATIENCE, asked).await;
        let answer = answer.map_err(|_late| {
            strange(&format!("no answer within {} seconds", PATIENCE.as_secs()))
        })?;
        match answer.map_err(|error| Untold::Gone(error.to_string()))? {
            (StatusCode::OK, body) => serde_json::from_slice(&body).map(Some).map_err(|error| {
                strange(&format!("cannot read its answer; is it another version? {error}"))
            }),
            (StatusCode::NOT_FOUND, _) => Ok(None),
            (status, body) => Err(strange(&format!("{status} {}", String::from_utf8_lossy(&body)))),
        }
    }
}

fn strange(what: &str) -> CliError {
    CliError::Failed(format!("the running miner gave an unexpected answer: {what}"))
}
