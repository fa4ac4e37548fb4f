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

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use testkit::suite::Selection;
use testkit::suite::namespaces::{Inside, Suite};

use cases::CASES;

#[derive(Debug, Parser)]
#[command(name = "faults", about = "What a chain of real nodes does under faults")]
#[command(mut_arg("filter", |filter| filter.help("Only faults whose name contains this")))]
#[command(mut_arg("list", |list| list.help("Only list the faults")))]
struct Cli {
    /// As many rounds and blocks as it takes, however long that is
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    selection: Selection,
    /// Minutes of steady load; nothing else runs
    #[arg(long, value_name = "MINUTES")]
    soak: Option<u64>,
    #[command(flatten)]
    inside: Inside,
}

/// The validators of most chains.
const ALL: &[usize] = &[0, 1, 2, 3];

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
    let Cli { full, selection, soak, inside } = Cli::parse();
    let mut arguments = Vec::new();
    if full {
        arguments.push("--full".into());
    }
    if let Some(minutes) = soak {
        arguments.extend(["--soak".into(), minutes.to_string().into()]);
    }
    let longest = match (soak, full) {
        (Some(minutes), _) => Duration::from_secs(minutes * 120) + SOAK_MORE,
        (None, true) => FULL_MAX,
        (None, false) => SHORT_MAX,
    };
    let suite = Suite { noun: "faults", cases: CASES, arguments, longest };
    let extent = Extent { is_full: full, soak_minutes: soak.unwrap_or(1) };
    suite.main(&inside, extent, selection.list, |name| match (soak, &selection.filter) {
        (Some(_), _) => name == SOAK,
        (None, Some(_)) => name != SOAK && selection.has(name),
        (None, None) => selection.list || name != SOAK,
    })
}
