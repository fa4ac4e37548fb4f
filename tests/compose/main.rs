//! The compose suite: the testnet that `ombra testnet` writes, in real containers.
//!
//! It needs a Docker engine and Compose. Where there is none it says so and ends with exit code 77,
//! which no other end has; it never passes without having run.
//!
//! ```text
//! engine.rs    the engine, Compose, and the image around the program that was built
//! testnet.rs   the folder that the program writes, up and down, and its containers
//! checks.rs    what must hold, in the order in which it is tried
//! ```

mod checks;
mod engine;
mod testnet;

use std::process::ExitCode;

use testkit::suite::{self, Outcome, Style, Suite, say};

use engine::Engine;
use testnet::Testnet;

fn main() -> ExitCode {
    suite::conclude("compose", run())
}

fn run() -> anyhow::Result<Outcome> {
    let engine = Engine::find()?;
    let image = engine.image()?;
    let mut net = Testnet::write(&engine, &image, 4, 1)?;
    let suite = Suite { name: "compose", cases: checks::ALL, style: Style::LINES };
    for check in suite.cases {
        let finished = suite.run_case(check, || {
            let note = (check.run)(&mut net)?;
            Ok(Outcome::Passed(note.unwrap_or_default()))
        });
        if let Err(error) = finished.result {
            say(&net.logs());
            return Err(error.context(check.name));
        }
    }
    Ok(Outcome::Passed(format!("{} checks passed", suite.cases.len())))
}
