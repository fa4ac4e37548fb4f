//! Setting files aside that do not belong to the end of the chain: of a stopped node when its chain is
//! made shorter, and of one that starts and has to follow first.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::guard;
use crate::wal_file::LOG_NAME;

/// Moves the log of the engine that signs in the folder `directory` aside, and answers where it is
/// kept; `None` if there is none. A log that reaches beyond the database would make the engine decide
/// a block that is no longer there. The record of signatures stays and keeps the key from contradicting
/// itself.
///
/// # Errors
/// [`io::Error`] if it cannot be moved.
pub fn archive_log(directory: &Path) -> io::Result<Option<PathBuf>> {
    archive(directory, LOG_NAME)
}

/// Moves the record of what the key signed last aside and puts a blank one into its place, so that the
/// key may sign heights again that it has signed. Answers where the old one is kept; `None` if there is
/// none. Only for a key that decides alone, or where all operators have agreed: any other one could
/// contradict itself before others.
///
/// # Errors
/// [`io::Error`] if it cannot be moved.
pub fn archive_last_signed(directory: &Path) -> io::Result<Option<PathBuf>> {
    let kept = archive(directory, guard::FILE_NAME)?;
    if kept.is_some() {
        guard::create_blank(directory)?;
    }
    Ok(kept)
}

fn archive(directory: &Path, name: &str) -> io::Result<Option<PathBuf>> {
    let path = directory.join(name);
    if !path.try_exists()? {
        return Ok(None);
    }
    let mut number = 1_u32;
    let kept = loop {
        let kept = directory.join(format!("{name}.old-{number}"));
        if !kept.try_exists()? {
            break kept;
        }
        number = number.saturating_add(1);
    };
    fs::rename(&path, &kept)?;
    File::open(directory)?.sync_all()?;
    Ok(Some(kept))
}

#[cfg(test)]
mod tests {
    //! Nothing that was set aside is lost.

    use super::*;

    #[test]
    fn files_are_set_aside_under_names_of_their_own() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["consensus.wal.old-1", "consensus.wal.old-2"] {
            fs::write(folder.path().join(LOG_NAME), name).expect("written");
            let kept = archive_log(folder.path()).expect("moved").expect("a log");
            assert!(kept.ends_with(name), "{}", kept.display());
            assert_eq!(fs::read(kept).expect("read"), name.as_bytes());
        }
        assert_eq!(archive_log(folder.path()).expect("looked"), None);
    }
}
