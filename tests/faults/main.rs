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
mod harness;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Parser;

use cases::{CASES, Case};
use harness::report::say;

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

/// What came of a fault.
enum Outcome {
    Passed(Duration),
    Failed(String),
    Skipped(String),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
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
        let case = CASES.iter().find(|case| case.name == name).context("no such fault")?;
        return inside(case, extent, cli.reason.as_deref());
    }
    let chosen = chosen(cli);
    if chosen.is_empty() {
        bail!("no fault has {:?} in its name; --list shows them", cli.filter);
    }
    if cli.list {
        chosen.iter().for_each(|case| say(&format!("{:<24} {}", case.name, case.about)));
        return Ok(true);
    }
    let mut outcomes = Vec::new();
    for case in chosen {
        say(&format!("\n== {}: {}", case.name, case.about));
        let outcome = run_apart(case, cli, extent)?;
        match &outcome {
            Outcome::Passed(took) => say(&format!("== {} passed in {took:.0?}", case.name)),
            Outcome::Failed(why) => say(&format!("== {} FAILED: {why}", case.name)),
            Outcome::Skipped(why) => say(&format!("== {} SKIPPED: {why}", case.name)),
        }
        outcomes.push((case.name, outcome));
    }
    Ok(summary(&outcomes))
}

/// Runs a fault in this process, and leaves the reason of a failure for the one that started it.
fn inside(case: &Case, extent: Extent, reason: Option<&Path>) -> anyhow::Result<bool> {
    let outcome = (case.run)(extent);
    if let (Err(error), Some(file)) = (&outcome, reason) {
        std::fs::write(file, format!("{error:#}"))?;
    }
    outcome.map(|()| true)
}

fn chosen(cli: &Cli) -> Vec<&'static Case> {
    let is_chosen = |case: &&Case| match (cli.soak, &cli.filter) {
        (Some(_), _) => case.name == SOAK,
        (None, Some(filter)) => case.name != SOAK && case.name.contains(filter.as_str()),
        (None, None) => cli.list || case.name != SOAK,
    };
    CASES.iter().filter(is_chosen).collect()
}

fn summary(outcomes: &[(&str, Outcome)]) -> bool {
    let passed = outcomes.iter().filter(|(_, it)| matches!(it, Outcome::Passed(_))).count();
    say(&format!("\n{passed} of {} faults passed", outcomes.len()));
    let mut all_fine = true;
    for (name, outcome) in outcomes {
        match outcome {
            Outcome::Passed(_) => {}
            Outcome::Skipped(why) => say(&format!("SKIPPED {name}: {why}")),
            Outcome::Failed(why) => {
                all_fine = false;
                say(&format!("FAILED  {name}: {why}"));
            }
        }
    }
    all_fine
}

/// Runs a fault in a process with namespaces of its own; what it starts ends with it.
fn run_apart(case: &Case, cli: &Cli, extent: Extent) -> anyhow::Result<Outcome> {
    if let Some(reason) = harness::needs::missing(case.needs) {
        return Ok(Outcome::Skipped(reason));
    }
    let program = std::env::current_exe()?;
    let reason = tempfile::NamedTempFile::new().context("a file for the reason of a failure")?;
    let mut arguments: Vec<OsString> = vec!["--inside".into(), case.name.into()];
    arguments.extend(["--reason".into(), reason.path().into()]);
    if cli.full {
        arguments.push("--full".into());
    }
    if let Some(minutes) = cli.soak {
        arguments.extend(["--soak".into(), minutes.to_string().into()]);
    }
    let mut command = match harness::needs::apart() {
        Some(apart) => {
            let mut command = Command::new("unshare");
            command.args(apart).args(["--", "sh", "-c", harness::needs::ENTER]).arg(program);
            command
        }
        None => Command::new(program),
    };
    command.args(arguments).stdin(Stdio::null());
    let started = Instant::now();
    let most = match (case.name == SOAK, extent.is_full) {
        (true, _) => Duration::from_secs(extent.soak_minutes * 120) + SOAK_MORE,
        (false, true) => FULL_MAX,
        (false, false) => SHORT_MAX,
    };
    let mut process = command.spawn().context("starting the fault's process")?;
    loop {
        if let Some(status) = process.try_wait()? {
            let took = started.elapsed();
            std::io::stdout().flush()?;
            return Ok(match status.success() {
                true => Outcome::Passed(took),
                false => Outcome::Failed(why(status, reason.path())),
            });
        }
        if started.elapsed() > most {
            process.kill()?;
            process.wait()?;
            return Ok(Outcome::Failed(format!("it took longer than {most:?}")));
        }
        // The pause of the loop that waits with a deadline.
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Why a fault's process failed: its own word, or how it ended if it left none.
fn why(status: ExitStatus, reason: &Path) -> String {
    match std::fs::read_to_string(reason) {
        Ok(reason) if !reason.is_empty() => reason,
        Ok(_) => status.to_string(),
        Err(error) => format!("{status}; its reason cannot be read: {error}"),
    }
}
