//! What the gateway does with clients as they are: the official packages, clients that hang up, kills at
//! each phase. After each case its books are compared with the chain's.
//!
//! ```text
//! gateway            every case
//! gateway official   the cases whose name contains the word
//! gateway torture --seconds 600 --seed 7
//! ```
//!
//! What cannot be had on a machine is reported as SKIPPED, with the reason, and the program ends with
//! exit code 77 then, unless something failed.

mod cases;
mod committee;
mod document;
mod scene;
mod worker;

use std::process::ExitCode;

use clap::Parser;
use testkit::suite::{Outcome, Selection, Style, Suite};

use cases::CASES;

#[derive(Debug, Parser)]
#[command(name = "gateway", about = "What the gateway does with clients as they are")]
struct Cli {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    torture: cases::torture::Extent,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    cases::torture::extend(cli.torture);
    let suite = Suite { name: "gateway", cases: CASES, style: Style::HEADINGS };
    suite.main(&cli.selection, || Ok(()), |(), run| run().map(Outcome::Passed))
}
