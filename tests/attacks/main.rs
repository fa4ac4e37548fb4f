//! What strangers may do to a chain of real nodes, and what an honest user sees meanwhile.
//!
//! ```text
//! attacks                    every attack, shortly
//! attacks replay             the attacks whose name contains the word
//! attacks --list             their names and what they try
//! ```
//!
//! Most attacks use a weakness that some release had. Against that release, such an attack must
//! fail (exit with an error); against the current program, every attack must pass. docs/attacks.md
//! has the figures of before and after. Each runs in a process with its own network, mounts and
//! process ids, is bounded in time and count, and reaches nothing but the nodes that it started.
//! `OMBRA_BIN` names another program to attack.
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
#[command(name = "attacks", about = "What strangers may do to a chain, and what a user sees")]
#[command(mut_arg("filter", |filter| filter.help("Only attacks whose name contains this")))]
#[command(mut_arg("list", |list| list.help("Only list the attacks")))]
struct Cli {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    inside: Inside,
}

/// The longest that one attack may take.
const LONGEST: Duration = Duration::from_secs(180);

fn main() -> ExitCode {
    let Cli { selection, inside } = Cli::parse();
    let suite = Suite { noun: "attacks", cases: CASES, arguments: Vec::new(), longest: LONGEST };
    suite.main(&inside, (), selection.list, |name| selection.has(name))
}
