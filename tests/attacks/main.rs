//! What strangers may do to a chain of real nodes, and what an honest user sees meanwhile.
//!
//! ```text
//! attacks                    every attack, shortly
//! attacks replay             the attacks whose name contains the word
//! attacks --list             their names and what they try
//! ```
//!
//! Each attack was made against the first release, where it did harm, and stays here so that it never
//! does again; docs/attacks.md has the figures of before and after. Each runs in a process with its own
//! network, mounts and process ids, is bounded in time and count, and reaches nothing but the nodes
//! that it started. `OMBRA_BIN` names another program to attack.
//!
//! What cannot run on a machine is reported as SKIPPED, with the reason.

mod cases;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::Parser;
use tests::harness::report::say;
use tests::harness::suite::{self, Suite};

use cases::CASES;

#[derive(Debug, Parser)]
#[command(name = "attacks", about = "What strangers may do to a chain, and what a user sees")]
struct Cli {
    /// Only attacks whose name contains this
    filter: Option<String>,
    /// Only list the attacks
    #[arg(long)]
    list: bool,
    /// Run this one attack here; the program starts itself this way
    #[arg(long, hide = true, requires = "reason")]
    inside: Option<String>,
    /// Where the one attack leaves why it failed
    #[arg(long, hide = true, value_name = "FILE")]
    reason: Option<PathBuf>,
}

/// Attacks that are about what is true and not about how fast it is, so that they may run beside each other.
const QUIET: &[&str] = &[
    "amnesia",
    "amnesia_fork",
    "closed_desk",
    "control_characters",
    "doubted_answers",
    "dropped_blobs",
    "false_members",
    "fork_votes",
    "griefed_miners",
    "idle_claims",
    "lying_offers",
    "move_time",
    "other_chain",
    "other_history",
    "refused_miners",
    "retired_keys",
    "squatted_snapshots",
    "stolen_runs",
    "unread_answers",
    "withheld_turn",
];

/// The longest that one attack may take.
const LONGEST: Duration = Duration::from_secs(180);

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
    if let Some(name) = &cli.inside {
        return suite::inside(CASES, name, (), cli.reason.as_deref());
    }
    if let Some(unknown) = QUIET.iter().find(|name| CASES.iter().all(|case| case.name != **name)) {
        bail!("{unknown}, which is called quiet, is no attack");
    }
    let is_chosen = |name: &str| cli.filter.as_ref().is_none_or(|filter| name.contains(filter));
    let chosen = CASES.iter().filter(|case| is_chosen(case.name)).collect();
    let arguments = Vec::new();
    let suite = Suite { noun: "attacks", chosen, arguments, quiet: QUIET, longest: LONGEST };
    if cli.list {
        suite.list();
        return Ok(true);
    }
    suite.run()
}
