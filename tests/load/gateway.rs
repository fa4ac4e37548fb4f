//! Requests to a gateway, beside the same ones to the model that answers them.
//!
//! First one client asks the model and then the gateway, again and again: what the second takes longer
//! is the time of gateway, chain and miner. Then many clients ask the gateway at once. The model follows
//! a script and takes a fixed time; that time is never computed with, only measured.

mod client;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Args;
use serde_json::json;
use testkit::chat::Client;
use testkit::gateway::{ACCOUNT, Gateway, Home};
use testkit::miners::{Miner, MinerHome};
use testkit::net::free_ports;
use testkit::node::wait_until;
use testkit::parallel;
use testkit::process;
use testkit::script::{Count, Model, Question, Reply};

use crate::Options;
use crate::chain::Chain;
use crate::report::{line, percentile};
use client::{body, timed};

/// Nobody is sent away while miners are busy, and no miner needs a bond.
const SETTINGS: &str = "public_prompts = true\nclaim_bond_micro = 0\nclaim_wait_ms = 600000\n";
/// Lengths of what is asked, all below the 16 KiB that a request carries without a blob.
const LENGTHS: [usize; 3] = [200, 4_000, 14_000];
/// Tokens of an answer.
const TOKENS: u64 = 20;

/// What is asked, of how many miners.
#[derive(Clone, Debug, Args)]
pub(crate) struct Plan {
    /// Requests that are asked one after the other, of the model and of the gateway
    #[arg(long, default_value_t = 100)]
    requests: usize,
    /// Streams at once; 0 leaves them out
    #[arg(long, default_value_t = 200)]
    streams: usize,
    /// Requests of each stream, one after the other
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Milliseconds that the model takes for an answer
    #[arg(long, default_value_t = 100)]
    model_ms: u64,
    /// Miners, each a process; all of them ask the same model
    #[arg(long, default_value_t = 1)]
    miners: usize,
    /// Runs that a miner works on at once
    #[arg(long, default_value_t = 200)]
    runs_max: usize,
}

/// Everything between the clients and the model. Who asks comes down first.
struct Scene {
    client: Client,
    gateway: Gateway,
    home: Home,
    /// The model itself, asked in the same way.
    model: Client,
    _miners: Vec<Miner>,
    _folder: tempfile::TempDir,
}

/// Asks, and prints a line for each part.
pub(crate) fn measure(plan: &Plan, options: &Options) -> anyhow::Result<()> {
    ensure!(plan.miners >= 1, "--miners must be at least 1");
    ensure!(options.accounts > ACCOUNT + plan.miners, "--accounts must exceed --miners by three");
    let options = Options { v7: options.v7.or(Some(0)), ..options.clone() };
    let mut chain = Chain::start(&options, false)?;
    let scene = Scene::start(plan, chain.rpc()?)?;
    alone(plan, &options, &scene)?;
    if plan.streams > 0 {
        crowd(plan, &options, &scene)?;
    }
    scene.agrees()?;
    drop(scene);
    chain.stop()
}

impl Scene {
    fn start(plan: &Plan, rpc: SocketAddr) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let takes = Duration::from_millis(plan.model_ms);
        let model = Model::start(move |question| answer(question, takes))?;
        let policy = format!(
            "context_tokens_max = 32768\n[policy]\nclaim_jitter_ms = 0\nruns_max = {}\n\
             claims_per_day_max = 1000000",
            plan.runs_max
        );
        let miner = |number| {
            let settings = model.settings(&policy);
            MinerHome::new(folder.path(), ACCOUNT + 1 + number, rpc, &settings)?.start()
        };
        let miners = (0..plan.miners).map(miner).collect::<anyhow::Result<_>>()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_ports(1)?));
        let home = Home::new(folder.path(), (rpc, address), SETTINGS)?;
        let client = Client { address, key: home.new_key("load", &[])? };
        let gateway = home.start()?;
        client.is_served()?;
        let model = Client { address: model.address, key: "none".to_owned() };
        Ok(Self { client, gateway, home, model, _miners: miners, _folder: folder })
    }

    /// Sees that the gateway's books are the chain's, and that no escrow is left.
    fn agrees(&self) -> anyhow::Result<()> {
        wait_until("all requests to end", || {
            let told = self.home.told(&["check"])?;
            Ok(told["open"] == 0 && told["escrowedMicro"] == 0)
        })
    }
}

/// What the model answers, after a time of its own.
fn answer(question: &Question, takes: Duration) -> Reply {
    std::thread::sleep(takes);
    let said = format!("{} bytes were asked", question.prompt.len());
    let count = Count { output: Some(TOKENS), ..Count::default() };
    Reply::counted(&json!({ "content": said }), count)
}

/// Asks the model and the gateway the same, in turns.
fn alone(plan: &Plan, options: &Options, scene: &Scene) -> anyhow::Result<()> {
    let (mut direct, mut through, mut over) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..plan.requests {
        let body = body(number, LENGTHS[number % LENGTHS.len()]);
        let model = timed(&scene.model, &body)?;
        let gateway = timed(&scene.client, &body)?;
        let (said, answered) = (&model.said, &gateway.said);
        ensure!(said == answered, "the model said {said:?}, the gateway {answered:?}");
        over.push(gateway.took.saturating_sub(model.took));
        direct.push(model.took);
        through.push(gateway.took);
    }
    for times in [&mut direct, &mut through, &mut over] {
        times.sort_unstable();
    }
    let block_ms = options.block_time;
    let intervals = |percent| Some(percentile(&over, percent)? / ms(block_ms));
    line(&json!({
        "workload": "gateway",
        "part": "alone",
        "requests": plan.requests,
        "miners": plan.miners,
        "blockMs": block_ms,
        "modelP50Ms": percentile(&direct, 50),
        "modelP99Ms": percentile(&direct, 99),
        "gatewayP50Ms": percentile(&through, 50),
        "gatewayP99Ms": percentile(&through, 99),
        "overheadP50Ms": percentile(&over, 50),
        "overheadP90Ms": percentile(&over, 90),
        "overheadP99Ms": percentile(&over, 99),
        "overheadP50Blocks": intervals(50),
        "overheadP90Blocks": intervals(90),
        "overheadP99Blocks": intervals(99),
    }))
}

/// Milliseconds as a number with a fraction.
fn ms(whole: u64) -> f64 {
    Duration::from_millis(whole).as_secs_f64() * 1e3
}

/// Asks the gateway from many clients at once.
fn crowd(plan: &Plan, options: &Options, scene: &Scene) -> anyhow::Result<()> {
    let pid = scene.gateway.pid();
    let cpu_seconds_before = process::cpu_seconds(pid)?;
    let started = Instant::now();
    let streams = vec![(); plan.streams];
    let asked = parallel::at_once(&streams, |stream, ()| ask_all(plan, &scene.client, stream))?;
    let took = started.elapsed();
    let mut times: Vec<_> = asked.into_iter().flatten().collect();
    times.sort_unstable();
    let answers = f64::from(u32::try_from(times.len())?);
    let cpu_seconds = process::cpu_seconds(pid)? - cpu_seconds_before;
    line(&json!({
        "workload": "gateway",
        "part": "crowd",
        "streams": plan.streams,
        "requests": times.len(),
        "miners": plan.miners,
        "blockMs": options.block_time,
        "answersPerS": answers / took.as_secs_f64(),
        "p50Ms": percentile(&times, 50),
        "p99Ms": percentile(&times, 99),
        "gatewayCpuMsPerAnswer": cpu_seconds * 1e3 / answers,
        "gatewayRssMb": process::rss_kb(pid)? / 1_024,
        "gatewayPeakRssMb": process::peak_rss_kb(pid)? / 1_024,
    }))
}

/// One client of many: how long each answer took.
fn ask_all(plan: &Plan, client: &Client, stream: usize) -> anyhow::Result<Vec<Duration>> {
    let numbers = (0..plan.rounds).map(|round| plan.requests + stream * plan.rounds + round);
    let ask = |number: usize| {
        let length = LENGTHS[number % LENGTHS.len()];
        let answer = timed(client, &body(number, length))?;
        let expected = format!("{length} bytes were asked");
        ensure!(answer.said == expected, "{:?} instead of {expected:?}", answer.said);
        Ok(answer.took)
    };
    numbers.map(ask).collect()
}
