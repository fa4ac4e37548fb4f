//! Snapshots of a database, and databases made from them.

use std::fs::{self, File};
use std::path::Path;

use state::error::StorageError;
use types::Hash;

use super::error::ToolError;
use crate::database::Store;
use crate::folder::{beside, sync_folder};
use crate::meta::Tip;
use crate::options::Options;

/// Makes a copy of the database in the folder `to`, which must not exist. Most of its files are
/// hard links, so it is quick and small as long as both are on one disk.
///
/// # Errors
/// [`ToolError::Exists`] if the folder is there; [`ToolError::Storage`] if the database fails.
pub fn snapshot(store: &Store, to: &Path) -> Result<(), ToolError> {
    if to.exists() {
        return Err(ToolError::Exists { path: to.to_path_buf() });
    }
    store.0.rocks.checkpoint(to)?;
    Ok(())
}

/// Makes a database in the folder `to`, which must not exist or be empty, out of a snapshot of the
/// chain `genesis`. Answers its tip. What is in `to` afterwards is whole and on the disk, or not
/// there.
///
/// # Errors
/// [`StorageError::Genesis`] if the snapshot is of another chain; [`ToolError`] else.
pub fn restore(from: &Path, to: &Path, genesis: Hash, options: Options) -> Result<Tip, ToolError> {
    let file = |path: &Path| {
        let path = path.to_path_buf();
        move |source| ToolError::File { path, source }
    };
    let tip = {
        let snapshot = Store::open_read_only(from, options)?;
        let found = snapshot.genesis_hash()?.ok_or(StorageError::Empty)?;
        if found != genesis {
            return Err(StorageError::Genesis { found, expected: genesis }.into());
        }
        snapshot.tip()?
    };
    if to.exists() {
        // Only an empty folder can be removed this way.
        if fs::remove_dir(to).is_err() {
            return Err(ToolError::Exists { path: to.to_path_buf() });
        }
    }
    let partial = beside(to, "partial");
    if partial.exists() {
        fs::remove_dir_all(&partial).map_err(file(&partial))?;
    }
    fs::create_dir_all(&partial).map_err(file(&partial))?;
    for entry in fs::read_dir(from).map_err(file(from))? {
        let entry = entry.map_err(file(from))?;
        if entry.file_name() == "LOCK" {
            continue;
        }
        let copy = partial.join(entry.file_name());
        fs::copy(entry.path(), &copy).map_err(file(&entry.path()))?;
        File::open(&copy).and_then(|copied| copied.sync_all()).map_err(file(&copy))?;
    }
    sync_folder(Some(&partial)).map_err(file(&partial))?;
    fs::rename(&partial, to).map_err(file(to))?;
    sync_folder(to.parent()).map_err(file(to))?;
    Ok(tip)
}
