//! What a chain of real nodes does when machines, disks, clocks, wires and peers misbehave.
//!
//! ```text
//! faults                     every fault, shortly
//! faults partition           the faults whose name contains the word
//! faults --full              with as many rounds and blocks as the rules of the house ask for
//! faults --soak 30           half an hour of steady load, and a table of the memory of each node
//! ```
//!
//! Each fault runs in a process of its own with its own network, mounts and process ids, so that
//! nothing of it stays and nothing of it meets what else runs on the machine. After each, all
//! honest nodes have one chain, every transaction that a client saw confirmed stands in it, its
//! money adds up, and no node's memory has grown without bound.
//!
//! What cannot run on a machine is reported as SKIPPED, with the reason.

mod cases;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use tests::harness::report::say;
use tests::harness::suite::{self, Suite};

use cases::{CASES, Case};

#[derive(Debug, Parser)]
#[command(name = "faults", about = "What a chain of real nodes does under faults")]
struct Cli {
    /// Only faults whose name contains this
    filter: Option<String>,
    /// As many rounds and blocks as it takes, however long that is
    #[arg(long)]
    full: bool,
    /// Only list the faults
    #[arg(long)]
    list: bool,
    /// Minutes of steady load; nothing else runs
    #[arg(long, value_name = "MINUTES")]
    soak: Option<u64>,
    /// Run this one fault here; the program starts itself this way
    #[arg(long, hide = true, requires = "reason")]
    inside: Option<String>,
    /// Where the one fault leaves why it failed
    #[arg(long, hide = true, value_name = "FILE")]
    reason: Option<PathBuf>,
}

/// How thoroughly a fault is tried.
#[derive(Clone, Copy, Debug)]
struct Extent {
    is_full: bool,
    soak_minutes: u64,
}

impl Extent {
    /// One number for a short run and another for a full one.
    const fn pick(self, short: u64, full: u64) -> u64 {
        if self.is_full { full } else { short }
    }
}

/// The longest that one fault may take.
const SHORT_MAX: Duration = Duration::from_secs(300);
const FULL_MAX: Duration = Duration::from_secs(3_600);
/// What a soak takes beyond twice its minutes: afterwards each node is asked for each transaction.
const SOAK_MORE: Duration = Duration::from_secs(300);
/// The name of the case that runs only when it is asked for.
const SOAK: &str = "soak";

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<bool> {
    let extent = Extent { is_full: cli.full, soak_minutes: cli.soak.unwrap_or(1) };
    if let Some(name) = &cli.inside {
        return suite::inside(CASES, name, extent, cli.reason.as_deref());
    }
    let mut arguments = Vec::new();
    if cli.full {
        arguments.push("--full".into());
    }
    if let Some(minutes) = cli.soak {
        arguments.extend(["--soak".into(), minutes.to_string().into()]);
    }
    let longest = match (cli.soak, cli.full) {
        (Some(minutes), _) => Duration::from_secs(minutes * 120) + SOAK_MORE,
        (None, true) => FULL_MAX,
        (None, false) => SHORT_MAX,
    };
    let suite = Suite { noun: "faults", chosen: chosen(cli), arguments, quiet: &[], longest };
    if cli.list {
        suite.list();
        return Ok(true);
    }
    suite.run()
}

fn chosen(cli: &Cli) -> Vec<&'static Case> {
    let is_chosen = |case: &&Case| match (cli.soak, &cli.filter) {
        (Some(_), _) => case.name == SOAK,
        (None, Some(filter)) => case.name != SOAK && case.name.contains(filter.as_str()),
        (None, None) => cli.list || case.name != SOAK,
    };
    CASES.iter().filter(is_chosen).collect()
}
