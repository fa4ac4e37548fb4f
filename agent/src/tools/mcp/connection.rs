//! A connection to an MCP server: made, asked for its tools, and closed, each within a time limit.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientConfig, Implementation, PaginatedRequestParams, ProtocolVersion, Tool};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, RoleClient, RunningService,
    ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use tokio::time::timeout;

use super::ServerConfig;
use super::process::Process;
use crate::tools::sandbox::Wrapper;

/// How long a connection to a server on the network may take to stand.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the library may take to close a connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of one message of a server.
const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Tools of one server.
const TOOLS_MAX: usize = 128;
/// Pages in which a server may list them.
const PAGES_MAX: usize = 32;

/// Why a server is not there.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectFault {
    #[error("the program cannot be started: {0}")]
    Start(#[source] std::io::Error),
    #[error("the client cannot be made: {0}")]
    Client(#[source] reqwest::Error),
    #[error("the token cannot be read: {0}")]
    Token(#[source] std::io::Error),
    #[error("no handshake within {} ms", .0.as_millis())]
    Slow(Duration),
    #[error("the handshake failed: {0}")]
    Handshake(#[source] Box<ClientInitializeError>),
    #[error("the tools cannot be listed: {0}")]
    List(#[from] ListFault),
}

/// Why a server's tools are not known.
#[derive(Debug, thiserror::Error)]
pub(super) enum ListFault {
    #[error("no list within {} ms", .0.as_millis())]
    Slow(Duration),
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error("the list has more than {TOOLS_MAX} tools or {PAGES_MAX} pages")]
    TooLong,
}

/// How a connection is begun. Which of them a server knows only the attempt tells.
#[derive(Clone, Copy, Debug)]
pub(super) enum Handshake {
    /// By `initialize`, with which versions up to 2025-11-25 begin.
    Initialize,
    /// By `server/discover`, with which those from 2026-07-28 on do.
    Discover,
}

impl Handshake {
    /// Both, the one first that more servers know.
    pub(super) const ALL: [Self; 2] = [Self::Initialize, Self::Discover];

    fn mode(self) -> ClientLifecycleMode {
        match self {
            Self::Initialize => ClientLifecycleMode::Initialize,
            Self::Discover => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        }
    }
}

/// A connection that stands.
#[derive(Debug)]
pub(super) struct Connection {
    service: RunningService<RoleClient, ClientConfig>,
    process: Option<Process>,
}

impl Connection {
    /// Starts the program and shakes hands, within this time.
    pub(super) async fn to_program(
        config: &ServerConfig,
        wrapper: Option<&Wrapper>,
        folder: &Path,
        (handshake, within): (Handshake, Duration),
    ) -> Result<Self, ConnectFault> {
        let started = Process::start(config, wrapper, folder);
        let (process, (output, input)) = started.map_err(ConnectFault::Start)?;
        let transport = AsyncRwTransport::new_client(output, input);
        let transport = transport.with_max_line_length(MESSAGE_BYTES_MAX);
        let serve = client().serve_with_lifecycle(transport, handshake.mode());
        let shaken = timeout(within, serve).await;
        match shaken {
            Ok(Ok(service)) => Ok(Self { service, process: Some(process) }),
            Ok(Err(fault)) => {
                process.end().await;
                Err(ConnectFault::Handshake(Box::new(fault)))
            }
            Err(_) => {
                process.end().await;
                Err(ConnectFault::Slow(within))
            }
        }
    }

    /// Shakes hands with a server on the network, within this time.
    pub(super) async fn to_url(
        config: &ServerConfig,
        url: &str,
        (handshake, within): (Handshake, Duration),
    ) -> Result<Self, ConnectFault> {
        crate::tls::prepare();
        let client_of_http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .build()
            .map_err(ConnectFault::Client)?;
        let mut settings = StreamableHttpClientTransportConfig::with_uri(url)
            .max_sse_event_size(MESSAGE_BYTES_MAX)
            .max_json_response_size(MESSAGE_BYTES_MAX);
        if let Some(path) = &config.token_file {
            let token = tokio::fs::read_to_string(path).await.map_err(ConnectFault::Token)?;
            settings = settings.auth_header(token.trim());
        }
        let transport = StreamableHttpClientTransport::with_client(client_of_http, settings);
        let serve = client().serve_with_lifecycle(transport, handshake.mode());
        match timeout(within, serve).await {
            Ok(Ok(service)) => Ok(Self { service, process: None }),
            Ok(Err(fault)) => Err(ConnectFault::Handshake(Box::new(fault))),
            Err(_) => Err(ConnectFault::Slow(within)),
        }
    }

    /// What calls go through.
    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    /// Every tool that the server lists, within this time.
    pub(super) async fn list(&self, within: Duration) -> Result<Vec<Tool>, ListFault> {
        timeout(within, self.pages()).await.map_err(|_elapsed| ListFault::Slow(within))?
    }

    async fn pages(&self) -> Result<Vec<Tool>, ListFault> {
        let (mut tools, mut cursor) = (Vec::new(), None);
        for _ in 0..PAGES_MAX {
            let page =
                cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
            let page = self.peer().list_tools(page).await?;
            tools.extend(page.tools);
            cursor = page.next_cursor;
            if tools.len() > TOOLS_MAX {
                break;
            }
            if cursor.is_none() {
                return Ok(tools);
            }
        }
        Err(ListFault::TooLong)
    }

    /// Waits until the server's program has ended; for ever if it has none.
    pub(super) async fn ended(&self) {
        match &self.process {
            Some(process) => process.ended().await,
            None => std::future::pending().await,
        }
    }

    /// Closes the connection and ends the program, if there is one.
    pub(super) async fn close(mut self) {
        if let Err(error) = self.service.close_with_timeout(CLOSE_TIMEOUT).await {
            tracing::warn!(%error, "a connection to an MCP server did not close well");
        }
        drop(self.service);
        if let Some(process) = self.process {
            process.end().await;
        }
    }
}

/// What the miner says of itself: it offers servers nothing in return.
fn client() -> ClientConfig {
    let name = Implementation::new("ombra-miner", env!("CARGO_PKG_VERSION"));
    ClientConfig::new(rmcp::model::ClientCapabilities::default(), name)
}

/// Shared by the calls that go through a connection.
pub(super) type SharedPeer = Arc<Peer<RoleClient>>;
