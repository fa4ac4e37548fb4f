//! The browser suite: Chromium opens the page that a real node serves, and does what people do.
//!
//! ```text
//! browser                 every case
//! browser wallet          the cases whose name contains the word
//! browser --list          their names
//! browser --measure       how soon a block is shown, and how smooth the page stays
//! ```
//!
//! It needs the programs `chromium` and `chromedriver` in the path, or in the variables `CHROMIUM` and
//! `CHROMEDRIVER`. Where they are missing it says so and ends with exit code 77, which no other end
//! has. Pictures of what it saw are in the folder `browser` of the compile outputs.

mod cases;
mod driver;
mod market;
mod scene;
mod story;
mod wire;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Parser;
use testkit::node::DevOptions;
use testkit::suite::namespaces::run_again;
use testkit::suite::{self, Finished, Outcome, Selection, Style, Suite, say};

use cases::{CASES, Visit};
use driver::{Driver, Programs};
use scene::Scene;

#[derive(Debug, Parser)]
#[command(name = "browser", about = "Chromium opens the page that a real node serves")]
struct Cli {
    #[command(flatten)]
    selection: Selection,
    /// Measure instead of testing
    #[arg(long)]
    measure: bool,
    /// Run here; the program starts itself this way
    #[arg(long, hide = true)]
    inside: bool,
}

/// A line for each case, with its time or why it failed.
const STYLE: Style = Style {
    name_width: 20,
    line: |Finished { name, took, result, .. }| match result {
        Ok(_) => format!("ok      {name:<20} {took:.0?}"),
        Err(error) => format!("FAILED  {name:<20} {error:#}"),
    },
    ..Style::LINES
};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let suite = Suite { name: "browser", cases: CASES, style: STYLE };
    if cli.selection.list {
        return suite.list(&cli.selection);
    }
    if !cli.inside {
        // Chromium gives up what it loads when the machine's network changes, as it does whenever a container
        // starts. In a network namespace of its own nothing changes.
        return run_again("--inside")
            .unwrap_or_else(|error| suite::conclude(suite.name, Err(error)));
    }
    suite::conclude(suite.name, run(&cli, &suite))
}

/// Where pictures are kept: a folder of the compile outputs.
fn artefacts() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder = program.ancestors().nth(2).context("programs are in target/*/")?.join("browser");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn run(cli: &Cli, suite: &Suite<Visit>) -> anyhow::Result<Outcome> {
    let (driver, artefacts) = (Driver::start(&Programs::find()?)?, artefacts()?);
    if cli.measure {
        cases::measure::run(&mut Scene::start(&driver, &artefacts)?)?;
        // Blocks that are far apart: one takes all that waits.
        let slow = DevOptions { block_time_ms: 4_000, ..DevOptions::from_environment() };
        cases::measure::large_block(&mut Scene::start_with(&driver, &artefacts, slow)?)?;
        return Ok(Outcome::Passed("0 cases passed".to_owned()));
    }
    let finished = suite.run(&cli.selection, |case| {
        let more = case.run.chain.iter().map(ToString::to_string).collect();
        let options = DevOptions { more, ..DevOptions::from_environment() };
        let mut scene = Scene::start_with(&driver, &artefacts, options)?;
        let result = (case.run.run)(&mut scene).and_then(|()| scene.asked_nobody_else());
        if result.is_err() {
            drop(scene.picture(&format!("failed-{}", case.name)));
        }
        result.map(|()| Outcome::Passed(String::new()))
    })?;
    say(&format!("pictures: {}", artefacts.display()));
    let failed = finished.iter().filter(|case| case.result.is_err());
    let failed: Vec<_> = failed.map(|case| case.name).collect();
    ensure!(failed.is_empty(), "{}", failed.join(", "));
    Ok(Outcome::Passed(format!("{} cases passed", finished.len())))
}
