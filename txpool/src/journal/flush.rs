//! Writing the journal, and keeping it small.

use super::files::Journal;
use super::record::{self, TOMBSTONE_BYTES};
use super::written::{JournalEntry, living_of};
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
    /// Transactions written for the first time, since [`Pool::write_journal`] was last called.
    pub written: usize,
    /// Transactions written again, to free an old segment.
    pub rewritten: usize,
    /// Segments deleted.
    pub segments_removed: usize,
}

impl Pool {
    /// Hands what was accepted since the last call to the system, so that it survives the death of
    /// this process, but not that of the machine: that is what [`Pool::flush_journal`] is for. To be
    /// called before clients are told of the acceptance. The pool's lock is held only to take notes.
    /// Does nothing without a journal.
    ///
    /// # Errors
    /// [`JournalError`]; what was not written waits for the next call.
    pub fn write_journal(&self) -> Result<usize, JournalError> {
        match &self.journal {
            Some(journal) => self.write_waiting(&mut journal.lock()),
            None => Ok(0),
        }
    }

    /// As [`Pool::write_journal`], then waits for the disk and frees what nobody needs any more. To
    /// be called every few hundred milliseconds, and once before the node stops.
    ///
    /// # Errors
    /// [`JournalError`]; what is not on the disk waits for the next flush.
    pub fn flush_journal(&self) -> Result<Flushed, JournalError> {
        match &self.journal {
            Some(journal) => self.flush(&mut journal.lock()),
            None => Ok(Flushed::default()),
        }
    }

    pub(super) fn flush(&self, journal: &mut Journal) -> Result<Flushed, JournalError> {
        let written = self.write_waiting(journal)?;
        // First, so that what left the pool meanwhile need not be synced.
        let segments_removed = self.remove_dead(journal)?;
        self.sync(journal)?;
        let rewritten = self.compact(journal)?;
        Ok(Flushed { written, rewritten, segments_removed })
    }

    fn write_waiting(&self, journal: &mut Journal) -> Result<usize, JournalError> {
        let mut written = 0_usize;
        loop {
            let (entries, dropped) = {
                let mut core = self.core();
                let (contents, written) = core.journal();
                (written.take_waiting(contents, PIECE_BYTES), written.take_dropped())
            };
            if entries.is_empty() && dropped.is_empty() {
                return Ok(written);
            }
            if let Err(error) = self.write(journal, &entries, &dropped) {
                let mut core = self.core();
                let (_, notes) = core.journal();
                notes.return_waiting(&entries);
                notes.return_dropped(&dropped);
                return Err(error);
            }
            written = written.saturating_add(entries.len());
        }
    }

    fn sync(&self, journal: &mut Journal) -> Result<(), JournalError> {
        let segment = journal.current();
        let synced = journal.sync();
        if let (Err(_), Some(segment)) = (&synced, segment) {
            let mut core = self.core();
            let (contents, written) = core.journal();
            written.return_waiting(&living_of(contents, segment));
            written.unbury(segment);
        }
        synced
    }

    /// Writes transactions, and tombstones of the arrivals `dropped`.
    fn write(
        &self,
        journal: &mut Journal,
        entries: &[JournalEntry],
        dropped: &[u64],
    ) -> Result<(), JournalError> {
        if journal.is_full() {
            self.sync(journal)?;
            journal.rotate();
        }
        let bytes = entries
            .iter()
            .map(|entry| record::bytes(&entry.tx))
            .fold(dropped.len().saturating_mul(TOMBSTONE_BYTES), usize::saturating_add);
        let mut records = Vec::with_capacity(bytes);
        for arrival in dropped {
            record::write_tombstone(*arrival, &mut records);
        }
        for JournalEntry { arrival, tx, .. } in entries {
            record::write(tx, *arrival, &mut records);
        }
        let segment = journal.append(&records)?;
        let mut core = self.core();
        let (contents, written) = core.journal();
        written.note_written(contents, entries, segment);
        written.buried(segment, dropped);
        Ok(())
    }

    /// Deletes the segments of which nothing is in the pool any more, but for those with tombstones
    /// that older ones need.
    fn remove_dead(&self, journal: &mut Journal) -> Result<usize, JournalError> {
        let is_unused = |segment: u64| self.core().written().live_in(segment) == 0;
        journal.close_current_if(CURRENT_LEFT_ALONE_BYTES, is_unused);
        let closed: Vec<u64> = journal.closed().keys().copied().collect();
        let (mut removed, mut oldest) = (0_usize, None);
        for segment in closed {
            let is_dead = {
                let core = self.core();
                let written = core.written();
                written.live_in(segment) == 0
                    && (oldest.is_none() || !written.has_tombstones(segment))
            };
            if is_dead {
                self.remove(journal, segment)?;
                removed = removed.saturating_add(1);
            } else {
                oldest = oldest.or(Some(segment));
            }
        }
        Ok(removed)
    }

    fn remove(&self, journal: &mut Journal, segment: u64) -> Result<(), JournalError> {
        journal.remove_closed(segment)?;
        self.core().journal().1.forget_tombstones(segment);
        Ok(())
    }

    /// If less than half of a large journal is alive, frees the oldest segment.
    fn compact(&self, journal: &mut Journal) -> Result<usize, JournalError> {
        let on_disk = journal.closed().values().copied().fold(0, u64::saturating_add);
        let live = u64::try_from(self.core().written().live()).unwrap_or(u64::MAX);
        if on_disk <= LEFT_ALONE_BYTES.max(live.saturating_mul(2)) {
            return Ok(0);
        }
        let Some(oldest) = journal.closed().keys().next().copied() else { return Ok(0) };
        let entries = living_of(self.core().journal().0, oldest);
        if !entries.is_empty() {
            self.write(journal, &entries, &[])?;
            self.sync(journal)?;
        }
        // Its tombstones are about itself and older ones, of which there is none.
        self.remove(journal, oldest)?;
        Ok(entries.len())
    }
}
