//! One call: two containers, a request, an answer, and what it took.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use types::Hash;
use types::call::CALLDATA_BYTES_MAX;

use super::ContainersConfig;
use super::engine::{Engine, EngineError};
use super::exchange::{Reply, ask, connect};
use super::plan::{self, Tag};
use crate::executor::{Halt, Limit};

/// How often it is looked at what a container has used, and whether it runs.
const LOOK_PAUSE: Duration = Duration::from_millis(200);
/// How often it is asked whether a container that broke off has ended.
const END_PAUSE: Duration = Duration::from_millis(50);
/// How long an answer may still be on its way when the container has ended, and the other way round.
const AFTERWARDS: Duration = Duration::from_millis(500);
/// How much later than the miner the relay gives up by itself.
const RELAY_LATER: Duration = Duration::from_secs(2);

/// What is to be done.
#[derive(Debug)]
pub(super) struct Order {
    /// The image, as the metadata name it.
    pub(super) image: String,
    pub(super) call: Hash,
    pub(super) payload: Bytes,
    /// The fuel that is left.
    pub(super) fuel_max: u64,
    pub(super) stop: CancellationToken,
    pub(super) until: Instant,
    pub(super) tag: Tag,
    /// What names of containers begin with.
    pub(super) name: String,
}

impl Order {
    /// The names of the containers, in the order in which they are made.
    pub(super) fn containers(&self) -> [String; 2] {
        [format!("{}-relay", self.name), format!("{}-agent", self.name)]
    }
}

/// What the miner saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) reply: Reply,
    /// The id of the image that ran.
    pub(super) image_id: String,
    /// The processor time, in milliseconds.
    pub(super) cpu_ms: u64,
}

/// Works on a call until it is over or time to stop; the containers are left behind.
pub(super) async fn work(
    engine: &Engine,
    config: &ContainersConfig,
    order: &Order,
) -> Result<Seen, Halt> {
    let unable = |why: &str| Err(Halt::Unable(why.to_owned()));
    tokio::select! {
        biased;
        () = order.stop.cancelled() => unable("the miner stops"),
        () = sleep_until(order.until) => unable("the time that this miner has for it is over"),
        seen = answer(engine, config, order) => seen,
    }
}

async fn answer(engine: &Engine, config: &ContainersConfig, order: &Order) -> Result<Seen, Halt> {
    let image_id = image(engine, config, &order.image).await?;
    let [relay, agent] = order.containers();
    let patience = order.until.saturating_duration_since(Instant::now()) + RELAY_LATER;
    let wall_ms = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
    let body = plan::relay(config, &engine.relay().await?, wall_ms, &order.tag);
    engine.create(&relay, body).await?;
    let pipes = engine.attach(&relay).await?;
    engine.start(&relay).await?;
    engine.create(&agent, plan::agent(config, &image_id, &relay, &order.tag)).await?;
    engine.start(&agent).await?;
    let (stream, held) = connect(pipes);
    let asking = ask(stream, order.call, order.payload.clone(), CALLDATA_BYTES_MAX);
    let mut cpu = Cpu { ns: None, ns_max: order.fuel_max };
    let reply = tokio::select! {
        biased;
        reply = asking => reply,
        why = watch(engine, &agent, &mut cpu) => return Err(why),
    };
    let reply = match reply {
        Ok(reply) => reply,
        Err(why) => return Err(Halt::Unable(end_soon(engine, &agent).await.unwrap_or(why))),
    };
    cpu.look(engine, &agent).await?;
    drop(held);
    match cpu.ns {
        Some(ns) => Ok(Seen { reply, image_id, cpu_ms: ns / NS_PER_MS }),
        None => Err(Halt::Unable("the container's processor time could not be read".to_owned())),
    }
}

const NS_PER_MS: u64 = 1_000_000;

/// The image, got if the engine has it not and may.
async fn image(
    engine: &Engine,
    config: &ContainersConfig,
    reference: &str,
) -> Result<String, Halt> {
    if let Some(id) = engine.image(reference).await? {
        return Ok(id);
    }
    if config.pull {
        engine.pull(reference).await?;
        if let Some(id) = engine.image(reference).await? {
            return Ok(id);
        }
    }
    Err(Halt::Unable(format!("the image {reference} is not here")))
}

/// The processor time that a container has used, as far as it was seen.
struct Cpu {
    ns: Option<u64>,
    ns_max: u64,
}

impl Cpu {
    /// Looks; whether the container runs.
    async fn look(&mut self, engine: &Engine, agent: &str) -> Result<bool, Halt> {
        let ns = engine.cpu_ns(agent).await?;
        self.ns = self.ns.max(ns);
        let fuel = self.ns.unwrap_or_default() / NS_PER_MS * NS_PER_MS;
        if fuel > self.ns_max {
            return Err(Halt::Exhausted(Limit::Fuel));
        }
        Ok(ns.is_some())
    }
}

/// Looks at a container until it has used too much or has ended.
async fn watch(engine: &Engine, agent: &str, cpu: &mut Cpu) -> Halt {
    let mut ticks = interval(LOOK_PAUSE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match cpu.look(engine, agent).await {
            Ok(true) => (),
            Ok(false) => {
                if let Some(why) = end(engine, agent).await {
                    sleep(AFTERWARDS).await;
                    return Halt::Unable(why);
                }
            }
            Err(why) => return why,
        }
    }
}

/// How a container ends that broke off its answer, if it does.
async fn end_soon(engine: &Engine, agent: &str) -> Option<String> {
    let looking = async {
        loop {
            if let Some(why) = end(engine, agent).await {
                return why;
            }
            sleep(END_PAUSE).await;
        }
    };
    timeout(AFTERWARDS, looking).await.ok()
}

/// How a container has ended, if it has.
async fn end(engine: &Engine, agent: &str) -> Option<String> {
    let ended = engine.ended(agent).await.ok()??;
    let memory = if ended.is_out_of_memory { ", out of memory" } else { "" };
    Some(format!("the container ended with the code {}{memory} before it answered", ended.code))
}

impl From<EngineError> for Halt {
    fn from(error: EngineError) -> Self {
        Self::Unable(error.to_string())
    }
}
