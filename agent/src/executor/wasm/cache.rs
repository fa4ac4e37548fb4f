//! Programs that were compiled before.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use types::Hash;

use super::program::{Program, Refused};

/// The most bytes of programs, before they were compiled; compiled, they take a few times as much.
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// The most programs, those counted that are none.
const PROGRAMS_MAX: usize = 64;

/// Compiled programs by the hash of their bytes; the one that was asked for last stands last.
#[derive(Debug, Default)]
pub(super) struct Cache {
    entries: Mutex<VecDeque<Entry>>,
}

#[derive(Debug)]
struct Entry {
    hash: Hash,
    bytes: usize,
    program: Result<Arc<Program>, Refused>,
}

impl Cache {
    /// The program with these bytes; compiles it unless that was done before.
    pub(super) fn program(&self, bytes: &[u8]) -> Result<Arc<Program>, Refused> {
        let hash = Hash::digest(bytes);
        if let Some(program) = self.find(&hash) {
            return program;
        }
        // Not under the lock: another program need not wait. Two may compile the same one.
        let program = Program::compile(bytes).map(Arc::new);
        let entry = Entry { hash, bytes: bytes.len(), program: program.clone() };
        let mut entries = self.entries.lock();
        entries.retain(|it| it.hash != hash);
        entries.push_back(entry);
        while entries.len() > PROGRAMS_MAX || held(&entries) > BYTES_MAX {
            entries.pop_front();
        }
        program
    }

    fn find(&self, hash: &Hash) -> Option<Result<Arc<Program>, Refused>> {
        let mut entries = self.entries.lock();
        let place = entries.iter().position(|it| it.hash == *hash)?;
        let entry = entries.remove(place)?;
        let program = entry.program.clone();
        entries.push_back(entry);
        Some(program)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.lock().len()
    }
}

fn held(entries: &VecDeque<Entry>) -> usize {
    entries.iter().filter(|it| it.program.is_ok()).map(|it| it.bytes).sum()
}
