//! Comparing a database with what its blocks give.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::thread;

use parking_lot::Mutex;
use state::error::StorageError;
use state::invariants::{self, Report};
use state::table::{Key, Table, TableId, decode_value};
use state::tables::{BlobChunks, BlobRemains};

use super::error::ToolError;
use super::execution::Replay;
use super::rebuild::rebuild_counting;
use super::{Progress, tail};
use crate::database::Store;
use crate::meta::{EVENTS_FROM_CELL, Tip};
use crate::rocks::{Rows, Source};
use crate::tables::{
    self, EquivocationRows, EventRows, META, SWEEPS, TREE_NODES, TREE_STALE, UNDECIDED,
    ValidatorLinks,
};

/// What [`verify`] found to be right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verified {
    /// The end of the chain.
    pub tip: Tip,
    /// The first block that is there. Above 1 the database began with a snapshot, and the blocks were
    /// checked but not executed.
    pub earliest: u64,
    /// Transactions in all blocks.
    pub transactions: u64,
    /// What the invariants were checked over.
    pub report: Report,
}

/// Executes the whole chain into a database in the folder `scratch`, of which what an interrupted attempt
/// left is removed, and compares (of a database that began with a snapshot: checks its blocks, its root and its rules): every block, every root, every row of the state and of the indexes. Then it checks the
/// invariants of docs/protocol.md section 10. The folder is removed again.
///
/// # Errors
/// [`ToolError`] says what differs first.
pub fn verify(
    store: &Store,
    scratch: &Path,
    replay: &Replay<'_>,
    progress: Progress<'_>,
) -> Result<Verified, ToolError> {
    let file = |source| ToolError::File { path: scratch.to_path_buf(), source };
    if scratch.exists() {
        fs::remove_dir_all(scratch).map_err(file)?;
    }
    let earliest = store.earliest();
    let (tip, transactions) = if earliest > 1 {
        tail::check(store, scratch, replay, progress)?
    } else {
        let answer = compare_with_replay(store, scratch, replay, progress);
        let removed = fs::remove_dir_all(scratch);
        let answer = answer?;
        removed.map_err(file)?;
        answer
    };
    let report = invariants::verify_from(&store.snapshot(), &replay.chain.params, earliest)?;
    match report.broken.first() {
        Some(broken) => Err(ToolError::Broken(Box::new(broken.clone()))),
        None => Ok(Verified { tip, earliest, transactions, report }),
    }
}

fn compare_with_replay(
    store: &Store,
    scratch: &Path,
    replay: &Replay<'_>,
    progress: Progress<'_>,
) -> Result<(Tip, u64), ToolError> {
    // One that an older program made has no count of the votes for later forks yet.
    let expected = replay.begin(store)?;
    let copy = Store::open(scratch, store.0.options)?;
    let (tip, transactions) = rebuild_counting(store, &copy, expected.height, replay, progress)?;
    if tip.state_root != expected.state_root {
        let (height, found) = (tip.height, expected.state_root);
        let expected = tip.state_root;
        return Err(ToolError::Mismatch { height, what: "the stored state root", found, expected });
    }
    compare_all(store, &copy, replay.threads)?;
    Ok((tip, transactions))
}

/// Compares the tables of two databases, several at a time. Tells of the first table that differs.
fn compare_all(store: &Store, copy: &Store, threads: NonZeroUsize) -> Result<(), ToolError> {
    // Proposals are of the next height; how far stale nodes are pruned is a setting; what was seen
    // of others stands in no block; links are missing where an older program made the block, and
    // prove themselves to whoever uses them; an older program deleted the chunks of dropped blobs at
    // once, and wrote what is in `sweeps`.
    let history = [
        UNDECIDED,
        TREE_NODES,
        TREE_STALE,
        EquivocationRows::ID,
        ValidatorLinks::ID,
        BlobRemains::ID,
        SWEEPS,
    ];
    let waiting = tables::all().filter(|table| !history.contains(table)).enumerate();
    let waiting = Mutex::new(waiting);
    let faults = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..threads.get() {
            scope.spawn(|| {
                // Once a table differs, those behind it do not matter any more.
                while faults.lock().is_empty() {
                    let Some((place, table)) = waiting.lock().next() else { return };
                    if let Err(fault) = compare(store, copy, table) {
                        faults.lock().insert(place, fault);
                    }
                }
            });
        }
    });
    faults.into_inner().pop_first().map_or(Ok(()), |(_, fault)| Err(fault))
}

/// Compares a table of two databases without holding either in memory.
fn compare(store: &Store, copy: &Store, table: TableId) -> Result<(), ToolError> {
    let (one, other) = (store.0.rocks.snapshot(), copy.0.rocks.snapshot());
    let mut ours = one.rows(table)?;
    let mut theirs = other.rows(table)?;
    loop {
        if table == BlobChunks::ID {
            skip_left_over(&one, &mut ours)?;
            skip_left_over(&other, &mut theirs)?;
        }
        if table == META {
            skip(&mut ours, |name| name == EVENTS_FROM_CELL);
            skip(&mut theirs, |name| name == EVENTS_FROM_CELL);
        }
        if table == EventRows::ID {
            // Older programs wrote none; the copy has them all.
            let first = store.events_from().to_bytes();
            skip(&mut theirs, |height| height < first.as_slice());
        }
        let (key, what) = match (ours.item(), theirs.item()) {
            (None, None) => break,
            (Some(one), Some(other)) if one == other => {
                ours.next();
                theirs.next();
                continue;
            }
            (Some((key, _)), Some((other, _))) if key == other => (key, "has another value"),
            (Some((key, _)), Some((other, _))) if key < other => (key, "should not exist"),
            (Some((key, _)), None) => (key, "should not exist"),
            (_, Some((other, _))) => (other, "is missing"),
        };
        let key = key.iter().map(|byte| format!("{byte:02x}")).collect();
        return Err(ToolError::Row { table: table.name, key, what });
    }
    ours.status()?;
    theirs.status()?;
    Ok(())
}

/// Goes over rows whose keys say so.
fn skip(rows: &mut Rows<'_>, is_skipped: impl Fn(&[u8]) -> bool) {
    while rows.item().is_some_and(|(key, _)| is_skipped(key)) {
        rows.next();
    }
}

/// Goes over chunks that belonged to blobs that were dropped.
fn skip_left_over(source: &Source<'_>, rows: &mut Rows<'_>) -> Result<(), StorageError> {
    const KEY: StorageError = StorageError::Inconsistent { what: "a key has the wrong length" };
    while let Some((key, _)) = rows.item() {
        let (index, id) = <(u32, String)>::from_bytes(key).ok_or(KEY)?;
        let remains = source.get(BlobRemains::ID, &id.to_bytes())?;
        let remains = remains.as_deref().map(decode_value::<BlobRemains>).transpose()?;
        if !remains.is_some_and(|remains| remains.has(index)) {
            return Ok(());
        }
        rows.next();
    }
    Ok(())
}
