//! Programs that were compiled before.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use types::Hash;

use super::program::{Program, Refused};

/// The most bytes of all programs, compiled: two of the largest.
const BYTES_MAX: usize = 256 * 1024 * 1024;
/// The most programs, those counted that are none.
const PROGRAMS_MAX: usize = 64;

type Compiled = Result<Arc<Program>, Refused>;
/// Where a program comes to lie; locked while it is compiled.
type Place = Arc<Mutex<Option<Compiled>>>;

/// Compiled programs by the hash of their bytes; the one that was asked for last stands last.
#[derive(Debug)]
pub(super) struct Cache {
    entries: Mutex<VecDeque<Entry>>,
    compile: fn(&[u8]) -> Result<Program, Refused>,
}

#[derive(Debug)]
struct Entry {
    hash: Hash,
    /// What it takes at most.
    bytes: usize,
    place: Place,
}

impl Default for Cache {
    fn default() -> Self {
        Self { entries: Mutex::default(), compile: Program::compile }
    }
}

impl Cache {
    /// The program with these bytes; compiles it unless that was done before.
    pub(super) fn program(&self, bytes: &[u8]) -> Compiled {
        let hash = Hash::digest(bytes);
        let place = self.place(hash, bytes.len());
        // Who wants the same program waits here: compiled twice at once, it would take twice the memory.
        let mut compiled = place.lock();
        if let Some(compiled) = &*compiled {
            return compiled.clone();
        }
        let program = (self.compile)(bytes).map(Arc::new);
        *compiled = Some(program.clone());
        drop(compiled);
        self.settle(&place, &program);
        program
    }

    /// The place of a program, which was asked for last.
    fn place(&self, hash: Hash, bytes: usize) -> Place {
        let mut entries = self.entries.lock();
        let known = entries.iter().position(|it| it.hash == hash).and_then(|at| entries.remove(at));
        let entry = known.unwrap_or_else(|| Entry {
            hash,
            bytes: compiled_bytes_max(bytes),
            place: Place::default(),
        });
        let place = Arc::clone(&entry.place);
        entries.push_back(entry);
        place
    }

    /// Counts what was compiled. The programs that were wanted longest ago give way.
    fn settle(&self, place: &Place, program: &Compiled) {
        let mut entries = self.entries.lock();
        match program {
            Ok(_) => {}
            // Only those that wait are told: next time, the machine may have the memory.
            Err(Refused::Short) => entries.retain(|it| !Arc::ptr_eq(&it.place, place)),
            Err(Refused::Invalid(why)) => {
                let entry = entries.iter_mut().find(|it| Arc::ptr_eq(&it.place, place));
                entry.into_iter().for_each(|it| it.bytes = why.len());
            }
        }
        while entries.len() > PROGRAMS_MAX || held(&entries) > BYTES_MAX {
            // Where somebody waits or compiles, the place stays: nobody else may begin with the same program.
            let idle = entries.iter().position(|it| Arc::strong_count(&it.place) == 1);
            let Some(at) = idle else { break };
            entries.remove(at);
        }
    }

    /// Compiles with something else.
    #[cfg(test)]
    pub(super) fn compiling(compile: fn(&[u8]) -> Result<Program, Refused>) -> Self {
        Self { entries: Mutex::default(), compile }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.lock().len()
    }
}

/// What a program of so many bytes takes at most once it is compiled. Its code takes up to 20 bytes for each of
/// them (bounds.rs), and the interpreter keeps what it needed to compile the largest function: up to 130 bytes
/// for each of the function's, where it is loops within one another, but no more than 32 MiB.
fn compiled_bytes_max(bytes: usize) -> usize {
    let large = bytes.saturating_mul(24).saturating_add(32 * 1024 * 1024);
    bytes.saturating_mul(160).min(large)
}

fn held(entries: &VecDeque<Entry>) -> usize {
    entries.iter().map(|it| it.bytes).fold(0, usize::saturating_add)
}
