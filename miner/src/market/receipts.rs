//! The folder of receipts: one file for each call, the oldest ones dropped where they need room.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use types::Hash;

use agent::executor::Work;
use agent::tools::canonical_json;

/// The extension of a receipt that is being written.
const TEMPORARY: &str = "tmp";
/// A receipt that is being written for so long was left behind by a miner that died.
const TEMPORARY_AGE: Duration = Duration::from_secs(600);
/// The unit in which the system counts what a file takes of the disk.
const BLOCK_BYTES: u64 = 512;

/// The folder's name in that of the miner.
pub const RECEIPTS: &str = "receipts";

/// When a call was worked on, milliseconds since 1970. No member has to agree about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// When it was noticed that this miner was drawn.
    pub assigned_ms: u64,
    /// When the execution began.
    pub began_ms: u64,
    /// When it ended.
    pub ended_ms: u64,
}

/// A folder of receipts. Reading and writing waits for the disk.
#[derive(Clone, Debug)]
pub struct Receipts {
    folder: PathBuf,
}

impl Receipts {
    /// Those in a miner's folder; it is made with the first one.
    #[must_use]
    pub fn of(miner: &Path) -> Self {
        Self { folder: miner.join(RECEIPTS) }
    }

    fn path(&self, call: &Hash, round: u8) -> PathBuf {
        self.folder.join(format!("{call}-{round}.json"))
    }

    /// Writes a receipt: the whole file is there with this name, or none.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub fn put(&self, (call, round): (&Hash, u8), work: &Work, times: Times) -> io::Result<()> {
        let Times { assigned_ms, began_ms, ended_ms } = times;
        let receipt = json!({
            "work": work.as_json(),
            "times": { "assignedMs": assigned_ms, "beganMs": began_ms, "endedMs": ended_ms },
        });
        fs::create_dir_all(&self.folder)?;
        let path = self.path(call, round);
        let temporary = path.with_extension(TEMPORARY);
        let mut file = File::create(&temporary)?;
        file.write_all(canonical_json(&receipt).as_bytes())?;
        file.sync_all()?;
        drop(file);
        fs::rename(&temporary, &path)?;
        File::open(&self.folder)?.sync_all()
    }

    /// The receipts of a call, that of the first round first; empty if there are none.
    ///
    /// # Errors
    /// When one that is there cannot be read.
    pub fn of_call(&self, call: &Hash) -> io::Result<Vec<Value>> {
        let mut receipts = Vec::new();
        for round in [0, 1] {
            if let Some(bytes) = there(fs::read(self.path(call, round)))? {
                receipts.push(serde_json::from_slice(&bytes)?);
            }
        }
        Ok(receipts)
    }

    /// Drops the oldest receipts until the others take at most `bytes_max` of the disk together; none of the calls
    /// in `open`. Gives how many it dropped.
    ///
    /// # Errors
    /// When the folder cannot be read or a file cannot be dropped.
    pub fn make_room(&self, bytes_max: u64, open: &BTreeSet<(Hash, u8)>) -> io::Result<u64> {
        let mut files = Vec::new();
        let mut sum = 0_u64;
        let Some(listed) = there(fs::read_dir(&self.folder))? else { return Ok(0) };
        for file in listed {
            let path = file?.path();
            // A file may be dropped or renamed meanwhile.
            let Some(about) = there(fs::metadata(&path))? else { continue };
            let at = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let Some(name) = name_of(&path) else {
                let is_left_over = path.extension().is_some_and(|it| it == TEMPORARY)
                    && at.elapsed().is_ok_and(|age| age >= TEMPORARY_AGE);
                if is_left_over {
                    there(fs::remove_file(&path))?;
                }
                continue;
            };
            let bytes = about.blocks().saturating_mul(BLOCK_BYTES);
            sum = sum.saturating_add(bytes);
            if !open.contains(&name) {
                files.push((at, name, bytes, path));
            }
        }
        files.sort();
        let mut dropped = 0_u64;
        for (_, _, bytes, path) in files {
            if sum <= bytes_max {
                break;
            }
            there(fs::remove_file(path))?;
            sum = sum.saturating_sub(bytes);
            dropped = dropped.saturating_add(1);
        }
        Ok(dropped)
    }
}

/// What is there; nothing where it is gone.
fn there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The call and the round whose receipt a file is.
fn name_of(path: &Path) -> Option<(Hash, u8)> {
    let name = path.file_name()?.to_str()?.strip_suffix(".json")?;
    let (call, round) = name.split_once('-')?;
    Some((call.parse().ok()?, round.parse().ok()?))
}
