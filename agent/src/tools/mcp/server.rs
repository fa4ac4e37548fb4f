//! An MCP server as the miner keeps it: connected, watched, and connected again when it is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use rmcp::model::Tool as Listed;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use super::ServerConfig;
use super::connection::{ConnectFault, Connection, Handshake};
use super::offer::{Line, Room, offered};
use crate::tools::apart::Apart;
use crate::tools::config::Config;
use crate::tools::offered::Offered;
use crate::tools::sandbox::Wrapper;
use crate::tools::surroundings::Surroundings;
use crate::tools::tool::Limits;

/// How often what happens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// How long a handshake may take, and a list of tools.
    pub(super) handshake: Duration,
    /// The first pause before a server is tried again; each further one is twice as long.
    pub(super) pause: Duration,
    /// The longest pause.
    pub(super) pause_max: Duration,
    /// How often a server that is not busy is asked for its tools, to see that it answers.
    pub(super) check: Duration,
}

impl Pace {
    const USUAL: Self = Self {
        handshake: Duration::from_secs(10),
        pause: Duration::from_secs(1),
        pause_max: Duration::from_secs(60),
        check: Duration::from_secs(30),
    };
}

/// A server that stayed for so long is tried again after the first pause.
const STEADY: Duration = Duration::from_secs(60);
/// How long the schemas of a server's tools may take to be compiled.
const COMPILE_PATIENCE: Duration = Duration::from_secs(10);
/// More than everything that closing a connection may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(12);

/// Why a server is given up whose schemas are not compiled in time.
const TOO_INTRICATE: &str = "the schemas of its tools take too long to read";

/// Why a server cannot even be tried.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its folder cannot be made.
    #[error("its folder {} cannot be made: {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// It is to be confined, and nobody said how.
    #[error("it must be confined, but there is no program that does it")]
    NoWrapper,
}

/// An MCP server. Cloning is cheap; clones are the same server.
#[derive(Clone, Debug)]
pub struct Server {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: ServerConfig,
    wrapper: Option<Wrapper>,
    folder: PathBuf,
    limits: Config,
    pace: Pace,
    stop: CancellationToken,
    /// Where its schemas are compiled, and where arguments are checked.
    compiling: Apart,
    checking: Apart,
    /// The tools that are offered; none while it is not connected.
    tools: RwLock<Option<BTreeMap<String, Offered>>>,
    /// The tools that were offered last.
    known: RwLock<BTreeMap<String, Offered>>,
    /// Cancelled once it was connected, or could not be.
    tried: CancellationToken,
    /// Tools that are not offered, and the log has said so.
    said: Mutex<BTreeSet<String>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Server {
    /// Begins to keep a server.
    ///
    /// # Errors
    /// When its folder cannot be made, or it cannot be confined.
    pub(in crate::tools) fn start(
        config: &ServerConfig,
        all: &Config,
        around: &Surroundings,
    ) -> Result<Self, StartError> {
        Self::start_at(config, all, around, Pace::USUAL)
    }

    pub(super) fn start_at(
        config: &ServerConfig,
        all: &Config,
        around: &Surroundings,
        pace: Pace,
    ) -> Result<Self, StartError> {
        let folder = around.folder.join(&config.name);
        let is_program = config.url.is_none();
        if is_program {
            std::fs::create_dir_all(&folder)
                .map_err(|source| StartError::Folder { folder: folder.clone(), source })?;
        }
        let is_confined = is_program && config.sandbox.enabled;
        if is_confined && around.wrapper.is_none() {
            return Err(StartError::NoWrapper);
        }
        let shared = Arc::new(Shared {
            config: config.clone(),
            wrapper: around.wrapper.clone().filter(|_| is_confined),
            folder,
            limits: Config { mcp: Vec::new(), ..all.clone() },
            pace,
            stop: around.stop.child_token(),
            compiling: Apart::new(),
            checking: Apart::new(),
            tools: RwLock::default(),
            known: RwLock::default(),
            tried: CancellationToken::new(),
            said: Mutex::default(),
            task: Mutex::default(),
        });
        let task = tokio::spawn(keep(Arc::clone(&shared)));
        *shared.task.lock() = Some(task);
        Ok(Self { shared })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.config.name
    }

    /// Its address, if it is on the network.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        self.shared.config.url.as_deref()
    }

    /// Whether it is connected.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.shared.tools.read().is_some()
    }

    /// Whether a tool of this name would be its.
    pub(in crate::tools) fn owns(&self, tool: &str) -> bool {
        self.shared.config.owns(tool)
    }

    /// Its tool of this name, if it is offered now.
    pub(in crate::tools) fn tool(&self, name: &str) -> Option<Offered> {
        self.shared.tools.read().as_ref()?.get(name).cloned()
    }

    /// Everything that it offers now.
    pub(in crate::tools) fn tools(&self) -> BTreeMap<String, Offered> {
        self.shared.tools.read().clone().unwrap_or_default()
    }

    /// Everything that it offers now or offered last: what runs that have begun are shown, however
    /// the server is.
    pub(in crate::tools) fn known(&self) -> BTreeMap<String, Offered> {
        self.shared.known.read().clone()
    }

    /// Waits until it was connected once, or could not be.
    pub(in crate::tools) async fn tried(&self) {
        self.shared.tried.cancelled().await;
    }

    /// Ends it, and waits until it is gone.
    pub async fn close(&self) {
        self.shared.stop.cancel();
        let task = self.shared.task.lock().take();
        if let Some(task) = task
            && timeout(CLOSE_TIMEOUT, task).await.is_err()
        {
            tracing::warn!(server = self.name(), "an MCP server took too long to close");
        }
    }
}

/// Connects, serves and closes, until it is told to stop.
async fn keep(shared: Arc<Shared>) {
    let server = shared.config.name.as_str();
    let mut pause = shared.pace.pause;
    loop {
        let began = Instant::now();
        let connected = tokio::select! {
            biased;
            () = shared.stop.cancelled() => return,
            connected = shared.connect() => connected,
        };
        match connected {
            Ok((connection, listed)) => {
                let reason = shared.serve(&connection, listed).await;
                *shared.tools.write() = None;
                connection.close().await;
                tracing::info!(server, reason, "an MCP server is no longer connected");
            }
            Err(fault) => tracing::warn!(server, %fault, "an MCP server cannot be connected"),
        }
        shared.tried.cancel();
        if began.elapsed() > STEADY {
            pause = shared.pace.pause;
        }
        if timeout(pause, shared.stop.cancelled()).await.is_ok() {
            return;
        }
        pause = pause.saturating_mul(2).min(shared.pace.pause_max);
    }
}

impl Shared {
    /// A connection, with the tools that it lists.
    async fn connect(&self) -> Result<(Connection, Vec<Listed>), ConnectFault> {
        let within = self.pace.handshake;
        let connection = self.shake_hands(within).await?;
        match connection.list(within).await {
            Ok(listed) => Ok((connection, listed)),
            Err(fault) => {
                connection.close().await;
                Err(fault.into())
            }
        }
    }

    /// A connection by the first kind of handshake that the server knows.
    async fn shake_hands(&self, within: Duration) -> Result<Connection, ConnectFault> {
        let mut last = None;
        for handshake in Handshake::ALL {
            let how = (handshake, within);
            let shaken = match &self.config.url {
                Some(url) => Connection::to_url(&self.config, url, how).await,
                None => {
                    let wrapper = self.wrapper.as_ref();
                    Connection::to_program(&self.config, wrapper, &self.folder, how).await
                }
            };
            match shaken {
                Err(fault @ ConnectFault::Handshake(_)) => last = last.or(Some(fault)),
                other => return other,
            }
        }
        // The first kind is what most servers know, so its fault says more.
        Err(last.unwrap_or(ConnectFault::Slow(within)))
    }

    /// Offers the tools until the server is lost or is to stop; answers why it is over.
    async fn serve(self: &Arc<Self>, connection: &Connection, listed: Vec<Listed>) -> &'static str {
        let line = Line {
            peer: Arc::new(connection.peer().clone()),
            lost: CancellationToken::new(),
            apart: self.checking.clone(),
            calls: Arc::new(AtomicUsize::new(0)),
        };
        // Whoever still waits for an answer when this ends need not wait for the time limit.
        let _all_know = line.lost.clone().drop_guard();
        if !self.offer(listed, &line).await {
            return TOO_INTRICATE;
        }
        self.tried.cancel();
        let mut checks = interval(self.pace.check);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        checks.tick().await;
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return "the miner stops",
                () = line.lost.cancelled() => return "a call found it gone",
                () = connection.ended() => return "its program has ended",
                _ = checks.tick() => {}
            }
            // A server that works on a call may be unable to answer anything else.
            if line.calls.load(Ordering::Relaxed) > 0 {
                continue;
            }
            match connection.list(self.pace.handshake).await {
                Ok(listed) => {
                    if !self.offer(listed, &line).await {
                        return TOO_INTRICATE;
                    }
                }
                Err(_) => return "it does not answer",
            }
        }
    }

    /// Puts what the server lists on the list of the miner; false if that takes too long.
    async fn offer(self: &Arc<Self>, listed: Vec<Listed>, line: &Line) -> bool {
        let (this, line) = (Arc::clone(self), line.clone());
        let compile = move || this.compile(listed, &line);
        let compiled = tokio::select! {
            biased;
            () = self.stop.cancelled() => return true,
            compiled = self.compiling.run(COMPILE_PATIENCE, compile) => compiled,
        };
        let Some(tools) = compiled else { return false };
        self.known.write().clone_from(&tools);
        *self.tools.write() = Some(tools);
        true
    }

    /// The tools of a list, with their schemas ready.
    fn compile(&self, listed: Vec<Listed>, line: &Line) -> BTreeMap<String, Offered> {
        let wanted = self.config.tools.as_ref();
        let limits = |name: &str| self.limits.limits_of(name, Limits::DEFAULT);
        let (mut tools, mut room) = (BTreeMap::new(), Room::WHOLE);
        for tool in listed {
            if wanted.is_some_and(|wanted| !wanted.contains(&*tool.name)) {
                continue;
            }
            let name = tool.name.clone().into_owned();
            match offered(tool, &self.config, line, &mut room, limits) {
                Ok(tool) => {
                    tools.insert(tool.tool.spec().name.clone(), tool);
                }
                Err(fault) => {
                    if self.said.lock().insert(name.clone()) {
                        let server = &self.config.name;
                        tracing::warn!(server, tool = name, fault, "a tool is not offered");
                    }
                }
            }
        }
        tools
    }
}
