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

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, bail};
use clap::Parser;

use cases::CASES;
use driver::{Driver, Programs};
use scene::Scene;
use tests::node::DevOptions;

/// What `automake` and others take for "skipped".
const SKIPPED: u8 = 77;

#[derive(Debug, Parser)]
#[command(name = "browser", about = "Chromium opens the page that a real node serves")]
struct Cli {
    /// Only cases whose name contains this
    filter: Option<String>,
    /// Only list the cases
    #[arg(long)]
    list: bool,
    /// Measure instead of testing
    #[arg(long)]
    measure: bool,
}

/// Says what happens, for whoever waits.
fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    drop(writeln!(stdout, "{line}"));
    drop(stdout.flush());
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if cli.list {
        CASES.iter().for_each(|case| say(&format!("{:<20} {}", case.name, case.about)));
        return ExitCode::SUCCESS;
    }
    let programs = match Programs::find() {
        Ok(programs) => programs,
        Err(missing) => {
            say(&format!("browser suite: SKIPPED: {missing}"));
            return ExitCode::from(SKIPPED);
        }
    };
    match run(&cli, &programs) {
        Ok(count) => {
            say(&format!("browser suite: RAN: {count} cases passed"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&format!("browser suite: FAILED: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Where pictures are kept: a folder of the compile outputs.
fn artefacts() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder = program.ancestors().nth(2).context("programs are in target/*/")?.join("browser");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn run(cli: &Cli, programs: &Programs) -> anyhow::Result<usize> {
    let (driver, artefacts) = (Driver::start(programs)?, artefacts()?);
    if cli.measure {
        cases::measure::run(&mut Scene::start(&driver, &artefacts)?)?;
        // Blocks that are far apart: one takes all that waits.
        let slow = DevOptions { block_time_ms: 4_000, ..DevOptions::from_environment() };
        cases::measure::large_block(&mut Scene::start_with(&driver, &artefacts, slow)?)?;
        return Ok(0);
    }
    let wanted = cli.filter.as_deref().unwrap_or_default();
    let chosen: Vec<_> = CASES.iter().filter(|case| case.name.contains(wanted)).collect();
    if chosen.is_empty() {
        bail!("no case has {wanted:?} in its name; --list shows them");
    }
    let mut failed = Vec::new();
    for case in &chosen {
        let began = Instant::now();
        let more = case.chain.iter().map(ToString::to_string).collect();
        let options = DevOptions { more, ..DevOptions::from_environment() };
        let mut scene = Scene::start_with(&driver, &artefacts, options)?;
        match (case.run)(&mut scene).and_then(|()| scene.asked_nobody_else()) {
            Ok(()) => say(&format!("ok      {:<20} {:.0?}", case.name, began.elapsed())),
            Err(error) => {
                say(&format!("FAILED  {:<20} {error:#}", case.name));
                drop(scene.picture(&format!("failed-{}", case.name)));
                failed.push(case.name);
            }
        }
    }
    say(&format!("pictures: {}", artefacts.display()));
    if failed.is_empty() { Ok(chosen.len()) } else { bail!("{}", failed.join(", ")) }
}
