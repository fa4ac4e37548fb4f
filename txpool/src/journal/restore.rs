//! Reading the journal of earlier runs back into the pool.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};

use types::{CheckedTx, SizeLimits, Transaction};

use super::files::{Journal, io_error};
use super::record::{HEADER, HEADER_OF_ANY_VERSION, HEADER_WITHOUT_TOMBSTONES, Located, scan};
use crate::Pool;
use crate::error::{JournalError, RestoreError};
use crate::ports::AdmitError;
use crate::verifier::Verifier;

/// How many transactions are read, checked and submitted at a time.
const BATCH: usize = 2_048;

/// What a replay of the journal found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Restored {
    /// Whole records of transactions that were not dropped.
    pub records: usize,
    /// Of these, transactions that are in the pool again.
    pub accepted: usize,
    /// Bytes that belong to no whole record: a cut-off tail, or damage.
    pub damaged_bytes: usize,
}

/// A record and the segment that holds it.
#[derive(Clone, Copy, Debug)]
struct RecordPlace {
    segment: u64,
    record: Located,
}

impl Pool {
    /// Submits what the journal of earlier runs holds, in the order in which it was accepted then,
    /// through the same checks as everything else, signatures included: a transaction that was
    /// dropped, that a block holds meanwhile, or that is not valid any more, is left out. Then everything is in a new
    /// segment, and the old ones are deleted. To be called once, before anything is submitted.
    /// `height` is that of the next block. Does nothing without a journal.
    ///
    /// # Errors
    /// [`RestoreError`]; the old segments are kept then.
    pub fn restore(
        &self,
        verifier: &Verifier,
        height: u64,
        now_ms: u64,
    ) -> Result<Restored, RestoreError> {
        let Some(journal) = &self.journal else { return Ok(Restored::default()) };
        let mut journal = journal.lock();
        self.core().journal().1.turn_on();
        let mut restored = Restored::default();
        let Left { places, latest } = locate(&journal, &mut restored)?;
        self.core().journal().0.start_after(latest);

        let mut files = BTreeMap::new();
        for batch in places.chunks(BATCH) {
            let txs = read(&journal, &mut files, batch, &verifier.limits(), &mut restored)?;
            let checked: Vec<CheckedTx> =
                verifier.verify(txs, height).into_iter().filter_map(Result::ok).collect();
            for answer in self.resubmit(&checked, now_ms) {
                match answer {
                    Ok(accepted) if accepted.is_new => {
                        restored.accepted = restored.accepted.saturating_add(1);
                    }
                    Ok(_) | Err(AdmitError::Rejected(_)) => {}
                    Err(AdmitError::Fault(fault)) => return Err(fault.into()),
                }
            }
        }
        self.flush(&mut journal)?;
        journal.remove_old()?;
        let Restored { records, accepted, damaged_bytes } = restored;
        if damaged_bytes > 0 {
            tracing::warn!(damaged_bytes, "the pool's journal has a cut-off or damaged part");
        }
        tracing::info!(records, accepted, "the pool's journal was replayed");
        Ok(restored)
    }
}

/// What earlier runs left.
struct Left {
    /// Every record of a transaction that was not dropped, in the order of arrival.
    places: Vec<RecordPlace>,
    /// The latest arrival that any record or tombstone names: it must not be given again.
    latest: u64,
}

fn locate(journal: &Journal, restored: &mut Restored) -> Result<Left, JournalError> {
    let mut places = Vec::new();
    for segment in journal.old().iter().copied() {
        let path = journal.path(segment);
        let bytes = fs::read(&path).map_err(io_error("read", &path))?;
        let header = bytes.get(..HEADER.len()).unwrap_or_default();
        let is_known = header == HEADER || header == HEADER_WITHOUT_TOMBSTONES;
        if header.starts_with(HEADER_OF_ANY_VERSION) && !is_known {
            return Err(JournalError::Format { path });
        }
        let found = scan(&bytes);
        restored.damaged_bytes = restored.damaged_bytes.saturating_add(found.damaged_bytes);
        places.extend(found.records.into_iter().map(|record| RecordPlace { segment, record }));
    }
    places.sort_by_key(|place| place.record.arrival);
    let latest = places.last().map_or(0, |place| place.record.arrival);
    let is_tombstone = |place: &&RecordPlace| place.record.is_tombstone();
    let dropped: BTreeSet<u64> =
        places.iter().filter(is_tombstone).map(|place| place.record.arrival).collect();
    places.retain(|place| !dropped.contains(&place.record.arrival));
    restored.records = places.len();
    Ok(Left { places, latest })
}

fn read(
    journal: &Journal,
    files: &mut BTreeMap<u64, File>,
    places: &[RecordPlace],
    limits: &SizeLimits,
    restored: &mut Restored,
) -> Result<Vec<Transaction>, JournalError> {
    let mut txs = Vec::with_capacity(places.len());
    let mut bytes = Vec::new();
    for RecordPlace { segment, record } in places {
        let path = journal.path(*segment);
        let file = match files.entry(*segment) {
            std::collections::btree_map::Entry::Occupied(open) => open.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(File::open(&path).map_err(io_error("open", &path))?)
            }
        };
        bytes.resize(record.bytes, 0);
        file.seek(SeekFrom::Start(record.offset)).map_err(io_error("read", &path))?;
        file.read_exact(&mut bytes).map_err(io_error("read", &path))?;
        match Transaction::decode(&bytes, limits) {
            Ok((tx, [])) => txs.push(tx),
            _ => restored.damaged_bytes = restored.damaged_bytes.saturating_add(record.bytes),
        }
    }
    Ok(txs)
}
