//! What all reports about a miner share: whose they are, and how they are printed.

use clap::Args;
use miner::journal::JournalError;
use miner::operate::RunLine;
use miner::operate::tell::Wanted;
use serde::Serialize;
use types::Amount;

use super::place::PlaceArgs;
use crate::client::output::{self, Rows};
use crate::client::{CliError, Out, Outcome};

/// A wallet's miner.
#[derive(Args, Debug)]
pub(super) struct PlainArgs {
    #[command(flatten)]
    pub(super) place: PlaceArgs,
}

/// Runs or calls of a wallet's miner.
#[derive(Args, Debug)]
pub(super) struct RunsArgs {
    /// Only those that are not over
    #[arg(long)]
    open: bool,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 30)]
    limit: usize,
    #[command(flatten)]
    place: PlaceArgs,
}

impl RunsArgs {
    /// What is wanted, and of whom.
    pub(super) const fn parts(&self) -> (Wanted, &PlaceArgs) {
        let Self { open, limit, place } = self;
        (Wanted { only_open: *open, limit: *limit }, place)
    }
}

/// A failure of the journal.
pub(super) fn unread(error: JournalError) -> CliError {
    CliError::Failed(error.to_string())
}

/// A record as one line of JSON.
pub(super) fn print_json(record: &impl Serialize, out: Out<'_>) -> Outcome {
    let text = serde_json::to_string(record);
    let text = text.map_err(|error| CliError::Failed(format!("a record as JSON: {error}")))?;
    writeln!(out, "{text}")?;
    Ok(())
}

/// A time as its distance from now, such as `5 min`.
pub(super) fn ago(then_ms: u64, now_ms: u64) -> String {
    match now_ms.saturating_sub(then_ms) / 1_000 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// Runs as a table.
pub(super) fn table(lines: &[RunLine], now_ms: u64) -> Rows {
    let mut rows = output::table(["RUN", "STEPS", "TOKENS", "REWARD", "AGE", "STATE"]);
    for line in lines {
        let reward = line.reward_micro.map(|micro| Amount::new(micro).ombra());
        rows.add_row([
            line.run.to_string(),
            line.steps.to_string(),
            line.tokens.to_string(),
            reward.unwrap_or_else(|| "-".to_owned()),
            ago(line.reserved_ms, now_ms),
            // A reason may quote the model.
            output::printable(&line.state),
        ]);
    }
    rows
}
