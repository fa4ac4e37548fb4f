//! The control socket of a running gateway: how `ombra gateway key` and others ask the process.
//!
//! HTTP over a Unix socket in the gateway's folder, for the user of the process only: the file has mode
//! 0600, and a peer of another user is turned away.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path as UrlPath, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use gateway::books::OwnBooks;
use gateway::keys::Key;
use gateway::money::Limits;
use gateway::record::Record;
use gateway::request_service::RequestService;
use gateway::store::{KeyFault, KeyStanding};
use rpc::socket::PrivateSocket;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;
use types::{Address, Hash};

use crate::client::CliError;
use crate::http;
use crate::miner::SameUserOrRoot;

/// The socket's file in the gateway's folder.
const SOCKET: &str = "control.sock";
/// How long a running gateway may take to answer: a transfer waits for its block.
const PATIENCE: Duration = Duration::from_secs(90);
/// More than the books of a million requests.
const ANSWER_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// A key that is to be made.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Wanted {
    pub(super) name: String,
    pub(super) limits: Limits,
}

/// A key that was made.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Made {
    pub(super) key: Key,
    pub(super) secret: String,
}

/// Money that is to be moved.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Drain {
    pub(super) to: Address,
    pub(super) micro: Option<u64>,
}

/// Money that was moved.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Drained {
    pub(super) tx: Hash,
    pub(super) micro: u64,
}

/// The socket, bound.
pub(crate) struct Socket(PrivateSocket);

impl Socket {
    /// Binds in the gateway's folder, in place of a socket that a killed one left. The gateway has its
    /// store, so nobody else serves there.
    pub(crate) fn bind(folder: &Path) -> Result<Self, CliError> {
        let path = folder.join(SOCKET);
        let what = format!("the control socket {}", path.display());
        PrivateSocket::bind(path).map(Self).map_err(|source| CliError::File { what, source })
    }

    /// Answers until `stop` is cancelled.
    pub(crate) async fn serve(self, service: Arc<RequestService>, stop: CancellationToken) {
        let routes = Router::new()
            .route("/keys", get(keys).post(new_key))
            .route("/keys/{name}", delete(revoke))
            .route("/books", get(books))
            .route("/requests/{most}", get(requests))
            .route("/drain", post(drain))
            .with_state(service);
        let serving = axum::serve(SameUserOrRoot(self.0), routes).into_future();
        tokio::select! {
            biased;
            () = stop.cancelled() => (),
            outcome = serving => if let Err(error) = outcome {
                tracing::error!(%error, "the control socket stopped working");
            },
        }
    }
}

type At = State<Arc<RequestService>>;

async fn keys(State(service): At) -> Response {
    told(service.store().keys())
}

async fn new_key(State(service): At, Json(Wanted { name, limits }): Json<Wanted>) -> Response {
    let made = service.store().new_key(&name, limits).await;
    made.map_or_else(
        |fault| refused(&fault),
        |(key, secret)| Json(Made { key, secret: secret.reveal().to_owned() }).into_response(),
    )
}

async fn revoke(State(service): At, UrlPath(name): UrlPath<String>) -> Response {
    let revoked = service.store().revoke_key(&name).await;
    revoked.map_or_else(|fault| refused(&fault), |key| Json(key).into_response())
}

async fn books(State(service): At) -> Response {
    match tokio::task::spawn_blocking(move || service.store().books()).await {
        Ok(books) => told(books),
        Err(_panic) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn requests(State(service): At, UrlPath(most): UrlPath<usize>) -> Response {
    told(service.store().requests(most))
}

async fn drain(State(service): At, Json(Drain { to, micro }): Json<Drain>) -> Response {
    match Box::pin(service.drain(to, micro)).await {
        Ok((tx, micro)) => Json(Drained { tx, micro }).into_response(),
        Err(fault) => (StatusCode::CONFLICT, fault.to_string()).into_response(),
    }
}

fn told<T: Serialize>(read: Result<T, miner::journal::JournalError>) -> Response {
    match read {
        Ok(record) => Json(record).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

fn refused(fault: &KeyFault) -> Response {
    let status = match fault {
        KeyFault::NameTaken(_) | KeyFault::Unknown(_) => StatusCode::CONFLICT,
        KeyFault::Chance(_) | KeyFault::Journal(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, fault.to_string()).into_response()
}

/// A running gateway, as commands ask it.
pub(super) struct Control {
    stream: UnixStream,
}

impl Control {
    /// The gateway that works in a folder; none if there is none, also where a killed one left its
    /// socket.
    pub(super) async fn reach(folder: &Path) -> Result<Option<Self>, CliError> {
        let path = folder.join(SOCKET);
        match UnixStream::connect(&path).await {
            Ok(stream) => Ok(Some(Self { stream })),
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused
                ) =>
            {
                Ok(None)
            }
            Err(source) => Err(CliError::File { what: path.display().to_string(), source }),
        }
    }

    /// All keys.
    pub(super) async fn keys(self) -> Result<Vec<KeyStanding>, CliError> {
        self.ask(Method::GET, "/keys", &()).await
    }

    /// Makes a key.
    pub(super) async fn new_key(self, wanted: &Wanted) -> Result<Made, CliError> {
        self.ask(Method::POST, "/keys", wanted).await
    }

    /// Takes a key back.
    pub(super) async fn revoke(self, name: &str) -> Result<Key, CliError> {
        self.ask(Method::DELETE, &format!("/keys/{name}"), &()).await
    }

    /// What the store has.
    pub(super) async fn books(self) -> Result<OwnBooks, CliError> {
        self.ask(Method::GET, "/books", &()).await
    }

    /// The newest requests, at most `most`.
    pub(super) async fn requests(self, most: usize) -> Result<Vec<Record>, CliError> {
        self.ask(Method::GET, &format!("/requests/{most}"), &()).await
    }

    /// Moves money.
    pub(super) async fn drain(self, wanted: &Drain) -> Result<Drained, CliError> {
        self.ask(Method::POST, "/drain", wanted).await
    }

    async fn ask<T: DeserializeOwned>(
        self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, CliError> {
        let body = serde_json::to_vec(body).map_err(|error| strange(&error.to_string()))?;
        let asked =
            http::send_json(self.stream, method, ("localhost", path), (body, ANSWER_BYTES_MAX));
        let answer = tokio::time::timeout(PATIENCE, asked).await;
        let late = |_late| strange(&format!("no answer within {} seconds", PATIENCE.as_secs()));
        match answer.map_err(late)?.map_err(|error| strange(&error.to_string()))? {
            (StatusCode::OK, body) => {
                serde_json::from_slice(&body).map_err(|error| strange(&error.to_string()))
            }
            (StatusCode::CONFLICT, body) => {
                Err(CliError::Failed(String::from_utf8_lossy(&body).into_owned()))
            }
            (status, body) => Err(strange(&format!("{status} {}", String::from_utf8_lossy(&body)))),
        }
    }
}

fn strange(what: &str) -> CliError {
    CliError::Failed(format!("the running gateway gave an unexpected answer: {what}"))
}
