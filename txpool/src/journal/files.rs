//! The segments of the journal as files.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::record::HEADER;
use crate::error::JournalError;

/// A segment that has more bytes than this is closed.
const SEGMENT_BYTES: u64 = 16 * 1024 * 1024;
const EXTENSION: &str = "journal";

/// The segment that is being written.
#[derive(Debug)]
struct Current {
    number: u64,
    file: File,
    bytes: u64,
    /// Whether everything in it is on the disk, and not only with the system.
    is_synced: bool,
}

/// The journal's directory.
#[derive(Debug)]
pub(crate) struct Journal {
    directory: PathBuf,
    /// Written by earlier runs, not yet read.
    old: Vec<u64>,
    /// Written by this run and not written any more, with their sizes.
    closed: BTreeMap<u64, u64>,
    current: Option<Current>,
    next: u64,
}

pub(super) fn io_error(
    action: &'static str,
    path: &Path,
) -> impl FnOnce(std::io::Error) -> JournalError {
    let path = path.to_owned();
    move |source| JournalError::Io { action, path, source }
}

impl Journal {
    /// Makes the directory if it is missing and looks what is there.
    pub(crate) fn open(directory: &Path) -> Result<Self, JournalError> {
        fs::create_dir_all(directory).map_err(io_error("make", directory))?;
        let mut old = Vec::new();
        let listing = fs::read_dir(directory).map_err(io_error("list", directory))?;
        for file in listing {
            let path = file.map_err(io_error("list", directory))?.path();
            old.extend(number_of(&path));
        }
        old.sort_unstable();
        let next = old.last().map_or(1, |last| last.saturating_add(1));
        let directory = directory.to_owned();
        Ok(Self { directory, old, closed: BTreeMap::new(), current: None, next })
    }

    pub(super) fn path(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{number:020}.{EXTENSION}"))
    }

    /// The segments of earlier runs, in order.
    pub(super) fn old(&self) -> &[u64] {
        &self.old
    }

    /// Deletes the segments of earlier runs.
    pub(super) fn remove_old(&mut self) -> Result<(), JournalError> {
        while let Some(number) = self.old.last() {
            self.delete(*number)?;
            self.old.pop();
        }
        Ok(())
    }

    /// Appends whole records: with the system when this returns, on the disk after
    /// [`Journal::sync`]. Answers the segment's number. After a failure the next records go into a
    /// new segment.
    pub(super) fn append(&mut self, records: &[u8]) -> Result<u64, JournalError> {
        let mut current = match self.current.take() {
            Some(current) => current,
            None => self.create()?,
        };
        let number = current.number;
        let written = current.file.write_all(records);
        current.bytes = current.bytes.saturating_add(size(records));
        current.is_synced = false;
        if let Err(source) = written {
            self.close(Some(current));
            return Err(JournalError::Io { action: "write", path: self.path(number), source });
        }
        self.current = Some(current);
        Ok(number)
    }

    /// Waits until everything that was appended is on the disk. After a failure nobody knows what
    /// of the segment is, and the next records go into a new one.
    pub(super) fn sync(&mut self) -> Result<(), JournalError> {
        let Some(current) = self.current.as_mut().filter(|current| !current.is_synced) else {
            return Ok(());
        };
        match current.file.sync_data() {
            Ok(()) => {
                current.is_synced = true;
                Ok(())
            }
            Err(source) => {
                let number = current.number;
                let failed = self.current.take();
                self.close(failed);
                Err(JournalError::Io { action: "sync", path: self.path(number), source })
            }
        }
    }

    /// Whether the current segment has as much as it should.
    pub(super) fn is_full(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.bytes >= SEGMENT_BYTES)
    }

    /// Closes the current segment, which was synced: the next records go into a new one.
    pub(super) fn rotate(&mut self) {
        let full = self.current.take();
        self.close(full);
    }

    /// The segment that is being written.
    pub(super) fn current(&self) -> Option<u64> {
        self.current.as_ref().map(|current| current.number)
    }

    /// The current segment is full, and goes on in another file.
    #[cfg(test)]
    pub(super) fn fill_current(&mut self, file: File) {
        if let Some(current) = self.current.as_mut() {
            current.file = file;
            current.bytes = SEGMENT_BYTES;
            current.is_synced = false;
        }
    }

    fn create(&mut self) -> Result<Current, JournalError> {
        let number = self.next;
        self.next = self.next.saturating_add(1);
        let path = self.path(number);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(io_error("create", &path))?;
        let begun = file.write_all(HEADER).map_err(io_error("write", &path));
        if let Err(error) = begun.and_then(|()| self.sync_directory()) {
            // Nobody would ever look at it again. If it stays, it has no record.
            drop(fs::remove_file(&path));
            return Err(error);
        }
        Ok(Current { number, file, bytes: size(HEADER), is_synced: false })
    }

    fn close(&mut self, segment: Option<Current>) {
        if let Some(Current { number, bytes, .. }) = segment {
            self.closed.insert(number, bytes);
        }
    }

    /// Closes the current segment if it has over `bytes_min` bytes and `is_dead`.
    pub(super) fn close_current_if(&mut self, bytes_min: u64, is_dead: impl Fn(u64) -> bool) {
        let over = |current: &Current| current.bytes > bytes_min && is_dead(current.number);
        if self.current.as_ref().is_some_and(over) {
            let current = self.current.take();
            self.close(current);
        }
    }

    /// The closed segments and their sizes, the oldest first.
    pub(super) const fn closed(&self) -> &BTreeMap<u64, u64> {
        &self.closed
    }

    /// Deletes a closed segment.
    pub(super) fn remove_closed(&mut self, number: u64) -> Result<(), JournalError> {
        self.delete(number)?;
        self.closed.remove(&number);
        Ok(())
    }

    fn delete(&self, number: u64) -> Result<(), JournalError> {
        let path = self.path(number);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(JournalError::Io { action: "delete", path, source })
            }
            _ => self.sync_directory(),
        }
    }

    fn sync_directory(&self) -> Result<(), JournalError> {
        let directory = File::open(&self.directory).map_err(io_error("open", &self.directory))?;
        directory.sync_all().map_err(io_error("sync", &self.directory))
    }
}

fn size(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn number_of(path: &Path) -> Option<u64> {
    let is_segment = path.extension().is_some_and(|extension| extension == EXTENSION);
    if is_segment { path.file_stem()?.to_str()?.parse().ok() } else { None }
}
