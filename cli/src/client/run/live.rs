//! The last line of a terminal while a run goes on: how long, how far, and what it has cost.

use std::fmt;
use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use types::Amount;

use crate::client::output::{ombra, one_line};

/// How often the time on it is renewed.
const TICK: Duration = Duration::from_millis(200);
/// More than any terminal is wide; the status is a text of the node.
const LINE_CHARS_MAX: usize = 400;
const TEMPLATE: &str = "{spinner} {elapsed} [{bar:12}] {wide_msg}";

/// How far a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LiveStanding {
    /// What is waited for.
    pub(super) status: String,
    pub(super) steps: u64,
    pub(super) steps_max: u64,
    pub(super) tokens: u64,
    /// What would be paid if the run ended now.
    pub(super) cost: Amount,
    pub(super) escrow: Amount,
}

impl fmt::Display for LiveStanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, steps, steps_max, tokens, cost, escrow } = self;
        let (cost, escrow) = (cost.ombra(), ombra(*escrow));
        // What a narrow terminal cuts off is at the end.
        write!(f, "{cost} of {escrow}, {tokens} tokens, step {steps} of {steps_max}, {status}")
    }
}

/// The line; nothing at all where standard error is no terminal.
#[derive(Debug)]
pub(super) struct Live(ProgressBar);

impl Live {
    /// Shows the line, with a clock that begins now.
    pub(super) fn show() -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let style = ProgressStyle::with_template(TEMPLATE);
        let bar =
            ProgressBar::new(1).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// Tells how far the run is.
    pub(super) fn tell(&self, standing: &LiveStanding) {
        self.0.set_length(standing.escrow.get().max(1));
        self.0.set_position(standing.cost.get());
        self.0.set_message(one_line(&standing.to_string(), LINE_CHARS_MAX));
        // Drawn now, and not with the next tick.
        self.aside(|| ());
    }

    /// Tells something else.
    pub(super) fn say(&self, text: &str) {
        self.0.set_message(one_line(text, LINE_CHARS_MAX));
    }

    /// Does something that writes to the terminal, with the line out of the way.
    pub(super) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        self.0.suspend(write)
    }

    /// Takes the line away for good.
    pub(super) fn end(&self) {
        self.0.finish_and_clear();
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.end();
    }
}
