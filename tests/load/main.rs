//! The load program: starts a node, drives it through JSON-RPC, and reports what it did.
//!
//! ```text
//! load w1 --txs 20000 --conns 8 --batch 50     transfers between distinct senders
//! load w2 --runs 2000 --conns 8 --batch 50     whole agent runs of 11 transactions
//! ```
//!
//! Everything is signed before the clock starts. A run counts when the chain holds its settlement.
//! The generator and the node share the machine, as in every figure of docs/performance.md.

mod report;

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::{Args, Parser, Subcommand};

use report::Report;
use tests::http::{self, Connection};
use tests::node::{DevOptions, Node};
use tests::workload::Workload;

#[derive(Debug, Parser)]
#[command(name = "load", about = "Drive a node through JSON-RPC and report what it did")]
struct Cli {
    #[command(subcommand)]
    work: Work,
}

#[derive(Debug, Subcommand)]
enum Work {
    /// Transfers between distinct senders
    W1 {
        /// How many transfers
        #[arg(long, default_value_t = 20_000)]
        txs: usize,
        #[command(flatten)]
        options: Options,
    },
    /// Whole agent runs: request, claim, eight steps, finish
    W2 {
        /// How many runs
        #[arg(long, default_value_t = 2_000)]
        runs: usize,
        #[command(flatten)]
        options: Options,
    },
}

#[derive(Clone, Debug, Args)]
struct Options {
    /// The node's binary
    #[arg(long, default_value = "ombra")]
    ombra: PathBuf,
    /// Connections, each with one request under way
    #[arg(long, default_value_t = 8)]
    conns: usize,
    /// Transactions in one JSON-RPC array; 1 is one POST each
    #[arg(long, default_value_t = 50)]
    batch: usize,
    /// Accounts that send
    #[arg(long, default_value_t = 400)]
    accounts: usize,
    /// The most transactions per second that are offered; 0 is as fast as it goes
    #[arg(long, default_value_t = 0)]
    rate: u64,
    /// Milliseconds between blocks
    #[arg(long, default_value_t = 50)]
    block_time: u64,
    /// Keep the node's data here instead of in a temporary folder
    #[arg(long)]
    data_dir: Option<PathBuf>,
    /// Give up when the transactions are not all included after so many seconds
    #[arg(long, default_value_t = 120)]
    timeout_s: u64,
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let (name, options, workload) = match &cli.work {
        Work::W1 { txs, options } => ("W1", options, Workload::transfers(*txs, options.accounts)?),
        Work::W2 { runs, options } => ("W2", options, Workload::runs(*runs, options.accounts)?),
    };
    if options.conns == 0 || options.batch == 0 {
        bail!("--conns and --batch must be at least 1");
    }
    let mut node = Node::start(DevOptions {
        binary: options.ombra.clone(),
        data_dir: options.data_dir.clone(),
        accounts: options.accounts,
        block_time_ms: options.block_time,
        more: Vec::new(),
        settings: Vec::new(),
    })?;
    let report = drive(name, options, workload, &node);
    node.stop()?;
    report?.print(&node)
}

fn drive(name: &str, options: &Options, work: Workload, node: &Node) -> anyhow::Result<Report> {
    let txs = work.total();
    let runs = work.runs;
    let expected = work.nonces.clone();
    let cpu_before = node.cpu_seconds()?;
    let start = Instant::now();
    let mut latencies = Vec::with_capacity(txs / options.batch + 1);
    let mut refused = 0;
    for wave in work.waves {
        let lanes = wave.into_lanes(options.conns);
        let share = lane_rate(options, lanes.len());
        #[expect(
            clippy::needless_collect,
            reason = "all lanes start before the first is waited for"
        )]
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let workers: Vec<_> = lanes
                .into_iter()
                .map(|lane| scope.spawn(move || submit(&lane, options.batch, share, node)))
                .collect();
            workers.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
        });
        for outcome in outcomes {
            let lane =
                outcome.map_err(|_panic| anyhow::anyhow!("a generator thread panicked"))??;
            latencies.extend(lane.latencies);
            refused += lane.refused;
        }
    }
    let accepted = start.elapsed();
    wait_until_included(&expected, node, start, options.timeout_s)?;
    let included = start.elapsed();
    latencies.sort_unstable();
    Ok(Report {
        name: name.to_owned(),
        txs,
        runs,
        refused,
        conns: options.conns,
        batch: options.batch,
        accepted,
        included,
        latencies,
        node_cpu_seconds: node.cpu_seconds()? - cpu_before,
        peak_rss_kb: node.peak_rss_kb()?,
        blocks: node.height()?,
    })
}

/// What one connection may offer per second; none is no limit.
fn lane_rate(options: &Options, lanes: usize) -> Option<f64> {
    let lanes = u32::try_from(lanes.max(1)).unwrap_or(u32::MAX);
    let rate = u32::try_from(options.rate).unwrap_or(u32::MAX);
    (rate > 0).then(|| f64::from(rate) / f64::from(lanes))
}

struct Lane {
    latencies: Vec<Duration>,
    refused: usize,
}

/// Sends the texts of one lane in order, one request at a time.
fn submit(texts: &[String], batch: usize, rate: Option<f64>, node: &Node) -> anyhow::Result<Lane> {
    let mut connection = Connection::open(node.rpc)?;
    let mut lane = Lane { latencies: Vec::new(), refused: 0 };
    let start = Instant::now();
    let mut sent = 0_u32;
    for texts in texts.chunks(batch) {
        if let Some(rate) = rate {
            let due = Duration::from_secs_f64(f64::from(sent) / rate);
            if let Some(early) = due.checked_sub(start.elapsed()) {
                std::thread::sleep(early);
            }
        }
        sent += u32::try_from(texts.len())?;
        let body = http::send_body(texts);
        let begun = Instant::now();
        let answer = connection.post(&body)?;
        lane.latencies.push(begun.elapsed());
        let refused = answer.matches("\"error\"").count();
        if refused > 0 && lane.refused == 0 {
            let shown: String = answer.chars().take(600).collect();
            writeln!(std::io::stderr(), "first refusal: {shown}")?;
        }
        lane.refused += refused;
    }
    Ok(lane)
}

fn wait_until_included(
    expected: &[(String, u64)],
    node: &Node,
    start: Instant,
    timeout_s: u64,
) -> anyhow::Result<()> {
    let mut connection = Connection::open(node.rpc)?;
    for (address, nonce) in expected {
        loop {
            let reached = http::account_nonce(&mut connection, address)?;
            if reached >= *nonce {
                break;
            }
            if start.elapsed() > Duration::from_secs(timeout_s) {
                bail!("account {address} has nonce {reached}, expected {nonce}");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    Ok(())
}
