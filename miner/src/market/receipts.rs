//! The folder of receipts: one file for each call, the oldest ones dropped where they need room.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Value, json};
use types::Hash;

use crate::executor::Work;
use crate::tools::canonical_json;

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
        let temporary = path.with_extension("tmp");
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
            match fs::read(self.path(call, round)) {
                Ok(bytes) => receipts.push(serde_json::from_slice(&bytes)?),
                Err(error) if error.kind() == io::ErrorKind::NotFound => (),
                Err(error) => return Err(error),
            }
        }
        Ok(receipts)
    }

    /// Drops the oldest receipts until the others have at most `bytes_max` together; none of the calls
    /// in `open`. Gives how many it dropped.
    ///
    /// # Errors
    /// When the folder cannot be read or a file cannot be dropped.
    pub fn make_room(&self, bytes_max: u64, open: &BTreeSet<(Hash, u8)>) -> io::Result<u64> {
        let mut files = Vec::new();
        let mut sum = 0_u64;
        let listed = match fs::read_dir(&self.folder) {
            Ok(listed) => listed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(error),
        };
        for file in listed {
            let path = file?.path();
            let Some(name) = name_of(&path) else { continue };
            let about = fs::metadata(&path)?;
            sum = sum.saturating_add(about.len());
            if !open.contains(&name) {
                let at = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                files.push((at, name, about.len(), path));
            }
        }
        files.sort();
        let mut dropped = 0_u64;
        for (_, _, bytes, path) in files {
            if sum <= bytes_max {
                break;
            }
            fs::remove_file(path)?;
            sum = sum.saturating_sub(bytes);
            dropped = dropped.saturating_add(1);
        }
        Ok(dropped)
    }
}

/// The call and the round whose receipt a file is.
fn name_of(path: &Path) -> Option<(Hash, u8)> {
    let name = path.file_name()?.to_str()?.strip_suffix(".json")?;
    let (call, round) = name.split_once('-')?;
    Some((call.parse().ok()?, round.parse().ok()?))
}
