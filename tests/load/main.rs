//! The load program: starts a node, drives it through JSON-RPC, and reports what it did.
//!
//! ```text
//! load w1 --txs 20000 --conns 8 --batch 50     transfers between distinct senders
//! load w2 --runs 2000 --conns 8 --batch 50     whole agent runs of 11 transactions
//! load replay --runs 10000                     the same, and then the chain executed again
//! load catchup --runs 10000                    the same, and then a new follower gets the chain
//! load pages --runs 100000                      the same, and then everything is asked for
//! load w2 --validators 4 --spread              the same, to four nodes that agree on blocks
//! load pool --txs 100000                       transactions that wait, and the memory they take
//! load calls --calls 20000                     calls to an agent, of seven transactions and an election each
//! load gateway --streams 200                   requests to a gateway, beside the same ones to the model
//! ```
//!
//! Everything is signed before the clock starts. A run counts when the chain holds its settlement.
//! The generator and the nodes share the machine, as in every figure of docs/performance.md.

mod calls;
mod catchup;
mod chain;
mod gateway;
mod pages;
mod probe;
mod replay;
mod report;

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{Args, Parser, Subcommand};

use chain::Chain;
use probe::Probe;
use report::{Lane, Report};
use testkit::http::{self, Connection};
use testkit::parallel;
use testkit::workload::{Crowd, Workload};

#[derive(Debug, Parser)]
#[command(name = "load", about = "Drive a node through JSON-RPC and report what it did")]
struct Cli {
    #[command(subcommand)]
    work: Work,
}

#[derive(Debug, Subcommand)]
enum Work {
    #[command(flatten)]
    Plain(Plain),
    /// Calls to an agent, from their requests to their settlements, each with three members that the chain
    /// draws: an AGENT_CALL, three CALL_COMMIT, three CALL_REVEAL
    Calls {
        /// How many calls
        #[arg(long, default_value_t = 10_000)]
        calls: usize,
        /// Miners with a bond and an offer; the other accounts ask
        #[arg(long, default_value_t = 40)]
        miners: usize,
        /// Calls that are under way at once; a miner works at 64 at most
        #[arg(long, default_value_t = 512)]
        in_flight: usize,
        #[command(flatten)]
        options: Options,
    },
    /// Requests to a gateway, of one client that asks the model behind it as well, and of many at once
    #[command(
        after_help = "Miners and gateway are the program that OMBRA_BIN names, or the one beside this. \
        The rules of v7 hold from the first block on unless --v7 says otherwise."
    )]
    Gateway {
        #[command(flatten)]
        plan: gateway::Plan,
        #[command(flatten)]
        options: Options,
    },
}

/// Transfers, and runs in several ways.
#[derive(Debug, Subcommand)]
enum Plain {
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
    /// Whole agent runs; then every list and record is asked for
    Pages {
        /// How many runs
        #[arg(long, default_value_t = 10_000)]
        runs: usize,
        /// How often each question is asked
        #[arg(long, default_value_t = 1_000)]
        requests: usize,
        /// Fail if the 99th percentile of a question takes longer
        #[arg(long, default_value_t = 50)]
        p99_ms: u64,
        /// Entries in the miner directory
        #[arg(long, default_value_t = 10_000)]
        miners: usize,
        /// Accounts that hold something and never send
        #[arg(long, default_value_t = 100_000)]
        holders: usize,
        #[command(flatten)]
        options: Options,
    },
    /// Whole agent runs; then a new follower catches up, in turns with executing the chain again
    Catchup {
        /// How many runs
        #[arg(long, default_value_t = 10_000)]
        runs: usize,
        /// How often each is done
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
    /// From which block on the rules of v7 hold; without it the chain never has them
    #[arg(long, value_name = "HEIGHT")]
    v7: Option<u64>,
    /// From which block on there is the agent market: from the first for calls, else never
    #[arg(skip)]
    v8: Option<u64>,
    /// Validators, each a process; 0 is one node that makes blocks alone
    #[arg(long, default_value_t = 0)]
    validators: usize,
    /// Nodes beside the validators that only follow
    #[arg(long, default_value_t = 0, requires = "validators")]
    followers: usize,
    /// Deal the connections out to all nodes instead of to the first
    #[arg(long, requires = "validators")]
    spread: bool,
    /// Keep the node's data here instead of in a temporary folder
    #[arg(long, conflicts_with = "validators")]
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
    match Cli::parse().work {
        Work::Plain(work) => make_plain(&work),
        Work::Calls { calls, miners, in_flight, options } => {
            make_calls(calls::Plan { calls, miners, in_flight }, &options)
        }
        Work::Gateway { plan, options } => gateway::measure(&plan, &options),
    }
}

fn make_plain(work: &Plain) -> anyhow::Result<()> {
    let (name, options, workload) = match work {
        Plain::W1 { txs, options } => ("W1", options, Workload::transfers(*txs, options.accounts)?),
        Plain::W2 { runs, options }
        | Plain::Replay { runs, options, .. }
        | Plain::Catchup { runs, options, .. } => {
            ("W2", options, Workload::runs(*runs, options.accounts)?)
        }
        Plain::Pages { runs, miners, holders, options, .. } => {
            let crowd = Crowd { miners: *miners, holders: *holders };
            ("pages", options, Workload::runs_in_a_crowd(*runs, options.accounts, crowd)?)
        }
        Plain::Pool { txs, options } => {
            ("pool", options, Workload::runs(txs.div_ceil(RUN_TXS), options.accounts)?)
        }
    };
    check(options)?;
    let stays_pooled = matches!(work, Plain::Pool { .. });
    if matches!(work, Plain::Replay { .. }) && options.validators > 0 {
        bail!("replay takes one node");
    }
    let mut chain = if matches!(work, Plain::Catchup { .. }) {
        Chain::start_but_last(options)?
    } else {
        Chain::start(options, stays_pooled)?
    };
    let report = if stays_pooled {
        fill(name, options, workload, &chain)
    } else {
        drive(name, options, workload, &chain)
    };
    // A failure says more than what it leads to.
    let report = report?;
    if let (Plain::Catchup { rounds, .. }, Chain::Several(net)) = (work, &mut chain) {
        return catchup::measure(net, *rounds);
    }
    if let Plain::Pages { requests, p99_ms, .. } = work {
        report.print(&chain)?;
        pages::measure(chain.rpc()?, *requests, Duration::from_millis(*p99_ms))?;
        return chain.stop();
    }
    chain.stop()?;
    report.print(&chain)?;
    match (work, &chain) {
        (Plain::Replay { rounds, .. }, Chain::Alone(node)) => replay::measure(node, *rounds),
        _ => Ok(()),
    }
}

fn check(options: &Options) -> anyhow::Result<()> {
    if options.conns == 0 || options.batch == 0 {
        bail!("--conns and --batch must be at least 1");
    }
    Ok(())
}

/// Calls to an agent, on a chain that has the market from the first block on.
fn make_calls(plan: calls::Plan, options: &Options) -> anyhow::Result<()> {
    check(options)?;
    let options = Options { v8: Some(0), ..options.clone() };
    let mut chain = Chain::start(&options, false)?;
    let report = calls::drive(plan, &options, &chain)?;
    chain.stop()?;
    report.print(&chain)
}

/// Sends everything and waits until all of it is included.
fn drive(name: &str, options: &Options, work: Workload, chain: &Chain) -> anyhow::Result<Report> {
    let expected = work.nonces();
    let probe = Probe::start(chain.rpc()?, options.accounts)?;
    let mut report = send_all(name, options, work, chain)?;
    let deadline = report.started + Duration::from_secs(options.timeout_s);
    wait_for_nonces(chain.rpc()?, &expected, "nonce", deadline)?;
    report.included = Some(report.started.elapsed());
    report.inclusion = probe.stop()?;
    chain.agree()?;
    report.read(chain)?;
    Ok(report)
}

/// Sends everything and sees that all of it waits.
fn fill(name: &str, options: &Options, work: Workload, chain: &Chain) -> anyhow::Result<Report> {
    let mut report = send_all(name, options, work, chain)?;
    let status = chain.call("txpool_status", &serde_json::json!([]))?;
    let pooled = ["pending", "queued"].map(|half| status[half].as_u64().unwrap_or(0));
    if pooled.iter().sum::<u64>() != u64::try_from(report.txs)? {
        bail!("{} transactions were sent, the pool says {status}", report.txs);
    }
    report.read(chain)?;
    Ok(report)
}

fn send_all(
    name: &str,
    options: &Options,
    work: Workload,
    chain: &Chain,
) -> anyhow::Result<Report> {
    let mut report =
        Report { runs: work.runs, ..Report::begin(name, work.total(), options, chain)? };
    let addresses = chain.addresses();
    let addresses = addresses.get(..if options.spread { addresses.len() } else { 1 });
    let addresses = addresses.context("a chain without nodes")?;
    for wave in work.waves {
        let nonces = wave.nonces.clone();
        let lanes = wave.into_lanes(options.conns);
        let share = lane_rate(options, lanes.len());
        let lanes = parallel::at_once(&lanes, |place, lane| {
            submit(lane, options.batch, share, addresses[place % addresses.len()])
        })?;
        report.add(lanes);
        // What comes next builds on this wave, wherever it is sent to.
        if addresses.len() > 1 {
            let deadline = Instant::now() + Duration::from_secs(options.timeout_s);
            for rpc in addresses {
                wait_for_nonces(*rpc, &nonces, "pendingNonce", deadline)?;
            }
        }
    }
    report.ends();
    Ok(report)
}

/// What one connection may offer per second; none is no limit.
fn lane_rate(options: &Options, lanes: usize) -> Option<f64> {
    let lanes = u32::try_from(lanes.max(1)).unwrap_or(u32::MAX);
    let rate = u32::try_from(options.rate).unwrap_or(u32::MAX);
    (rate > 0).then(|| f64::from(rate) / f64::from(lanes))
}

/// Sends the texts of one lane in order, one request at a time.
fn submit(
    texts: &[String],
    batch: usize,
    rate: Option<f64>,
    rpc: SocketAddr,
) -> anyhow::Result<Lane> {
    let mut connection = Connection::open(rpc)?;
    let mut lane = Lane::default();
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
            writeln!(std::io::stderr(), "first rejection: {shown}")?;
        }
        lane.refused += refused;
    }
    Ok(lane)
}

/// Waits until accounts have reached a nonce at a node.
fn wait_for_nonces(
    rpc: SocketAddr,
    nonces: &[(String, u64)],
    which: &str,
    deadline: Instant,
) -> anyhow::Result<()> {
    let mut connection = Connection::open(rpc)?;
    for (address, nonce) in nonces {
        loop {
            let account = connection.call("ombra_getAccount", &serde_json::json!([address]))?;
            let reached = account[which].as_u64().unwrap_or(0);
            if reached >= *nonce {
                break;
            }
            if Instant::now() > deadline {
                bail!("{address} has the {which} {reached} at {rpc}, expected {nonce}");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    Ok(())
}
