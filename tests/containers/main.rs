//! Agents in containers, good ones and others, in the Docker engine of this machine.
//!
//! ```text
//! containers         every case
//! containers phone   the cases whose name contains the word
//!
//! images.rs   the programs, compiled for no system, and images of them: no registry is asked
//! bench.rs    a miner's executors over the engine, and a wire to it that can be cut
//! cases.rs    what must hold
//! rogue.rs    the agent that does what it is told; a program of its own
//! ```
//!
//! Where no engine answers it says SKIPPED, and ends with exit code 77, which no other end has.

mod bench;
mod cases;
mod images;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;

use bench::Bench;
use cases::CASES;
use images::Images;

/// What `automake` and others take for "skipped".
const SKIPPED: u8 = 77;

#[derive(Debug, Parser)]
#[command(name = "containers", about = "What agents in containers may do, and what they may not")]
struct Cli {
    /// Only cases whose name contains this
    filter: Option<String>,
    /// Only list the cases
    #[arg(long)]
    list: bool,
    /// Let an agent of this image hang, for the case in which that is killed
    #[arg(long, value_name = "IMAGE", hide = true)]
    hang: Option<String>,
}

/// Says what happens, for whoever waits.
fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    drop(writeln!(stdout, "{line}"));
    drop(stdout.flush());
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Some(image) = &cli.hang {
        return match bench::hang(image) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                say(&format!("hang: {error:#}"));
                ExitCode::FAILURE
            }
        };
    }
    if cli.list {
        CASES.iter().for_each(|(name, about, _)| say(&format!("{name:<10} {about}")));
        return ExitCode::SUCCESS;
    }
    if let Err(why) = images::engine() {
        say(&format!("containers: SKIPPED: {why}"));
        return ExitCode::from(SKIPPED);
    }
    match run(cli.filter.as_deref()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failed) => {
            say(&format!("containers: {failed} failed"));
            ExitCode::FAILURE
        }
        Err(error) => {
            say(&format!("containers: error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(filter: Option<&str>) -> anyhow::Result<usize> {
    let images = Images::make()?;
    let chosen = CASES.iter().filter(|(name, ..)| filter.is_none_or(|it| name.contains(it)));
    let (mut passed, mut failed) = (0, 0);
    for (name, about, check) in chosen {
        let began = Instant::now();
        let outcome = Bench::new(&images).and_then(|bench| check(&bench));
        let seconds = began.elapsed().as_secs_f64();
        match outcome {
            Ok(()) => {
                passed += 1;
                say(&format!("ok   {name}: {about} ({seconds:.1} s)"));
            }
            Err(error) => {
                failed += 1;
                say(&format!("FAIL {name}: {about}: {error:#}"));
            }
        }
    }
    anyhow::ensure!(passed + failed > 0, "no case has {filter:?} in its name; --list shows them");
    say(&format!("containers: {passed} passed, {failed} failed"));
    Ok(failed)
}
