//! Agents in containers, run by the operator's Docker or Podman (docs/market.md section 9.5).
//!
//! ```text
//!   execute ──▶ Containers::run ──▶ call: relay ─pipes─▶ agent      a pair for each call
//!                    │                       │ same network namespace: 127.0.0.1:8080
//!                    │                       │ same process namespace: they end together
//!                    ▼                       ▼
//!                 Engine ◀── plan      exchange: POST /, the answer within bounds
//! ```
//!
//! Invariants: an agent reaches nothing but the relay, unless the operator names a network. What an image
//! or an agent does cannot keep the miner longer than its time, and takes no room on the disk. Containers
//! end with the miner, however that ends, and are removed by it or by the next one.

mod call;
mod config;
mod engine;
mod exchange;
mod plan;
mod relay;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use types::agent::ExecutorId;
use types::call::CALLDATA_BYTES_MAX;
use types::{Address, Usage};

pub use config::{ContainersConfig, executor_of};

use self::call::{Order, Seen, work};
use self::engine::{Engine, EngineError};
use self::exchange::REASON_BYTES_MAX;
use self::plan::Tag;
use super::{Agent, Execute, Halt, Limit, Scope, Verdict};
use crate::clock::Clock;
use crate::text::cut;

/// How often it is looked whether the engine is there, and what it has.
const LOOK_PAUSE: Duration = Duration::from_secs(10);
/// How long after its time a container is somebody's that forgot it.
const FORGOTTEN_MS: u64 = 60_000;
/// How long the end of the program waits until containers are removed.
const CLOSE_PATIENCE: Duration = Duration::from_secs(10);
/// The label of containers that belong to no wallet.
const NOBODY: &str = "nobody";
const FUEL_PER_MS: u64 = 1_000_000;

/// The engine of an operator, and what it may run for this miner.
#[derive(Debug)]
pub struct Containers {
    config: ContainersConfig,
    engine: Engine,
    owner: Option<Address>,
    clock: Arc<dyn Clock>,
    runtime: Handle,
    works: TaskTracker,
    standing: Mutex<Standing>,
    /// Tells calls of this process apart.
    count: AtomicU64,
}

/// How it stands with the engine.
#[derive(Debug, Default)]
struct Standing {
    /// Why each image cannot run.
    absent: BTreeMap<String, String>,
    /// Why none can.
    away: Option<String>,
    /// What is being got.
    pulling: BTreeSet<String>,
    /// Whether containers of an earlier miner of this wallet are gone.
    is_tidy: bool,
}

impl Containers {
    /// Nothing is asked of the engine yet. Must be called within a runtime of several threads, which does
    /// the work; containers are `owner`'s, if the miner has a wallet.
    #[must_use]
    pub fn new(
        config: ContainersConfig,
        owner: Option<Address>,
        clock: Arc<dyn Clock>,
    ) -> Arc<Self> {
        let away = Some("the container engine was not asked yet".to_owned());
        Arc::new(Self {
            engine: Engine::new(config.socket.clone()),
            config,
            owner,
            clock,
            runtime: Handle::current(),
            works: TaskTracker::new(),
            standing: Mutex::new(Standing { away, ..Standing::default() }),
            count: AtomicU64::new(0),
        })
    }

    /// An executor for each image.
    pub(super) fn executors(self: &Arc<Self>) -> Vec<(ExecutorId, Arc<dyn Execute>)> {
        let executor = |image: &String| {
            let agents = ContainerAgents { containers: Arc::clone(self), image: image.clone() };
            let agents: Arc<dyn Execute> = Arc::new(agents);
            (executor_of(image), agents)
        };
        self.config.images.iter().map(executor).collect()
    }

    /// Looks once whether the engine is there and what it has, and removes containers that nobody needs.
    /// Of images that it has not, those that it may get are got meanwhile.
    pub async fn look(self: &Arc<Self>) {
        if let Err(error) = self.greet().await {
            let why = error.to_string();
            let before = self.standing.lock().away.replace(why.clone());
            if before.as_ref() != Some(&why) {
                tracing::warn!(%why, "agents in containers cannot run");
            }
            return;
        }
        for image in &self.config.images {
            let found = match self.engine.image(image).await {
                Ok(Some(_)) => Ok(()),
                Ok(None) if self.config.pull => {
                    self.pull(image);
                    continue;
                }
                Ok(None) => Err(format!("the image {image} is not here")),
                Err(error) => Err(error.to_string()),
            };
            self.learn(image, found);
        }
        if self.standing.lock().away.take().is_some() {
            tracing::info!(socket = %self.config.socket.display(), "the container engine answers");
        }
    }

    async fn greet(&self) -> Result<(), EngineError> {
        self.engine.greet().await?;
        let is_first = !self.standing.lock().is_tidy;
        let (own, now_ms) = (self.owner_label(), self.clock.now_ms());
        for left in self.engine.left().await? {
            let is_own = is_first && self.owner.is_some() && left.owner == own;
            if is_own || left.until_ms.saturating_add(FORGOTTEN_MS) < now_ms {
                tracing::info!(container = left.id, "removing a leftover container");
                if let Err(error) = self.engine.remove(&left.id).await {
                    tracing::warn!(container = left.id, %error, "cannot remove a container");
                }
            }
        }
        self.standing.lock().is_tidy = true;
        Ok(())
    }

    /// Remembers whether an image can run.
    fn learn(&self, image: &str, found: Result<(), String>) {
        let mut standing = self.standing.lock();
        match found {
            Ok(()) => drop(standing.absent.remove(image)),
            Err(why) => {
                if standing.absent.get(image) != Some(&why) {
                    tracing::warn!(image, why, "agents of an image cannot run");
                }
                standing.absent.insert(image.to_owned(), why);
            }
        }
    }

    /// Gets an image, unless that is under way.
    fn pull(self: &Arc<Self>, image: &str) {
        let (own, image) = (Arc::clone(self), image.to_owned());
        if !self.standing.lock().pulling.insert(image.clone()) {
            return;
        }
        drop(self.runtime.spawn(async move {
            let pulled = own.engine.pull(&image).await.map_err(|error| error.to_string());
            own.learn(&image, pulled);
            own.standing.lock().pulling.remove(&image);
        }));
    }

    /// Looks every ten seconds, until it is stopped.
    pub async fn watch(self: Arc<Self>, stop: CancellationToken) {
        let looking = async {
            loop {
                self.look().await;
                sleep(LOOK_PAUSE).await;
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => (),
            () = looking => (),
        }
    }

    /// Waits until the containers of all calls are removed, but not for ever.
    pub async fn close(&self) {
        self.works.close();
        if timeout(CLOSE_PATIENCE, self.works.wait()).await.is_err() {
            tracing::warn!("containers are left to be removed at the next start");
        }
    }

    /// Why an image cannot run at the moment.
    fn absent(&self, image: &str) -> Option<String> {
        let standing = self.standing.lock();
        standing.away.clone().or_else(|| standing.absent.get(image).cloned())
    }

    fn owner_label(&self) -> String {
        self.owner.map_or_else(|| NOBODY.to_owned(), |owner| owner.to_string())
    }

    fn order(&self, image: &str, payload: &[u8], scope: &Scope<'_>) -> Order {
        let wall = Duration::from_millis(self.config.wall_ms_max);
        let until = Instant::now().checked_add(wall).unwrap_or_else(Instant::now);
        let until = scope.stop().until().map_or(until, |stop| until.min(Instant::from_std(stop)));
        let now_ms = self.clock.now_ms();
        let call = scope.context().call_id;
        let (process, count) = (std::process::id(), self.count.fetch_add(1, Ordering::Relaxed));
        let until_ms = now_ms.saturating_add(self.config.wall_ms_max);
        Order {
            image: image.to_owned(),
            call,
            payload: Bytes::copy_from_slice(payload),
            fuel_max: scope.left().fuel,
            stop: scope.stop().token().clone(),
            until,
            tag: Tag { owner: self.owner_label(), until_ms },
            name: format!("ombra-{process}-{now_ms}-{count}"),
        }
    }

    /// Works on an order, on the threads of the runtime; this thread waits. Containers are removed after
    /// the answer is there.
    fn run(self: &Arc<Self>, order: Order) -> Result<Seen, Halt> {
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let own = Arc::clone(self);
        let working = async move {
            let seen = work(&own.engine, &own.config, &order).await;
            // Nobody waits for it any more, if that fails.
            drop(tell.send(seen));
            for container in order.containers() {
                if let Err(error) = own.engine.remove(&container).await {
                    tracing::warn!(container, %error, "a container is left to be removed later");
                }
            }
        };
        drop(self.works.spawn_on(working, &self.runtime));
        told.recv().unwrap_or_else(|_| Err(Halt::Unable("the executor broke off".to_owned())))
    }
}

/// Executes agents whose metadata name one image.
#[derive(Debug)]
struct ContainerAgents {
    containers: Arc<Containers>,
    image: String,
}

impl Execute for ContainerAgents {
    fn execute(
        &self,
        agent: &Agent,
        payload: &[u8],
        scope: &mut Scope<'_>,
    ) -> Result<Verdict, Halt> {
        let Some(method) = agent.method_of(payload) else {
            let why = "the payload calls none of the agent's methods";
            return Ok(Verdict::Failure(why.to_owned()));
        };
        if method.decode_arguments(payload).is_err() {
            return Ok(Verdict::Failure("the payload has no arguments of the method".to_owned()));
        }
        scope.stop().check()?;
        if let Some(why) = self.absent() {
            return Err(Halt::Unable(why));
        }
        let order = self.containers.order(&self.image, payload, scope);
        let Seen { reply, image_id, cpu_ms } = self.containers.run(order)?;
        let (input_tokens, output_tokens) = (reply.input_tokens, reply.output_tokens);
        let seen = json!({
            "image": self.image, "imageId": image_id, "status": reply.status, "cpuMs": cpu_ms,
            "inputTokens": input_tokens, "outputTokens": output_tokens,
        });
        scope.note("container", seen);
        let fuel = cpu_ms.saturating_mul(FUEL_PER_MS);
        scope.count(Usage { input_tokens, output_tokens, fuel })?;
        match reply.status {
            200 if reply.body.len() > CALLDATA_BYTES_MAX => {
                Err(Halt::Exhausted(Limit::ResultBytes))
            }
            200 if method.decode_answer(&reply.body).is_err() => {
                Err(Halt::Unable("the agent's answer is none of the method's outputs".to_owned()))
            }
            200 => Ok(Verdict::Success(reply.body.to_vec())),
            400..=499 => Ok(Verdict::Failure(reason(reply.status, &reply.body))),
            status => Err(Halt::Unable(format!("the agent answered with the status {status}"))),
        }
    }

    fn absent(&self) -> Option<String> {
        self.containers.absent(&self.image)
    }
}

/// What an agent says why it fails.
fn reason(status: u16, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = cut(text.trim(), REASON_BYTES_MAX);
    if text.is_empty() {
        return format!("the agent answered with the status {status}");
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    //! Reasons.

    use super::*;

    #[test]
    fn a_reason_is_the_body_as_text_of_bounded_length() {
        assert_eq!(reason(404, b" there is none\n"), "there is none");
        assert_eq!(reason(404, b" \n"), "the agent answered with the status 404");
        assert_eq!(reason(400, b"\xff."), "\u{fffd}.");
        assert_eq!(reason(400, "é".repeat(600).as_bytes()).len(), REASON_BYTES_MAX);
    }
}
