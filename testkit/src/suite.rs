//! The runner of the suites: it chooses cases by name, runs them, prints what came of each, and ends
//! with the exit code of the whole.
//!
//! ```text
//! namespaces.rs   suites whose cases run in processes with namespaces of their own
//! needs.rs        what such a case needs of the machine
//! ```

use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Args;

pub mod namespaces;
pub mod needs;

/// What `automake` and others take for "skipped".
const SKIPPED: u8 = 77;

/// Prints a line.
pub fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    // Nobody may be reading any more; the exit code says it all then.
    drop(writeln!(stdout, "{line}"));
    drop(stdout.flush());
}

/// What came of something that did not fail.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It passed; what there is to say about it, if anything.
    Passed(String),
    /// It cannot run here, for this reason.
    Skipped(String),
}

/// Why something cannot run on this machine. What fails with it is skipped.
#[derive(Clone, Debug)]
pub struct Missing(pub String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Missing {}

/// An honest user was not served in time. Whatever else works on the machine can be the cause, so a suite may
/// try the case a second time.
#[derive(Clone, Debug)]
pub struct Unserved(pub String);

impl fmt::Display for Unserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unserved {}

/// Turns the error [`Missing`] into [`Outcome::Skipped`]; everything else stays as it is.
fn judged(result: anyhow::Result<Outcome>) -> anyhow::Result<Outcome> {
    result.or_else(|error| error.downcast().map(|Missing(why)| Outcome::Skipped(why)))
}

/// Reports how a suite ended as a whole, and answers its exit code.
#[must_use]
pub fn conclude(suite: &str, result: anyhow::Result<Outcome>) -> ExitCode {
    match judged(result) {
        Ok(Outcome::Passed(what)) => {
            say(&format!("{suite} suite: RAN: {what}"));
            ExitCode::SUCCESS
        }
        Ok(Outcome::Skipped(why)) => {
            say(&format!("{suite} suite: SKIPPED: {why}"));
            ExitCode::from(SKIPPED)
        }
        Err(error) => {
            say(&format!("{suite} suite: FAILED: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// The options of a suite that select its cases.
#[derive(Args, Clone, Debug)]
pub struct Selection {
    /// Only cases whose name contains this
    pub filter: Option<String>,
    /// Only list the cases
    #[arg(long)]
    pub list: bool,
}

impl Selection {
    /// Whether a case of this name is selected.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.filter.as_ref().is_none_or(|filter| name.contains(filter))
    }
}

/// One case of a suite; `R` is how it is run, such as a function.
#[derive(Debug)]
pub struct Case<R> {
    pub name: &'static str,
    pub about: &'static str,
    pub run: R,
}

impl<R> Case<R> {
    /// A case about which nothing more is to be said than its name.
    #[must_use]
    pub const fn new(name: &'static str, run: R) -> Self {
        Self { name, about: "", run }
    }

    /// The same case, with what there is to say about it.
    #[must_use]
    pub const fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }

    /// The line of the case in a list.
    fn list(&self, width: usize) {
        say(&format!("{:<width$} {}", self.name, self.about));
    }

    /// The line before those that the case prints.
    fn heading(&self) -> String {
        format!("\n== {}: {}", self.name, self.about)
    }

    fn finish(&self, run: impl FnOnce() -> anyhow::Result<Outcome>) -> Finished {
        let started = Instant::now();
        let result = judged(run());
        Finished { name: self.name, about: self.about, took: started.elapsed(), result }
    }
}

/// A case that has run.
#[derive(Debug)]
pub struct Finished {
    pub name: &'static str,
    pub about: &'static str,
    pub took: Duration,
    pub result: anyhow::Result<Outcome>,
}

/// How many cases passed, failed and were skipped.
fn count(finished: &[Finished]) -> [usize; 3] {
    finished.iter().fold([0; 3], |[passed, failed, skipped], case| match case.result {
        Ok(Outcome::Passed(_)) => [passed + 1, failed, skipped],
        Ok(Outcome::Skipped(_)) => [passed, failed, skipped + 1],
        Err(_) => [passed, failed + 1, skipped],
    })
}

/// How a suite prints its cases.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// How wide the names are in a list.
    pub name_width: usize,
    /// Whether each case has a line before it, because it prints lines itself.
    pub has_headings: bool,
    /// The line of a case that has run.
    pub line: fn(&Finished) -> String,
    /// The line at the end, of a suite of this name.
    pub summary: fn(&str, &[Finished]) -> String,
}

impl Style {
    /// Each case between a heading and what came of it.
    pub const HEADINGS: Self = Self {
        name_width: 12,
        has_headings: true,
        line: |Finished { name, took, result, .. }| match result {
            Ok(Outcome::Passed(what)) => format!("== {name} PASSED in {took:.0?}: {what}"),
            Ok(Outcome::Skipped(why)) => format!("== {name} SKIPPED: {why}"),
            Err(error) => format!("== {name} FAILED after {took:.0?}: {error:#}"),
        },
        summary: |suite, finished| {
            let [_, failed, skipped] = count(finished);
            format!("\n{suite}: {failed} failed, {skipped} skipped")
        },
    };

    /// A line for each case.
    pub const LINES: Self = Self {
        name_width: 10,
        has_headings: false,
        line: |Finished { name, about, took, result }| {
            let then =
                |text: &str| if text.is_empty() { String::new() } else { format!(": {text}") };
            let (about, seconds) = (then(about), took.as_secs_f64());
            match result {
                Ok(Outcome::Passed(what)) => {
                    format!("ok   {name}{about}{} ({seconds:.1} s)", then(what))
                }
                Ok(Outcome::Skipped(why)) => format!("SKIP {name}{about}: {why}"),
                Err(error) => format!("FAIL {name}{about}: {error:#}"),
            }
        },
        summary: |suite, finished| {
            let [passed, failed, _] = count(finished);
            let summary = format!("{suite}: {passed} passed, {failed} failed");
            if failed == 0 { summary } else { format!("{summary}\n{suite}: {failed} failed") }
        },
    };
}

/// A suite of cases.
#[derive(Debug)]
pub struct Suite<R: 'static> {
    pub name: &'static str,
    pub cases: &'static [Case<R>],
    pub style: Style,
}

impl<R> Suite<R> {
    /// Lists or runs the selected cases, and answers the exit code. What `prepare` makes is for all
    /// of them.
    pub fn main<P>(
        &self,
        selection: &Selection,
        prepare: impl FnOnce() -> anyhow::Result<P>,
        run: impl Fn(&P, &R) -> anyhow::Result<Outcome>,
    ) -> ExitCode {
        if selection.list {
            return self.list(selection);
        }
        let finished =
            prepare().and_then(|prepared| self.run(selection, |case| run(&prepared, &case.run)));
        let finished = match finished {
            Ok(finished) => finished,
            Err(error) => return self.fail(&error),
        };
        say(&(self.style.summary)(self.name, &finished));
        match count(&finished) {
            [_, 0, 0] => ExitCode::SUCCESS,
            [_, 0, _] => ExitCode::from(SKIPPED),
            [..] => ExitCode::FAILURE,
        }
    }

    /// Lists the selected cases.
    #[must_use]
    pub fn list(&self, selection: &Selection) -> ExitCode {
        match self.chosen(selection) {
            Ok(chosen) => chosen.into_iter().for_each(|case| case.list(self.style.name_width)),
            Err(error) => return self.fail(&error),
        }
        ExitCode::SUCCESS
    }

    /// Runs the selected cases, one after another.
    pub fn run(
        &self,
        selection: &Selection,
        mut run: impl FnMut(&Case<R>) -> anyhow::Result<Outcome>,
    ) -> anyhow::Result<Vec<Finished>> {
        let chosen = self.chosen(selection)?;
        Ok(chosen.into_iter().map(|case| self.run_case(case, || run(case))).collect())
    }

    /// Runs one case, and prints what comes of it.
    pub fn run_case(
        &self,
        case: &Case<R>,
        run: impl FnOnce() -> anyhow::Result<Outcome>,
    ) -> Finished {
        if self.style.has_headings {
            say(&case.heading());
        }
        let finished = case.finish(run);
        say(&(self.style.line)(&finished));
        finished
    }

    fn chosen(&self, selection: &Selection) -> anyhow::Result<Vec<&Case<R>>> {
        let chosen: Vec<_> = self.cases.iter().filter(|case| selection.has(case.name)).collect();
        let filter = selection.filter.as_deref().unwrap_or_default();
        ensure!(!chosen.is_empty(), "no case has {filter:?} in its name; --list shows them");
        Ok(chosen)
    }

    fn fail(&self, error: &anyhow::Error) -> ExitCode {
        if error.is::<Missing>() {
            say(&format!("{}: SKIPPED: {error}", self.name));
            return ExitCode::from(SKIPPED);
        }
        say(&format!("{}: error: {error:#}", self.name));
        ExitCode::FAILURE
    }
}
