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
/// [`StorageError::Genesis`] if the snapshot is of another chain, [`ToolError::Torn`] if somebody wrote to
/// it meanwhile; [`ToolError`] else.
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
    require_whole((from, &partial), &tip, options)?;
    fs::rename(&partial, to).map_err(file(to))?;
    sync_folder(to.parent()).map_err(file(to))?;
    Ok(tip)
}

/// Opens a copy that has to have this tip. A node that ran meanwhile has replaced files before they were
/// copied.
fn require_whole(
    (from, copy): (&Path, &Path),
    tip: &Tip,
    options: Options,
) -> Result<(), ToolError> {
    let found = Store::open_read_only(copy, options).and_then(|copied| copied.tip());
    match found {
        Ok(found) if found == *tip => Ok(()),
        Ok(_) | Err(_) => Err(ToolError::Torn { path: from.to_path_buf() }),
    }
}

#[cfg(test)]
mod tests {
    //! What is no copy.

    use state::draft::Changes;

    use super::*;
    use crate::commit::GenesisState;

    #[test]
    fn a_copy_with_another_tip_or_without_a_file_is_torn() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("db");
        let store = Store::open(&path, Options::default()).expect("a database");
        let changes = Changes::new();
        let genesis = GenesisState { hash: Hash::ZERO, timestamp: 1, changes: &changes };
        let tip = store.init(&genesis).expect("height 0");
        drop(store);
        let judge = |tip: &Tip| require_whole((&path, &path), tip, Options::default());
        judge(&tip).expect("whole");
        let error = judge(&Tip { height: 1, ..tip }).expect_err("another tip");
        assert!(matches!(&error, ToolError::Torn { path: from } if *from == path), "{error}");
        fs::remove_file(path.join("CURRENT")).expect("removed");
        let error = judge(&tip).expect_err("no database");
        assert!(matches!(error, ToolError::Torn { .. }), "{error}");
    }
}
