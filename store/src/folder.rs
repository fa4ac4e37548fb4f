//! The folder of a database, and the folders that tools make beside it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use state::error::StorageError;

/// What a rollback calls the old database beside the new one.
pub(crate) const KEPT: &str = "before-rollback";

/// What a rollback calls the new database until it takes its place.
pub(crate) const FRESH: &str = "rollback";

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
