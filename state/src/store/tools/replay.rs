//! Executing the chain again.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::thread;

use parking_lot::Mutex;

use super::copies::beside;
use super::{EncodedBlock, Progress, Replay, ToolError, ahead};
use crate::invariants::{self, Report};
use crate::store::tables::{self, EquivocationRows, TREE_NODES, TREE_STALE, UNDECIDED};
use crate::store::{Options, Store, Tip};
use crate::table::{Table, TableId};

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

fn read(source: &Store, height: u64) -> Result<EncodedBlock, ToolError> {
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
    /// Transactions in all blocks.
    pub transactions: u64,
    /// What the invariants were checked over.
    pub report: Report,
}

/// Executes the whole chain into a database in the folder `scratch`, which must not exist, and
/// compares: every block, every root, every row of the state and of the indexes. Then it checks the
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
    let answer = compare_with_replay(store, scratch, replay, progress);
    let removed = fs::remove_dir_all(scratch);
    let (tip, transactions) = answer?;
    removed.map_err(|source| ToolError::File { path: scratch.to_path_buf(), source })?;
    let report = invariants::verify(&store.snapshot(), &replay.chain.params)?;
    match report.broken.first() {
        Some(broken) => Err(ToolError::Broken(Box::new(broken.clone()))),
        None => Ok(Verified { tip, transactions, report }),
    }
}

fn compare_with_replay(
    store: &Store,
    scratch: &Path,
    replay: &Replay<'_>,
    progress: Progress<'_>,
) -> Result<(Tip, u64), ToolError> {
    let expected = store.tip()?;
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
    // of others stands in no block.
    let history = [UNDECIDED, TREE_NODES, TREE_STALE, EquivocationRows::ID];
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
    let (ours, theirs) = (store.0.rocks.snapshot(), copy.0.rocks.snapshot());
    let mut ours = ours.rows(table)?;
    let mut theirs = theirs.rows(table)?;
    loop {
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
    let (kept, fresh) = (beside(path, "before-rollback"), beside(path, "rollback"));
    if kept.exists() {
        return Err(ToolError::Exists { path: kept });
    }
    let tip = {
        let store = Store::open(path, options)?;
        let height = store.tip()?.height.checked_sub(1).ok_or(ToolError::AtGenesis)?;
        if fresh.exists() {
            // An earlier attempt that was interrupted.
            let removed = fs::remove_dir_all(&fresh);
            removed.map_err(|source| ToolError::File { path: fresh.clone(), source })?;
        }
        let target = Store::open(&fresh, options)?;
        rebuild(&store, &target, height, replay, progress)?
    };
    for (from, to) in [(path, kept.as_path()), (fresh.as_path(), path)] {
        let moved = fs::rename(from, to);
        moved.map_err(|source| ToolError::File { path: from.to_path_buf(), source })?;
    }
    Ok(tip)
}
