//! What a journal tells: the same functions for a miner that runs and for one that does not.

use types::{Address, Hash};

use super::record::{NodeFact, Process, RunLine, Status, WhyRecord};
use crate::journal::{Journal, JournalError};

/// Which runs are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Only those that are not over.
    pub only_open: bool,
    /// At most so many.
    pub limit: usize,
}

/// Why a run was claimed or not, and how far it is; none if the journal does not know it.
///
/// # Errors
/// When the journal cannot be read.
pub fn why(journal: &Journal, run: &Hash) -> Result<Option<WhyRecord>, JournalError> {
    let told = journal.why(run)?;
    if told.decisions.is_empty() && told.entry.is_none() {
        return Ok(None);
    }
    let state = told.entry.map(|entry| entry.state());
    Ok(Some(WhyRecord { decisions: told.decisions, state }))
}

/// The runs of the journal, newest first.
///
/// # Errors
/// When the journal cannot be read.
pub fn runs(journal: &Journal, wanted: Wanted) -> Result<Vec<RunLine>, JournalError> {
    let entries = if wanted.only_open { journal.open_entries()? } else { journal.entries()? };
    let mut lines: Vec<_> = entries.iter().map(RunLine::of).collect();
    lines.sort_by_key(|line| (std::cmp::Reverse(line.reserved_ms), line.run));
    lines.truncate(wanted.limit);
    Ok(lines)
}

/// How a miner is, as its journal has it; the rest is given.
///
/// # Errors
/// When the journal cannot be read.
pub fn status(
    journal: &Journal,
    wallet: Address,
    now_ms: u64,
    process: Option<Process>,
    node: NodeFact,
) -> Result<Status, JournalError> {
    let mut open = runs(journal, Wanted { only_open: true, limit: usize::MAX })?;
    open.reverse();
    Ok(Status {
        wallet,
        now_ms,
        process,
        starting: None,
        node,
        open,
        outbox: u64::try_from(journal.outbox()?.len()).unwrap_or(u64::MAX),
        today: journal.day(now_ms)?,
        swept: journal.swept()?,
        market: super::market::market(journal, None)?,
    })
}
