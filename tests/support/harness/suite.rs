//! Runs a suite of cases, each in a process with namespaces of its own, and says what came of each.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::needs::{self, Need};
use super::report::say;

/// One case of a suite, and what it needs of the machine.
#[derive(Debug)]
pub struct Case<E> {
    pub name: &'static str,
    pub about: &'static str,
    pub needs: Need,
    pub run: fn(E) -> anyhow::Result<()>,
}

/// The option with which a suite's program starts itself for one case, followed by the case's name.
pub const INSIDE: &str = "--inside";
/// The option that names the file in which that process leaves why the case failed.
pub const REASON: &str = "--reason";

/// What came of a case.
enum Outcome {
    Passed(Duration),
    Failed(String),
    Skipped(String),
}

/// How many quiet cases run at a time.
const LANES: usize = 2;

/// A suite whose cases are run one after another, but for the quiet ones.
#[derive(Debug)]
pub struct Suite<'a, E> {
    /// What its cases are called: "faults".
    pub noun: &'static str,
    pub chosen: Vec<&'a Case<E>>,
    /// What each case's process is given beside [`INSIDE`] and [`REASON`].
    pub arguments: Vec<OsString>,
    /// Names of cases that may run beside each other: they wait more than they work, and measure no speed.
    pub quiet: &'a [&'a str],
    /// The longest that one case may take.
    pub longest: Duration,
}

impl<E> Suite<'_, E> {
    /// Prints the names of the cases and what they are about.
    pub fn list(&self) {
        self.chosen.iter().for_each(|case| say(&format!("{:<24} {}", case.name, case.about)));
    }

    /// Runs the cases; answers whether none failed.
    pub fn run(&self) -> anyhow::Result<bool> {
        if self.chosen.is_empty() {
            bail!("no such name among the {}; --list shows them", self.noun);
        }
        let is_quiet = |case: &&Case<E>| self.quiet.contains(&case.name);
        let (quiet, others): (Vec<_>, Vec<_>) = self.chosen.iter().copied().partition(is_quiet);
        let mut outcomes = Vec::new();
        for case in others {
            say(&title(case));
            let outcome = self.run_apart(case, Stdio::inherit)?;
            say(&verdict(case, &outcome));
            outcomes.push((case.name, outcome));
        }
        outcomes.extend(self.run_beside(quiet)?);
        Ok(self.summary(&outcomes))
    }

    /// Runs cases in [`LANES`]; what each prints is shown when it is over.
    fn run_beside(&self, cases: Vec<&Case<E>>) -> anyhow::Result<Vec<(&'static str, Outcome)>> {
        let waiting: Mutex<VecDeque<_>> = Mutex::new(cases.into());
        let done = Mutex::new(Vec::new());
        let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let lane = || -> anyhow::Result<()> {
            while let Some(case) = next() {
                let printed = tempfile::NamedTempFile::new().context("a file for the output")?;
                let file = printed.reopen()?;
                let outcome = self.run_apart(case, || {
                    file.try_clone().map_or_else(|_lost| Stdio::null(), Stdio::from)
                })?;
                let printed = std::fs::read_to_string(printed.path())?;
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                say(&format!("{}\n{printed}{}", title(case), verdict(case, &outcome)));
                done.push((case.name, outcome));
            }
            Ok(())
        };
        let lanes: anyhow::Result<()> = std::thread::scope(|scope| {
            #[expect(clippy::needless_collect, reason = "all begin before the first is waited for")]
            let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(lane)).collect();
            lanes.into_iter().try_for_each(|lane| {
                lane.join().unwrap_or_else(|_panic| bail!("a lane of the suite panicked"))
            })
        });
        lanes?;
        Ok(done.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn summary(&self, outcomes: &[(&str, Outcome)]) -> bool {
        let passed = outcomes.iter().filter(|(_, it)| matches!(it, Outcome::Passed(_))).count();
        say(&format!("\n{passed} of {} {} passed", outcomes.len(), self.noun));
        let mut none_failed = true;
        for (name, outcome) in outcomes {
            match outcome {
                Outcome::Passed(_) => {}
                Outcome::Skipped(why) => say(&format!("SKIPPED {name}: {why}")),
                Outcome::Failed(why) => {
                    none_failed = false;
                    say(&format!("FAILED  {name}: {why}"));
                }
            }
        }
        none_failed
    }

    /// Runs a case in a process with namespaces of its own; what it starts ends with it.
    fn run_apart(&self, case: &Case<E>, output: impl Fn() -> Stdio) -> anyhow::Result<Outcome> {
        if let Some(reason) = needs::missing(case.needs) {
            return Ok(Outcome::Skipped(reason));
        }
        let program = std::env::current_exe()?;
        let reason =
            tempfile::NamedTempFile::new().context("a file for the reason of a failure")?;
        let mut command = match needs::apart() {
            Some(apart) => {
                let mut command = Command::new("unshare");
                command.args(apart).args(["--", "sh", "-c", needs::ENTER]).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.args([INSIDE, case.name, REASON]).arg(reason.path());
        command.args(&self.arguments);
        command.stdin(Stdio::null()).stdout(output()).stderr(output());
        let started = Instant::now();
        let mut process = command.spawn().context("starting the case's process")?;
        loop {
            if let Some(status) = process.try_wait()? {
                let took = started.elapsed();
                std::io::stdout().flush()?;
                return Ok(match status.success() {
                    true => Outcome::Passed(took),
                    false => Outcome::Failed(why(status, reason.path())),
                });
            }
            if started.elapsed() > self.longest {
                process.kill()?;
                process.wait()?;
                return Ok(Outcome::Failed(format!("it took longer than {:?}", self.longest)));
            }
            // The pause of the loop that waits with a deadline.
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn title<E>(case: &Case<E>) -> String {
    format!("\n== {}: {}", case.name, case.about)
}

fn verdict<E>(case: &Case<E>, outcome: &Outcome) -> String {
    let name = case.name;
    match outcome {
        Outcome::Passed(took) => format!("== {name} passed in {took:.0?}"),
        Outcome::Failed(why) => format!("== {name} FAILED: {why}"),
        Outcome::Skipped(why) => format!("== {name} SKIPPED: {why}"),
    }
}

/// Runs a case in this process, and leaves the reason of a failure for the one that started it.
pub fn inside<E>(
    cases: &[Case<E>],
    name: &str,
    extent: E,
    reason: Option<&Path>,
) -> anyhow::Result<bool> {
    let case = cases.iter().find(|case| case.name == name).context("no such case")?;
    let outcome = (case.run)(extent);
    if let (Err(error), Some(file)) = (&outcome, reason) {
        std::fs::write(file, format!("{error:#}"))?;
    }
    outcome.map(|()| true)
}

/// Why a case's process failed: its own word, or how it ended if it left none.
fn why(status: ExitStatus, reason: &Path) -> String {
    match std::fs::read_to_string(reason) {
        Ok(reason) if !reason.is_empty() => reason,
        Ok(_) => status.to_string(),
        Err(error) => format!("{status}; its reason cannot be read: {error}"),
    }
}
