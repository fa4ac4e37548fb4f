//! What miners do over a longer time and with the programs of others: committees with bad members, `kill -9`
//! at random, llama.cpp's server, and MCP servers from `PyPI`.
//!
//! ```text
//! miners                     every case
//! miners llama               the cases whose name contains the word
//! miners kills --seconds 600 ten minutes of deaths
//! miners committee --calls 500  ten miners and as many calls
//! ```
//!
//! What cannot be had on a machine is reported as SKIPPED, with the reason, and the program ends with
//! exit code 77 then, unless something failed.

mod cases;

use std::hash::{BuildHasher as _, RandomState};
use std::process::ExitCode;

use clap::Parser;
use testkit::suite::{Outcome, Selection, Style, Suite};

use cases::CASES;

#[derive(Debug, Parser)]
#[command(name = "miners", about = "What miners do among deaths and with the programs of others")]
struct Cli {
    /// How long miners are killed
    #[arg(long, default_value_t = 40)]
    seconds: u64,
    /// How many calls ten miners are asked
    #[arg(long, default_value_t = 16)]
    calls: usize,
    /// Decides who is killed and when [default: another one each time]
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    selection: Selection,
}

/// How much is tried.
#[derive(Clone, Copy, Debug)]
struct Extent {
    seconds: u64,
    calls: usize,
    seed: u64,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let seed = cli.seed.unwrap_or_else(|| RandomState::new().hash_one(0));
    let extent = Extent { seconds: cli.seconds, calls: cli.calls, seed };
    let suite = Suite { name: "miners", cases: CASES, style: Style::HEADINGS };
    suite.main(&cli.selection, || Ok(()), |(), run| run(extent).map(Outcome::Passed))
}
