//! The load program: starts a node, drives it through JSON-RPC, and reports what it did.
//!
//! ```text
//! load w1 --txs 20000 --conns 8 --batch 50     transfers between distinct senders
//! load w2 --runs 2000 --conns 8 --batch 50     whole agent runs of 11 transactions
//! load replay --runs 10000                     the same, and then the chain executed again
//! load pool --txs 100000                       transactions that wait, and the memory they take
//! ```
//!
//! Everything is signed before the clock starts. A run counts when the chain holds its settlement.
//! The generator and the node share the machine, as in every figure of docs/performance.md.

mod probe;
mod replay;
mod report;

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::{Args, Parser, Subcommand};

use probe::Probe;
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
    /// Whole agent runs that stay in the pool, because no block is due: what memory they take
    Pool {
        /// How many transactions
        #[arg(long, default_value_t = 100_000)]
        txs: usize,
        #[command(flatten)]
        options: Options,
    },
    /// Whole agent runs; then the node is stopped, and its chain executed again from its storage
    Replay {
        /// How many runs
        #[arg(long, default_value_t = 10_000)]
        runs: usize,
        /// How often it is executed again
        #[arg(long, default_value_t = 3)]
        rounds: usize,
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

/// A block interval that does not come within a measurement.
const NO_BLOCKS_MS: u64 = 3_600_000;
/// Transactions of a run.
const RUN_TXS: usize = 11;

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let (name, options, workload) = match &cli.work {
        Work::W1 { txs, options } => ("W1", options, Workload::transfers(*txs, options.accounts)?),
        Work::W2 { runs, options } | Work::Replay { runs, options, .. } => {
            ("W2", options, Workload::runs(*runs, options.accounts)?)
        }
        Work::Pool { txs, options } => {
            ("pool", options, Workload::runs(txs.div_ceil(RUN_TXS), options.accounts)?)
        }
    };
    if options.conns == 0 || options.batch == 0 {
        bail!("--conns and --batch must be at least 1");
    }
    let stays_pooled = matches!(cli.work, Work::Pool { .. });
    let mut node = Node::start(DevOptions {
        binary: options.ombra.clone(),
        data_dir: options.data_dir.clone(),
        // The last one is the probe's.
        accounts: options.accounts + 1,
        block_time_ms: if stays_pooled { NO_BLOCKS_MS } else { options.block_time },
        more: if stays_pooled {
            vec!["--param".to_owned(), format!("heartbeatMs={NO_BLOCKS_MS}")]
        } else {
            Vec::new()
        },
        settings: Vec::new(),
    })?;
    let report = if stays_pooled {
        fill(name, options, workload, &node)
    } else {
        drive(name, options, workload, &node)
    };
    node.stop()?;
    report?.print(&node)?;
    if let Work::Replay { rounds, .. } = cli.work { replay::measure(&node, rounds) } else { Ok(()) }
}

/// Sends everything and waits until all of it is included.
fn drive(name: &str, options: &Options, work: Workload, node: &Node) -> anyhow::Result<Report> {
    let expected = work.nonces.clone();
    let probe = Probe::start(node, options.accounts)?;
    let mut report = send_all(name, options, work, node)?;
    wait_until_included(&expected, node, report.started, options.timeout_s)?;
    report.included = Some(report.started.elapsed());
    report.inclusion = probe.stop()?;
    report.read(node)?;
    Ok(report)
}

/// Sends everything and sees that all of it waits.
fn fill(name: &str, options: &Options, work: Workload, node: &Node) -> anyhow::Result<Report> {
    let mut report = send_all(name, options, work, node)?;
    let status = node.call("txpool_status", &serde_json::json!([]))?;
    let pooled = ["pending", "queued"].map(|half| status[half].as_u64().unwrap_or(0));
    if pooled.iter().sum::<u64>() != u64::try_from(report.txs)? {
        bail!("{} transactions were sent, the pool says {status}", report.txs);
    }
    report.read(node)?;
    Ok(report)
}

fn send_all(name: &str, options: &Options, work: Workload, node: &Node) -> anyhow::Result<Report> {
    let mut report = Report {
        name: name.to_owned(),
        txs: work.total(),
        runs: work.runs,
        conns: options.conns,
        batch: options.batch,
        cpu_seconds_before: node.cpu_seconds()?,
        ..Report::begin()
    };
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
            report.latencies.extend(lane.latencies);
            report.refused += lane.refused;
        }
    }
    report.accepted = report.started.elapsed();
    report.latencies.sort_unstable();
    Ok(report)
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
