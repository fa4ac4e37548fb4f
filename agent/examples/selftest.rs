//! The questions of `ombra miner selftest` without the rest of the program, so that they can be asked on an
//! emulated processor: `selftest [MODEL]`. A line for each executor: its name, and `ok` or `DIFFERS`.

#![expect(clippy::print_stdout, reason = "this is what the program is for")]

use std::process::ExitCode;
use std::sync::Arc;

use agent::backend::{Embedded, EmbeddedConfig};
use agent::executor::{Executors, Model, Tested, selftest};

fn main() -> ExitCode {
    let model: Option<Arc<dyn Model>> = match std::env::args_os().nth(1) {
        None => None,
        Some(file) => {
            let config = EmbeddedConfig { file: Some(file.into()), ..EmbeddedConfig::default() };
            match Embedded::open(&config) {
                Ok(model) => Some(Arc::new(model.for_market())),
                Err(error) => {
                    println!("{error}");
                    return ExitCode::FAILURE;
                }
            }
        }
    };
    let mut is_sound = true;
    for Tested { executor, questions, faults } in selftest(&Executors::of(model)) {
        let verdict = if faults.is_empty() { "ok" } else { "DIFFERS" };
        println!("{executor} {questions} questions {verdict}");
        for fault in &faults {
            println!("  {}", fault.why);
        }
        is_sound &= faults.is_empty();
    }
    if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
