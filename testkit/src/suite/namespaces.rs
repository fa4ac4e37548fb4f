//! Suites whose cases each run in a process with namespaces of its own, so that nothing of a case
//! stays, and nothing of it meets what else runs on the machine.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use clap::Args;

use super::needs::{self, Need};
use super::{Finished, Outcome, Unserved, count, say};
use crate::parallel;

/// A case of such a suite; `E` is how thoroughly it is tried.
pub type Case<E> = super::Case<Apart<E>>;

/// How a case is run apart.
#[derive(Clone, Copy, Debug)]
pub struct Apart<E> {
    run: fn(E) -> anyhow::Result<()>,
    needs: Need,
    is_quiet: bool,
}

impl<E> Case<E> {
    /// A case that runs on any machine.
    #[must_use]
    pub const fn apart(name: &'static str, run: fn(E) -> anyhow::Result<()>) -> Self {
        Self::new(name, Apart { run, needs: Need::Loopback, is_quiet: false })
    }

    /// A case that may run beside others: it waits more than it works, and measures no speed.
    #[must_use]
    pub const fn quiet(name: &'static str, run: fn(E) -> anyhow::Result<()>) -> Self {
        Self::new(name, Apart { run, needs: Need::Loopback, is_quiet: true })
    }

    /// The same case, which needs something of the machine.
    #[must_use]
    pub const fn needs(mut self, needs: Need) -> Self {
        self.run.needs = needs;
        self
    }
}

/// The options with which a suite's program starts itself for one case.
#[derive(Args, Clone, Debug)]
pub struct Inside {
    /// Run this one case here; the program starts itself this way
    #[arg(long, hide = true, requires = "reason")]
    inside: Option<String>,
    /// Where the one case leaves why it failed
    #[arg(long, hide = true, value_name = "FILE")]
    reason: Option<PathBuf>,
}

/// The exit code of a case's process that ended with [`Unserved`]: what sysexits.h calls a temporary failure.
const UNSERVED: u8 = 75;
/// How many quiet cases run at a time.
const LANES: usize = 2;
/// How wide the names are in a list.
const NAME_WIDTH: usize = 24;

/// A suite whose cases are run one after another, but for the quiet ones.
#[derive(Debug)]
pub struct Suite<E: 'static> {
    /// What its cases are called: "faults".
    pub noun: &'static str,
    pub cases: &'static [Case<E>],
    /// What each case's process is given beside [`Inside`].
    pub arguments: Vec<OsString>,
    /// The longest that one case may take.
    pub longest: Duration,
}

impl<E> Suite<E> {
    /// Runs one case here, or lists or runs those that `is_chosen` chooses by their names; answers the
    /// exit code.
    pub fn main(
        &self,
        inside: &Inside,
        extent: E,
        list: bool,
        is_chosen: impl Fn(&str) -> bool,
    ) -> ExitCode {
        let chosen = || self.cases.iter().filter(|case| is_chosen(case.name));
        let none_failed = match &inside.inside {
            Some(name) => match self.run_here(name, extent, inside.reason.as_deref()) {
                Err(error) if error.is::<Unserved>() => {
                    say(&format!("error: {error:#}"));
                    return ExitCode::from(UNSERVED);
                }
                result => result,
            },
            None if list => {
                chosen().for_each(|case| case.list(NAME_WIDTH));
                Ok(true)
            }
            None => self.run(chosen().collect()),
        };
        match none_failed {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => {
                say(&format!("error: {error:#}"));
                ExitCode::FAILURE
            }
        }
    }

    /// Runs a case in this process, and leaves the reason of a failure for the one that started it.
    fn run_here(&self, name: &str, extent: E, reason: Option<&Path>) -> anyhow::Result<bool> {
        let case = self.cases.iter().find(|case| case.name == name).context("no such case")?;
        let result = (case.run.run)(extent);
        if let (Err(error), Some(file)) = (&result, reason) {
            std::fs::write(file, format!("{error:#}"))?;
        }
        result.map(|()| true)
    }

    /// Runs the cases; answers whether none failed.
    fn run(&self, chosen: Vec<&Case<E>>) -> anyhow::Result<bool> {
        ensure!(!chosen.is_empty(), "no such name among the {}; --list shows them", self.noun);
        let (quiet, others): (Vec<_>, Vec<_>) =
            chosen.into_iter().partition(|case| case.run.is_quiet);
        let mut finished = Vec::new();
        for case in others {
            say(&case.heading());
            let case = case.finish(|| self.run_apart(case, Stdio::inherit));
            say(&line(&case));
            finished.push(case);
        }
        finished.extend(parallel::run(LANES, &quiet, |_, case| self.run_beside(case))?);
        let [passed, failed, _] = count(&finished);
        say(&format!("\n{passed} of {} {} passed", finished.len(), self.noun));
        for Finished { name, result, .. } in &finished {
            match result {
                Ok(Outcome::Passed(what)) if what.is_empty() => {}
                Ok(Outcome::Passed(what)) => say(&format!("PASSED  {name}: {what}")),
                Ok(Outcome::Skipped(why)) => say(&format!("SKIPPED {name}: {why}")),
                Err(error) => say(&format!("FAILED  {name}: {error:#}")),
            }
        }
        Ok(failed == 0)
    }

    /// Runs a case beside others: what it prints is shown when it is over.
    fn run_beside(&self, case: &Case<E>) -> Finished {
        let mut printed = String::new();
        let finished = case.finish(|| {
            let file = tempfile::NamedTempFile::new().context("a file for the output")?;
            let output = file.reopen()?;
            let outcome = self.run_apart(case, || {
                output.try_clone().map_or_else(|_lost| Stdio::null(), Stdio::from)
            });
            printed = std::fs::read_to_string(file.path())?;
            outcome
        });
        say(&format!("{}\n{printed}{}", case.heading(), line(&finished)));
        finished
    }

    /// Runs a case in a process with namespaces of its own; what it starts ends with it. If a user was not
    /// served, runs the case a second time, which then decides.
    fn run_apart(&self, case: &Case<E>, output: impl Fn() -> Stdio) -> anyhow::Result<Outcome> {
        match self.run_apart_once(case, &output) {
            Err(error) if error.is::<Unserved>() => {
                let outcome = self.run_apart_once(case, &output)?;
                Ok(match outcome {
                    Outcome::Passed(_) => {
                        Outcome::Passed(format!("at the second attempt; at the first, {error}"))
                    }
                    Outcome::Skipped(_) => outcome,
                })
            }
            result => result,
        }
    }

    fn run_apart_once(
        &self,
        case: &Case<E>,
        output: impl Fn() -> Stdio,
    ) -> anyhow::Result<Outcome> {
        if let Some(reason) = needs::missing(case.run.needs) {
            return Ok(Outcome::Skipped(reason));
        }
        let reason =
            tempfile::NamedTempFile::new().context("a file for the reason of a failure")?;
        let mut command = this_program_apart()?;
        command.args(["--inside", case.name, "--reason"]).arg(reason.path());
        command.args(&self.arguments);
        command.stdin(Stdio::null()).stdout(output()).stderr(output());
        let started = Instant::now();
        let mut process = command.spawn().context("starting the case's process")?;
        loop {
            if let Some(status) = process.try_wait()? {
                std::io::stdout().flush()?;
                if status.code() == Some(UNSERVED.into()) {
                    bail!(Unserved(why(status, reason.path())));
                }
                ensure!(status.success(), "{}", why(status, reason.path()));
                return Ok(Outcome::Passed(String::new()));
            }
            if started.elapsed() > self.longest {
                process.kill()?;
                process.wait()?;
                bail!("it took longer than {:?}", self.longest);
            }
            // The pause of the loop that waits with a deadline.
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// This program, to be started again in namespaces of its own where the machine allows that.
fn this_program_apart() -> anyhow::Result<Command> {
    let program = std::env::current_exe().context("the path of this program")?;
    Ok(match needs::apart() {
        Some(apart) => {
            let mut command = Command::new("unshare");
            command.args(apart).args(["--", "sh", "-c", needs::ENTER]).arg(program);
            command
        }
        None => Command::new(program),
    })
}

/// Starts this program again with the same arguments and `flag`, in namespaces of its own where the
/// machine allows that; answers the exit code with which it ended.
///
/// # Errors
///
/// The program cannot be started, or a signal ended it.
pub fn run_again(flag: &str) -> anyhow::Result<ExitCode> {
    let mut command = this_program_apart()?;
    command.args(std::env::args_os().skip(1)).arg(flag);
    let status = command.status().context("starting this program again")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map(ExitCode::from).with_context(|| format!("this program ended by {status}"))
}

fn line(Finished { name, took, result, .. }: &Finished) -> String {
    match result {
        Ok(Outcome::Passed(what)) if what.is_empty() => format!("== {name} passed in {took:.0?}"),
        Ok(Outcome::Passed(what)) => format!("== {name} passed in {took:.0?}, {what}"),
        Ok(Outcome::Skipped(why)) => format!("== {name} SKIPPED: {why}"),
        Err(error) => format!("== {name} FAILED: {error:#}"),
    }
}

/// Why a case's process failed: its own word, or how it ended if it left none.
fn why(status: ExitStatus, reason: &Path) -> String {
    match std::fs::read_to_string(reason) {
        Ok(reason) if !reason.is_empty() => reason,
        Ok(_) => status.to_string(),
        Err(error) => format!("{status}; its reason cannot be read: {error}"),
    }
}
