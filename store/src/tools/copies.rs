//! Snapshots of a database, and databases made from them.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use state::error::StorageError;
use types::Hash;

use super::ToolError;
use crate::{Options, Store, Tip};

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

/// Writes the names in a folder to the disk.
pub(crate) fn sync_folder(folder: Option<&Path>) -> io::Result<()> {
    // The parent of a single relative name is empty: the folder that the process is in.
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or_else(|| Path::new(".")))?.sync_all()
}

/// `path` with a suffix to its last part: a folder beside it, on the same disk.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".");
    name.push(suffix);
    path.with_file_name(name)
}
