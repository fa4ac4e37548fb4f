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

use std::process::ExitCode;

use clap::Parser;
use testkit::suite::{Outcome, Selection, Style, Suite, say};

use bench::Bench;
use cases::CASES;
use images::Images;

#[derive(Debug, Parser)]
#[command(name = "containers", about = "What agents in containers may do, and what they may not")]
struct Cli {
    #[command(flatten)]
    selection: Selection,
    /// Let an agent of this image hang, for the case in which that is killed; of this owner
    #[arg(long, value_names = ["IMAGE", "OWNER"], num_args = 2, hide = true)]
    hang: Option<Vec<String>>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Some([image, owner]) = cli.hang.as_deref() {
        return match bench::hang(image, owner) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                say(&format!("hang: {error:#}"));
                ExitCode::FAILURE
            }
        };
    }
    let suite = Suite { name: "containers", cases: CASES, style: Style::LINES };
    suite.main(&cli.selection, Images::make, |images, check| {
        check(&Bench::new(images)?)?;
        Ok(Outcome::Passed(String::new()))
    })
}
