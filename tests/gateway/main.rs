//! What the gateway does with clients as they are: the official packages, clients that hang up, kills at
//! each phase. After each case its books are compared with the chain's.
//!
//! ```text
//! gateway            every case
//! gateway official   the cases whose name contains the word
//! ```
//!
//! What cannot be had on a machine is reported as SKIPPED, with the reason, and the program ends with
//! exit code 77 then, unless something failed.

mod cases;
mod client;
mod process;
mod scene;
mod worker;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::ensure;
use clap::Parser;

use cases::CASES;

/// What `automake` and others take for "skipped".
const SKIPPED: u8 = 77;

#[derive(Debug, Parser)]
#[command(name = "gateway", about = "What the gateway does with clients as they are")]
struct Cli {
    /// Only cases whose name contains this
    filter: Option<String>,
    /// Only list the cases
    #[arg(long)]
    list: bool,
}

/// What came of a case that did not fail.
#[derive(Clone, Debug)]
enum Outcome {
    Passed(String),
    Skipped(String),
}

/// Says what happens, for whoever waits.
fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    drop(writeln!(stdout, "{line}"));
    drop(stdout.flush());
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            say(&format!("gateway: error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<ExitCode> {
    let is_chosen = |name: &str| cli.filter.as_ref().is_none_or(|filter| name.contains(filter));
    let chosen: Vec<_> = CASES.iter().filter(|case| is_chosen(case.name)).collect();
    ensure!(!chosen.is_empty(), "no case has {:?} in its name; --list shows them", cli.filter);
    if cli.list {
        chosen.iter().for_each(|case| say(&format!("{:<12} {}", case.name, case.about)));
        return Ok(ExitCode::SUCCESS);
    }
    let (mut failed, mut skipped) = (0, 0);
    for case in chosen {
        say(&format!("\n== {}: {}", case.name, case.about));
        let started = Instant::now();
        let outcome = (case.run)();
        let took = started.elapsed();
        match outcome {
            Ok(Outcome::Passed(what)) => {
                say(&format!("== {} PASSED in {took:.0?}: {what}", case.name));
            }
            Ok(Outcome::Skipped(why)) => {
                skipped += 1;
                say(&format!("== {} SKIPPED: {why}", case.name));
            }
            Err(error) => {
                failed += 1;
                say(&format!("== {} FAILED after {took:.0?}: {error:#}", case.name));
            }
        }
    }
    say(&format!("\ngateway: {failed} failed, {skipped} skipped"));
    Ok(match (failed, skipped) {
        (0, 0) => ExitCode::SUCCESS,
        (0, _) => ExitCode::from(SKIPPED),
        (_, _) => ExitCode::FAILURE,
    })
}
