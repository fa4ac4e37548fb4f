//! Taking the last block back.

use std::fs;
use std::path::Path;

use super::Progress;
use super::error::ToolError;
use super::execution::Replay;
use super::rebuild::rebuild;
use crate::database::Store;
use crate::folder::{FRESH, KEPT, beside, sync_folder};
use crate::meta::Tip;
use crate::options::Options;

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

#[cfg(test)]
mod tests {
    //! What a rollback does to folders when it is disturbed.

    use state::error::StorageError;

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
