//! The record of what this validator signed last, so that it never signs against itself.
//!
//! The engine's own log prevents that across crashes. The guard does as well when the log is
//! lost, when a database is restored from a backup, or when two processes use one directory: it
//! lets the key sign only messages that are newer than the last one, or that same one again.
//!
//! # Safety argument
//! A message is released only after its record is synced to disk. A record replaces an earlier
//! one only if its (height, round) is greater, or if it adds a kind of message (proposal,
//! prevote, precommit) that this round's record does not hold. So for each height, round and
//! kind at most one message is ever signed.
//!
//! A validator that is the whole set signs proposal, prevote and precommit of one block within a
//! moment, and nobody else can make it sign anything else. For it, [`Guard::permit_alone`]
//! records the three at once: one sync per block, not three. Its votes for nil are not recorded:
//! they decide nothing, and a record of one could forbid the vote for a block after a crash.
//!
//! # Without a record
//! A record may be missing because the key is new, or because what it has signed is forgotten. Whoever
//! opens the guard says up to which height the key may have signed. The new record holds that height,
//! without a message: its owner treats it like one of a height whose log is lost (`amnesia.rs`).
//!
//! # After a refusal
//! The node stops. It may start again once the height in question was decided by the others, or
//! when the right log or database is back in place: what is newer than the record is signed.
//!
//! ```text
//! file `last-signed`: two slots of 512 bytes, written in turn, so that one is always whole
//!   record  borsh of `Record`
//!   zeros
//!   digest  32 bytes: SHA-256 of the 480 bytes before it
//! ```

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use borsh::{BorshDeserialize, BorshSerialize};
use parking_lot::Mutex;
use types::sign_bytes::Domain;
use types::{Hash, PublicKey};

pub(crate) const FILE_NAME: &str = "last-signed";
const SLOT_BYTES: usize = 512;
const RECORD_BYTES: usize = 480;
const SLOT_OFFSETS: [u64; 2] = [0, 512];
/// The owner of a record that belongs to whatever key opens it first.
const NOBODY: [u8; 32] = [0; 32];

/// What kind of message is to be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A proposal.
    Proposal,
    /// A prevote.
    Prevote,
    /// A precommit.
    Precommit,
}

/// Why the guard refuses.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// A later height or round was signed already.
    #[error(
        "asked to sign height {height} round {round}, but height {last_height} round {last_round} \
         was signed already"
    )]
    Older {
        /// What was asked for.
        height: u64,
        /// What was asked for.
        round: i64,
        /// What is recorded.
        last_height: u64,
        /// What is recorded.
        last_round: i64,
    },
    /// A different message of this height, round and kind was signed already.
    #[error("a different message of height {height} round {round} was signed already")]
    Conflict {
        /// The height.
        height: u64,
        /// The round.
        round: i64,
    },
    /// The record belongs to another key or chain.
    #[error("{path} belongs to another key or another chain")]
    Owner {
        /// The file.
        path: PathBuf,
    },
    /// Another process holds the record.
    #[error("{path} is in use by another process")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// Neither slot is whole.
    #[error("{path} is damaged; find out why before this key signs again")]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
struct Record {
    /// Grows by one with each write; tells the newer slot.
    sequence: u64,
    /// [`owners`].
    owner: [u8; 32],
    height: u64,
    round: i64,
    /// Digests of the signed bytes, by kind.
    signed: [Option<[u8; 32]>; 3],
}

struct State {
    record: Record,
    /// Recorded by `permit_alone` and not signed by this process: may still be replaced, since
    /// nothing was released under it.
    reserved: [bool; 3],
}

/// The last-signed record of one key on one chain.
pub(crate) struct Guard {
    path: PathBuf,
    file: File,
    state: Mutex<State>,
}

impl Guard {
    /// Opens the record in `directory` and locks it for this process. If there is none, creates one of
    /// `height`, the last one for which the key may have signed; 0 if it has signed nothing. A record
    /// without the genesis hash in its owner, as programs before fork v7 wrote it, is taken and stays as it
    /// is.
    pub(crate) fn open(
        directory: &Path,
        domain: &Domain,
        key: &PublicKey,
        height: u64,
    ) -> Result<Self, GuardError> {
        let path = directory.join(FILE_NAME);
        let io = |source| GuardError::Io { path: path.clone(), source };
        let [first, second] = owners(domain, key);
        // A chain without v7 keeps the form that older programs read.
        let owner = if domain.v7_from.is_some() { second } else { first };
        if !path.try_exists().map_err(io)? {
            create(directory, owner, height).map_err(io)?;
        }
        let file = OpenOptions::new().read(true).write(true).open(&path).map_err(io)?;
        if file.try_lock().is_err() {
            return Err(GuardError::InUse { path });
        }
        let Some(mut record) = read_newest(&file).map_err(io)? else {
            return Err(GuardError::Damaged { path });
        };
        if record.sequence == 0 && record.owner == NOBODY {
            record.owner = owner;
        }
        if ![first, second].contains(&record.owner) {
            return Err(GuardError::Owner { path });
        }
        let guard = Self { path, file, state: Mutex::new(State { record, reserved: [false; 3] }) };
        guard.write_again()?;
        Ok(guard)
    }

    /// Writes what was found once more. If its sync failed when it was written, the system shows it
    /// all the same, although it is not on the disk; from now on the key may sign it again.
    fn write_again(&self) -> Result<(), GuardError> {
        let mut state = self.state.lock();
        if state.record.sequence > 0 {
            let mut next = state.record;
            next.sequence += 1;
            self.write(&next)?;
            state.record = next;
        }
        Ok(())
    }

    /// Records that `digest` is about to be signed; on `Ok` the record is on disk.
    pub(crate) fn permit(
        &self,
        height: u64,
        round: i64,
        kind: Kind,
        digest: Hash,
    ) -> Result<(), GuardError> {
        let mut state = self.state.lock();
        let State { record, reserved } = &*state;
        let at = index(kind);
        let mut next = check_position(record, height, round)?;
        let mut next_reserved = if next.height == record.height && next.round == record.round {
            *reserved
        } else {
            [false; 3]
        };
        let slot = &mut next.signed[at];
        let known = *slot == Some(*digest.as_bytes());
        if slot.is_some() && !known && !next_reserved[at] {
            return Err(GuardError::Conflict { height, round });
        }
        *slot = Some(*digest.as_bytes());
        next_reserved[at] = false;
        if !known {
            next.sequence += 1;
            self.write(&next)?;
        }
        *state = State { record: next, reserved: next_reserved };
        Ok(())
    }

    /// Records a proposal and, with it, the two votes that will follow: for a validator that is
    /// the whole set. `digests` are those of proposal, prevote and precommit.
    pub(crate) fn permit_alone(
        &self,
        height: u64,
        round: i64,
        digests: [Hash; 3],
    ) -> Result<(), GuardError> {
        let mut state = self.state.lock();
        let mut next = check_position(&state.record, height, round)?;
        let fresh = next.signed == [None; 3];
        if !fresh {
            drop(state);
            let [proposal, _, _] = digests;
            return self.permit(height, round, Kind::Proposal, proposal);
        }
        next.signed = digests.map(|digest| Some(*digest.as_bytes()));
        next.sequence += 1;
        self.write(&next)?;
        *state = State { record: next, reserved: [false, true, true] };
        Ok(())
    }

    /// Whether a vote for nil may be signed by a validator that is the whole set.
    pub(crate) fn permit_nil_alone(&self, height: u64, round: i64) -> Result<(), GuardError> {
        check_position(&self.state.lock().record, height, round).map(drop)
    }

    /// What was signed last; at height 0 if nothing was, and without a round if there was no record.
    pub(crate) fn last(&self) -> LastSigned {
        let Record { height, round, .. } = self.state.lock().record;
        LastSigned { height, round }
    }

    fn write(&self, record: &Record) -> Result<(), GuardError> {
        let [even, odd] = SLOT_OFFSETS;
        let offset = if record.sequence.is_multiple_of(2) { even } else { odd };
        self.file
            .write_all_at(&encode_slot(record), offset)
            .and_then(|()| self.file.sync_data())
            .map_err(|source| GuardError::Io { path: self.path.clone(), source })
    }
}

/// What a key signed last, by its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastSigned {
    /// The height.
    pub height: u64,
    /// The round; −1 if there was no record, and the height is the last one for which the key may have
    /// signed.
    pub round: i64,
}

/// What was signed last by the record in the folder `directory` of a stopped node; `None` if there
/// is no record or nothing was signed.
///
/// # Errors
/// [`GuardError`] if the record is in use, damaged or cannot be read.
pub fn last_signed(directory: &Path) -> Result<Option<LastSigned>, GuardError> {
    let path = directory.join(FILE_NAME);
    let io = |source| GuardError::Io { path: path.clone(), source };
    if !path.try_exists().map_err(io)? {
        return Ok(None);
    }
    let file = File::open(&path).map_err(io)?;
    if file.try_lock().is_err() {
        return Err(GuardError::InUse { path });
    }
    let Some(Record { sequence, height, round, .. }) = read_newest(&file).map_err(io)? else {
        return Err(GuardError::Damaged { path });
    };
    Ok((sequence > 0).then_some(LastSigned { height, round }))
}

/// To whom a record belongs: in the first form by chain id and key, in the second by the genesis hash,
/// too.
fn owners(domain: &Domain, key: &PublicKey) -> [[u8; 32]; 2] {
    let (id, key) = (domain.chain_id.as_bytes(), key.as_bytes());
    [
        *Hash::digest_parts(&[id, key]).as_bytes(),
        *Hash::digest_parts(&[domain.genesis_hash.as_bytes(), id, key]).as_bytes(),
    ]
}

/// Puts a record into `directory` that lets whatever key opens it first sign at once. Only where its
/// operator answers for that.
pub(crate) fn create_blank(directory: &Path) -> io::Result<()> {
    create(directory, NOBODY, 0)
}

/// Makes a first record under another name and moves it to its place, so that a crash leaves
/// either no record or a whole one.
fn create(directory: &Path, owner: [u8; 32], height: u64) -> io::Result<()> {
    let path = directory.join(FILE_NAME);
    let sequence = u64::from(height > 0);
    let record = Record { sequence, owner, height, round: -1, signed: [None; 3] };
    let draft = path.with_extension("new");
    let file = File::create(&draft)?;
    for offset in SLOT_OFFSETS {
        file.write_all_at(&encode_slot(&record), offset)?;
    }
    file.sync_all()?;
    std::fs::rename(&draft, &path)?;
    File::open(directory)?.sync_all()
}

fn encode_slot(record: &Record) -> Vec<u8> {
    let mut slot = borsh::to_vec(record).expect("writing to a vector cannot fail");
    slot.resize(RECORD_BYTES, 0);
    let digest = Hash::digest(&slot);
    slot.extend_from_slice(digest.as_bytes());
    slot
}

fn index(kind: Kind) -> usize {
    match kind {
        Kind::Proposal => 0,
        Kind::Prevote => 1,
        Kind::Precommit => 2,
    }
}

/// The record to extend for (height, round): the last one, or an empty one if this is newer.
fn check_position(last: &Record, height: u64, round: i64) -> Result<Record, GuardError> {
    match (height, round).cmp(&(last.height, last.round)) {
        std::cmp::Ordering::Less => Err(GuardError::Older {
            height,
            round,
            last_height: last.height,
            last_round: last.round,
        }),
        std::cmp::Ordering::Equal => Ok(*last),
        std::cmp::Ordering::Greater => Ok(Record { height, round, signed: [None; 3], ..*last }),
    }
}

/// The whole slot with the greatest sequence.
fn read_newest(file: &File) -> io::Result<Option<Record>> {
    let mut newest: Option<Record> = None;
    for offset in SLOT_OFFSETS {
        let mut slot = [0_u8; SLOT_BYTES];
        match file.read_exact_at(&mut slot, offset) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => continue,
            Err(error) => return Err(error),
        }
        let (content, digest) = slot.split_at(RECORD_BYTES);
        if Hash::digest(content).as_bytes() != digest {
            continue;
        }
        let Ok(record) = Record::deserialize(&mut &*content) else { continue };
        if newest.is_none_or(|other| other.sequence < record.sequence) {
            newest = Some(record);
        }
    }
    Ok(newest)
}

#[cfg(test)]
mod tests;
