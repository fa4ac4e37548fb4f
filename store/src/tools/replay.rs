//! Executing the chain again.

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

use super::copies::{beside, sync_folder};
use super::{EncodedBlock, Progress, Replay, ToolError, ahead, tail};
use crate::rocks::{Rows, Source};
use crate::tables::{
    self, EquivocationRows, EventRows, META, SWEEPS, TREE_NODES, TREE_STALE, UNDECIDED,
    ValidatorLinks,
};
use crate::{EVENTS_FROM_CELL, Options, Store, Tip};

/// Executes the blocks of `source` up to `height` into `target`, which may have the first of them
/// already. Every hash, root and rule is checked on the way. Answers the target's tip, which is on
/// the disk.
///
/// # Errors
/// [`ToolError`] says which block is wrong, and how.
pub fn rebuild(
    source: &Store,
    target: &Store,
    height: u64,
    replay: &Replay<'_>,
    progress: Progress<'_>,
) -> Result<Tip, ToolError> {
    rebuild_counting(source, target, height, replay, progress).map(|(tip, _)| tip)
}

/// [`rebuild`], which answers how many transactions it executed, too.
fn rebuild_counting(
    source: &Store,
    target: &Store,
    height: u64,
    replay: &Replay<'_>,
    progress: Progress<'_>,
) -> Result<(Tip, u64), ToolError> {
    let mut tip = replay.begin(target)?;
    let mut transactions = 0_u64;
    let blocks = (tip.height.saturating_add(1)..=height).map(|height| read(source, height));
    ahead::run(replay, blocks, |block| {
        progress(tip.height, height);
        let stated = block.stated_hash();
        transactions = transactions.saturating_add(block.block().header.tx_count);
        tip = replay.step(target, &tip, block)?;
        match stated.filter(|stated| *stated != tip.hash) {
            None => Ok(()),
            Some(found) => {
                let (height, what, expected) = (tip.height, "the stored hash", tip.hash);
                Err(ToolError::Mismatch { height, what, found, expected })
            }
        }
    })?;
    target.sync()?;
    progress(height, height);
    Ok((tip, transactions))
}

pub(super) fn read(source: &Store, height: u64) -> Result<EncodedBlock, ToolError> {
    let missing = || ToolError::Missing { height };
    let snapshot = source.snapshot();
    let (hash, bytes) = snapshot.hash_and_bytes(height)?.ok_or_else(missing)?;
    let certificate = snapshot.certificate(height)?.ok_or_else(missing)?;
    Ok(EncodedBlock { height, bytes, certificate, stated_hash: Some(hash) })
}

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

/// Executes the whole chain into a database in the folder `scratch`, which must not exist, and
/// compares (of a database that began with a snapshot: checks its blocks, its root and its rules): every block, every root, every row of the state and of the indexes. Then it checks the
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
    if scratch.exists() {
        return Err(ToolError::Exists { path: scratch.to_path_buf() });
    }
    if store.earliest() > 1 {
        return tail::verify(store, scratch, replay, progress);
    }
    let answer = compare_with_replay(store, scratch, replay, progress);
    let removed = fs::remove_dir_all(scratch);
    let (tip, transactions) = answer?;
    removed.map_err(|source| ToolError::File { path: scratch.to_path_buf(), source })?;
    let report = invariants::verify(&store.snapshot(), &replay.chain.params)?;
    match report.broken.first() {
        Some(broken) => Err(ToolError::Broken(Box::new(broken.clone()))),
        None => Ok(Verified { tip, earliest: 1, transactions, report }),
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

/// What the old database is called beside the new one.
const KEPT: &str = "before-rollback";

/// What the new database is called until it takes its place.
const FRESH: &str = "rollback";

/// Takes the last block back: builds the chain up to the block before it in a new database, which
/// then takes the place of the one in the folder `path`. The old one is kept beside it, with the
/// suffix `before-rollback`.
///
/// # Errors
/// [`ToolError::AtGenesis`] if there is no block; [`ToolError::Exists`] if an earlier rollback left
/// its copy; else what [`rebuild`] says. The database in `path` is untouched unless all went well.
pub fn rollback(
    path: &Path,
    options: Options,
    replay: &Replay<'_>,
    progress: Progress<'_>,
) -> Result<Tip, ToolError> {
    let (kept, fresh) = (beside(path, KEPT), beside(path, FRESH));
    if kept.exists() {
        return Err(ToolError::Exists { path: kept });
    }
    let tip = {
        let store = Store::open(path, options)?;
        let height = store.tip()?.height.checked_sub(1).ok_or(ToolError::AtGenesis)?;
        store.snapshot().require(1)?;
        if fresh.exists() {
            // An earlier attempt that was interrupted.
            let removed = fs::remove_dir_all(&fresh);
            removed.map_err(|source| ToolError::File { path: fresh.clone(), source })?;
        }
        let target = Store::open(&fresh, options)?;
        rebuild(&store, &target, height, replay, progress)?
    };
    take_place(path, &kept, &fresh)?;
    Ok(tip)
}

/// Keeps the folder `path` as `kept` and puts `fresh` into its place, or leaves all as it was.
fn take_place(path: &Path, kept: &Path, fresh: &Path) -> Result<(), ToolError> {
    let file = |path: &Path| {
        let path = path.to_path_buf();
        move |source| ToolError::File { path, source }
    };
    fs::rename(path, kept).map_err(file(path))?;
    if let Err(source) = fs::rename(fresh, path) {
        fs::rename(kept, path).map_err(file(kept))?;
        return Err(file(fresh)(source));
    }
    sync_folder(path.parent()).map_err(file(path))
}

/// Refuses to begin a new database in `path` where a rollback was interrupted between its two moves.
pub(crate) fn refuse_interrupted(path: &Path) -> Result<(), StorageError> {
    if path.join("CURRENT").exists() {
        return Ok(());
    }
    match [KEPT, FRESH].map(|suffix| beside(path, suffix)).into_iter().find(|it| it.exists()) {
        Some(left) => Err(StorageError::Interrupted { path: path.to_path_buf(), left }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    //! What a rollback does to folders when it is disturbed.

    use super::*;

    #[test]
    fn when_the_new_database_cannot_take_its_place_the_old_one_is_put_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let [path, kept, fresh] =
            ["db", "db.before-rollback", "db.rollback"].map(|name| folder.path().join(name));
        fs::create_dir(&path).expect("a folder");
        take_place(&path, &kept, &fresh).expect_err("there is no new database");
        assert!(path.exists() && !kept.exists());
        fs::create_dir(&fresh).expect("a folder");
        take_place(&path, &kept, &fresh).expect("moved");
        assert!(path.exists() && kept.exists() && !fresh.exists());
    }

    #[test]
    fn no_new_database_begins_where_a_rollback_was_interrupted() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("db");
        for suffix in [KEPT, FRESH] {
            let left = beside(&path, suffix);
            fs::create_dir(&left).expect("a folder");
            let error = Store::open(&path, Options::default()).expect_err("refused");
            assert!(matches!(error, StorageError::Interrupted { .. }), "{error}");
            fs::remove_dir(&left).expect("removed");
        }
        Store::open(&path, Options::default()).expect("a new database");
        fs::create_dir(beside(&path, KEPT)).expect("a folder");
        Store::open(&path, Options::default()).expect("the old database is kept beside it");
    }
}
