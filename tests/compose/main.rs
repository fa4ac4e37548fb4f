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

use std::io::Write;
use std::process::ExitCode;

use engine::Engine;
use testnet::Testnet;

/// What `automake` and others take for "skipped".
const SKIPPED: u8 = 77;

/// Says what happens, for whoever waits.
fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    drop(writeln!(stdout, "{line}"));
    drop(stdout.flush());
}

fn main() -> ExitCode {
    let engine = match Engine::find() {
        Ok(engine) => engine,
        Err(reason) => {
            say(&format!("compose suite: SKIPPED: {reason}"));
            return ExitCode::from(SKIPPED);
        }
    };
    match run(&engine) {
        Ok(checks) => {
            say(&format!("compose suite: RAN: {checks} checks passed"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&format!("compose suite: FAILED: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(engine: &Engine) -> anyhow::Result<usize> {
    let image = engine.image()?;
    let mut net = Testnet::write(engine, &image, 4, 1)?;
    let mut passed = 0;
    for (claim, check) in checks::ALL {
        let began = std::time::Instant::now();
        match check(&mut net) {
            Ok(note) => {
                let seconds = began.elapsed().as_secs_f64();
                let note = note.map_or_else(String::new, |note| format!(": {note}"));
                say(&format!("ok   {claim}{note} ({seconds:.1} s)"));
                passed += 1;
            }
            Err(error) => {
                say(&format!("FAIL {claim}: {error:#}\n{}", net.logs()));
                return Err(error.context(*claim));
            }
        }
    }
    Ok(passed)
}
