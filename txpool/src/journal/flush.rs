//! Writing the journal, and keeping it small.

use super::files::Journal;
use super::record;
use super::written::Draft;
use crate::Pool;
use crate::error::JournalError;

/// Records are written in pieces of about this size.
const PIECE_BYTES: usize = 4 * 1024 * 1024;
/// A journal smaller than this is left alone even if little of it is alive.
const LEFT_ALONE_BYTES: u64 = 64 * 1024 * 1024;
/// A dead current segment smaller than this is left alone.
const CURRENT_LEFT_ALONE_BYTES: u64 = 1024 * 1024;

/// What a flush did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flushed {
    /// Transactions written for the first time.
    pub written: usize,
    /// Transactions written again, to free an old segment.
    pub rewritten: usize,
    /// Segments deleted.
    pub segments_removed: usize,
}

impl Pool {
    /// Writes to disk what was accepted since the last flush, and waits for the disk. The pool's
    /// lock is held only to take notes, so submissions go on. To be called every few ten
    /// milliseconds, and once before the node stops. Does nothing without a journal.
    ///
    /// # Errors
    /// [`JournalError`]; what was not written waits for the next flush.
    pub fn flush_journal(&self) -> Result<Flushed, JournalError> {
        let Some(journal) = &self.journal else { return Ok(Flushed::default()) };
        self.flush(&mut journal.lock())
    }

    pub(super) fn flush(&self, journal: &mut Journal) -> Result<Flushed, JournalError> {
        let mut flushed = Flushed::default();
        loop {
            let drafts = self.core().take_waiting(PIECE_BYTES);
            if drafts.is_empty() {
                break;
            }
            if let Err(error) = self.write(journal, &drafts) {
                self.core().return_waiting(&drafts);
                return Err(error);
            }
            flushed.written = flushed.written.saturating_add(drafts.len());
        }
        flushed.segments_removed = self.remove_dead(journal)?;
        flushed.rewritten = self.compact(journal)?;
        Ok(flushed)
    }

    fn write(&self, journal: &mut Journal, drafts: &[Draft]) -> Result<(), JournalError> {
        let mut records = Vec::with_capacity(PIECE_BYTES / 2);
        for Draft { arrival, tx, .. } in drafts {
            record::write(tx, *arrival, &mut records);
        }
        let segment = journal.append(&records)?;
        self.core().note_written(drafts, segment);
        Ok(())
    }

    /// Deletes the segments of which nothing is in the pool any more.
    fn remove_dead(&self, journal: &mut Journal) -> Result<usize, JournalError> {
        let is_dead = |segment: u64| self.core().written.live_in(segment) == 0;
        journal.close_current_if(CURRENT_LEFT_ALONE_BYTES, is_dead);
        let dead: Vec<u64> = journal.closed().keys().copied().filter(|n| is_dead(*n)).collect();
        for segment in &dead {
            journal.remove_closed(*segment)?;
        }
        Ok(dead.len())
    }

    /// If less than half of a large journal is alive, frees the oldest segment.
    fn compact(&self, journal: &mut Journal) -> Result<usize, JournalError> {
        let on_disk = journal.closed().values().copied().fold(0, u64::saturating_add);
        let live = u64::try_from(self.core().written.live()).unwrap_or(u64::MAX);
        if on_disk <= LEFT_ALONE_BYTES.max(live.saturating_mul(2)) {
            return Ok(0);
        }
        let Some(oldest) = journal.closed().keys().next().copied() else { return Ok(0) };
        let drafts = self.core().living_of(oldest);
        if !drafts.is_empty() {
            self.write(journal, &drafts)?;
        }
        journal.remove_closed(oldest)?;
        Ok(drafts.len())
    }
}
