//! A miner's executors over the engine, as far as containers go.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use agent::clock::Clock;
use agent::executor::{
    Agent, Containers, ContainersConfig, Context, Executed, Executors, Library, Stop, Task,
};
use anyhow::{Context as _, bail};
use serde_json::json;
use testkit::docker::docker;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use types::call::CallLimits;
use types::{Address, Hash, Usage};

use crate::images::Images;

/// The socket of the engine.
pub(crate) const SOCKET: &str = "/var/run/docker.sock";
/// Whose containers those of this run are.
static OWNER: OnceLock<Address> = OnceLock::new();

pub(crate) const LIMITS: CallLimits = CallLimits {
    usage: Usage { input_tokens: 100, output_tokens: 10, fuel: 5_000_000_000 },
    result_bytes: 2_048,
};

/// Whose containers those of this run are: another one may be under way with the same engine.
pub(crate) fn owner() -> Address {
    *OWNER.get_or_init(|| {
        let digest = Hash::digest(&std::process::id().to_be_bytes());
        Address::new(std::array::from_fn(|place| digest.as_bytes()[place]))
    })
}

/// A clock that a case sets.
#[derive(Debug, Default)]
pub(crate) struct Dial(AtomicU64);

impl Dial {
    pub(crate) fn forward(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for Dial {
    fn now_ms(&self) -> u64 {
        let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        let now_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        now_ms.saturating_add(self.0.load(Ordering::Relaxed))
    }
}

/// One miner and its engine.
pub(crate) struct Bench<'a> {
    pub(crate) images: &'a Images,
    pub(crate) clock: Arc<Dial>,
    pub(crate) runtime: Runtime,
    pub(crate) config: ContainersConfig,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(images: &'a Images) -> anyhow::Result<Self> {
        Ok(Self {
            images,
            clock: Arc::default(),
            runtime: tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()?,
            config: config([
                &images.rogue,
                &images.never,
                &images.end,
                &images.empty,
                &images.volume,
                &images.example,
            ]),
        })
    }

    /// A miner that has looked at its engine once.
    pub(crate) fn miner(&self) -> Miner<'_> {
        self.miner_with(self.config.clone())
    }

    pub(crate) fn miner_with(&self, config: ContainersConfig) -> Miner<'_> {
        self.miner_of(Some(owner()), config)
    }

    pub(crate) fn miner_of(&self, owner: Option<Address>, config: ContainersConfig) -> Miner<'_> {
        Miner::of(&self.runtime, owner, config, Arc::clone(&self.clock))
    }
}

/// The settings for these images, with a short time.
pub(crate) fn config<const N: usize>(images: [&String; N]) -> ContainersConfig {
    ContainersConfig {
        images: images.into_iter().cloned().collect(),
        memory_mib_max: 64,
        tmp_mib_max: 4,
        pids_max: 24,
        wall_ms_max: 15_000,
        ..ContainersConfig::default()
    }
}

/// A miner, as far as agents in containers go.
pub(crate) struct Miner<'a> {
    runtime: &'a Runtime,
    pub(crate) containers: Arc<Containers>,
    executors: Executors,
    pub(crate) stop: CancellationToken,
}

impl<'a> Miner<'a> {
    /// One that has looked at its engine once.
    fn of(
        runtime: &'a Runtime,
        owner: Option<Address>,
        config: ContainersConfig,
        clock: Arc<Dial>,
    ) -> Self {
        let guard = runtime.enter();
        let containers = Containers::new(config, owner, clock);
        drop(guard);
        runtime.block_on(containers.look());
        let executors = Executors::default().with_containers(&containers);
        Self { runtime, containers, executors, stop: CancellationToken::new() }
    }

    /// Tells the agent of an image what to do.
    pub(crate) fn tell(&self, image: &str, order: &str) -> Executed {
        self.tell_until(image, order, None)
    }

    pub(crate) fn tell_until(&self, image: &str, order: &str, until: Option<Instant>) -> Executed {
        self.call(&agent(image, RUN), "run", &json!([order]).to_string(), until)
    }

    pub(crate) fn call(
        &self,
        agent: &Agent,
        method: &str,
        arguments: &str,
        until: Option<Instant>,
    ) -> Executed {
        let method = agent.metadata.methods.iter().find(|it| it.name == method).expect("a method");
        let payload = method.encode_arguments(arguments).expect("arguments");
        self.run(agent, &payload, until)
    }

    pub(crate) fn run(&self, agent: &Agent, payload: &[u8], until: Option<Instant>) -> Executed {
        self.executors.run(&Task {
            context: Context { call_id: Hash::digest(b"call"), requester: owner() },
            agent,
            payload,
            limits: LIMITS,
            library: &Library::default(),
            stop: Stop::new(self.stop.clone(), until),
        })
    }

    /// Why the agent of an image cannot run here.
    pub(crate) fn missing(&self, image: &str) -> Option<String> {
        self.executors.missing(&agent(image, RUN), &Library::default())
    }

    pub(crate) fn look(&self) {
        self.runtime.block_on(self.containers.look());
    }

    /// Waits until it has removed all its containers; none is left.
    pub(crate) fn leaves_nothing(&self) -> anyhow::Result<()> {
        self.runtime.block_on(self.containers.close());
        anyhow::ensure!(containers(&own_label(), false)?.is_empty(), "containers are left");
        Ok(())
    }
}

/// The methods of the agent that does what it is told.
pub(crate) const RUN: &str = r#"[{ "type": "function", "name": "run",
    "inputs": [{ "name": "order", "type": "string" }],
    "outputs": [{ "name": "done", "type": "string" }] }]"#;

pub(crate) fn agent(image: &str, abi: &str) -> Agent {
    let abi: serde_json::Value = serde_json::from_str(abi).expect("JSON");
    let metadata = json!({
        "name": "agent", "description": "In a container.", "version": "1.0.0",
        "container_image": image, "abi": abi,
    });
    Agent::read(Hash::digest(b"agent"), metadata.to_string().as_bytes()).expect("metadata")
}

/// The text of a success.
pub(crate) fn text(executed: &Executed) -> anyhow::Result<String> {
    let why = || format!("{:?}: {:?}", executed.answer.outcome, executed.reason);
    anyhow::ensure!(executed.answer.outcome == types::call::Outcome::Success, "{}", why());
    let length = executed.result.get(62..64).context("a length")?;
    let length = usize::from(length[0]) * 256 + usize::from(length[1]);
    let text = executed.result.get(64..64 + length).context("a text")?;
    Ok(String::from_utf8(text.to_vec())?)
}

/// The containers of a label, running ones or all.
pub(crate) fn containers(label: &str, is_running: bool) -> anyhow::Result<Vec<String>> {
    let filter = format!("label={label}");
    let mut arguments = vec!["ps", "--quiet", "--filter", &filter];
    if !is_running {
        arguments.push("--all");
    }
    Ok(docker(&arguments)?.lines().map(str::to_owned).collect())
}

/// The label of the containers of a case.
pub(crate) fn own_label() -> String {
    format!("ombra.miner={}", owner())
}

/// Lets an agent hang until this process, which works for another one, is killed.
pub(crate) fn hang(image: &str, owner_of_run: &str) -> anyhow::Result<()> {
    let owner_of_run = owner_of_run.parse().ok().context("an address")?;
    OWNER.get_or_init(|| owner_of_run);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let config = ContainersConfig { wall_ms_max: 600_000, ..config([&image.to_owned()]) };
    let miner = Miner::of(&runtime, Some(owner()), config, Arc::default());
    let executed = miner.tell(image, "hang");
    bail!("it did not hang: {:?}", executed.reason)
}

/// A wire to the engine that can be cut.
pub(crate) struct Wire {
    pub(crate) socket: PathBuf,
    open: Arc<Mutex<Option<Vec<UnixStream>>>>,
    _folder: tempfile::TempDir,
}

impl Wire {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let socket = folder.path().join("engine.sock");
        let listener = UnixListener::bind(&socket)?;
        let open = Arc::new(Mutex::new(Some(Vec::new())));
        let shared = Arc::clone(&open);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut open = shared.lock().expect("no thread panics");
                // A wire that is cut takes nobody.
                if let (Ok(stream), Some(open)) = (stream, open.as_mut()) {
                    drop(join(&stream).map(|both| open.extend(both)));
                }
            }
        });
        Ok(Self { socket, open, _folder: folder })
    }

    pub(crate) fn cut(&self) {
        let open = self.open.lock().expect("no thread panics").take();
        for stream in open.into_iter().flatten() {
            drop(stream.shutdown(Shutdown::Both));
        }
    }

    pub(crate) fn mend(&self) {
        *self.open.lock().expect("no thread panics") = Some(Vec::new());
    }
}

/// Joins a connection to the engine's.
fn join(near: &UnixStream) -> io::Result<[UnixStream; 2]> {
    let far = UnixStream::connect(Path::new(SOCKET))?;
    for (from, to) in [(near, &far), (&far, near)] {
        let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
        std::thread::spawn(move || {
            drop(io::copy(&mut from, &mut to));
            drop(to.shutdown(Shutdown::Write));
        });
    }
    Ok([near.try_clone()?, far])
}
