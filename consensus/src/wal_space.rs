//! Whether the engine's log failed because its disk is full.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

/// As much as the engine may want to write at once.
const PROBE_BYTES: usize = 1 << 20;

/// The error of a write beside the log, if it is that of a full disk. Whatever else keeps a log from
/// being written is not looked for: then nobody knows what is in it.
pub(crate) fn lack_of_room(log: &Path) -> Option<io::Error> {
    let probe = log.with_extension("probe");
    let written = File::create(&probe).and_then(|mut file| {
        file.write_all(&vec![0xff; PROBE_BYTES])?;
        file.sync_all()
    });
    // What stays would only be in the way; it has no meaning.
    drop(fs::remove_file(&probe));
    written
        .err()
        .filter(|error| matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_full_disk_is_a_lack_of_room() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("consensus.wal");
        assert!(lack_of_room(&log).is_none(), "there is room");
        std::os::unix::fs::symlink("/dev/full", log.with_extension("probe")).expect("a link");
        let error = lack_of_room(&log).expect("none is left");
        assert_eq!(ErrorKind::StorageFull, error.kind());
        assert_eq!(0, fs::read_dir(folder.path()).expect("a folder").count());
        let gone = folder.path().join("gone").join("consensus.wal");
        assert!(lack_of_room(&gone).is_none(), "it is not the room that is missing");
    }
}
