//! A validator that has forgotten what it was about to decide.
//!
//! The record of the last signature keeps a key from signing two messages of one height, round and
//! kind. It does not know what the key is bound to: a validator that has precommitted a block must not
//! prevote another one in a later round, unless a quorum released it. Only the engine's log of that
//! height knows, so without the log a validator signs nothing until that height is decided. It follows
//! until then.
//!
//! A key of the set that has no record at all on a chain with blocks may be new, or its validator may have
//! forgotten everything, as after the loss of a disk. No node can tell, so such a key follows, too, until
//! whatever it may have signed is decided.
//!
//! An engine that follows writes each height into the head of its log, too. It therefore has a log of
//! its own, and a validator that begins to follow sets the other one aside (`start.rs`). So
//! `consensus.wal` is of the signed height only if an engine with the signer wrote it, and a restart in
//! the middle changes nothing.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use types::Address;

use crate::guard::LastSigned;
use crate::wal_file::LOG_NAME;
use crate::{Archive, LedgerFault, StartError, Tip};

/// The head of the engine's log: its version and the height that it is of, both big-endian.
const VERSION: [u8; 4] = [0, 0, 0, 1];
const HEAD_BYTES: usize = 12;

/// Up to which height a validator does not sign; shared with those who tell of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Withheld(Arc<AtomicU64>);

impl Withheld {
    pub(crate) fn set(&self, height: Option<u64>) {
        self.0.store(height.unwrap_or(0), Ordering::Release);
    }

    pub(crate) fn get(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Acquire)).filter(|height| *height > 0)
    }
}

/// How many heights beyond its tip a validator without a record may have signed. A node starts consensus
/// when it is no more than three blocks behind, and the key may have signed the height after those.
const FORGOTTEN_MAX: u64 = 4;

/// The last height for which a key without a record may have signed; 0 if it has signed nothing, or if
/// nobody else could decide what it has signed.
pub(crate) fn without_record(tip: &Tip, own: Address) -> u64 {
    let sets = [&tip.validators, &tip.next_validators];
    let is_member = sets.iter().any(|set| set.by_address(&own).is_some());
    if tip.height == 0 || !is_member || tip.validators.is_only(&own) {
        return 0;
    }
    tip.height.saturating_add(FORGOTTEN_MAX)
}

/// The height up to which this validator must not sign, because it has signed it and its log of it is
/// lost; none if it may sign what comes next.
///
/// # Errors
/// [`StartError::Amnesia`] if it decides alone: nobody else can decide that height.
pub(crate) fn withheld(
    signed: LastSigned,
    (tip, own): (&Tip, Address),
    archive: &dyn Archive,
    log: &Path,
) -> Result<Option<u64>, StartError> {
    let height = signed.height;
    let next = tip.height.saturating_add(1);
    let is_remembered = height == next && height_of(log) == Some(height);
    if height <= tip.height || is_remembered {
        return Ok(None);
    }
    if !tip.validators.is_only(&own) {
        return Ok(Some(height));
    }
    // Its own proposal is kept in the database. It proposes the same again, and the record lets it
    // sign nothing else.
    if height == next && has_proposed(archive, height, own).map_err(StartError::Ledger)? {
        return Ok(None);
    }
    Err(StartError::Amnesia { signed: height, tip: tip.height, hash: tip.hash })
}

/// Whether a validator whose chain ends at `height` has, in the folder `directory`, the engine's log of
/// what it signed last.
#[must_use]
pub fn remembers(directory: &Path, signed: LastSigned, height: u64) -> bool {
    let next = height.saturating_add(1);
    signed.height == next && height_of(&directory.join(LOG_NAME)) == Some(next)
}

fn has_proposed(archive: &dyn Archive, height: u64, own: Address) -> Result<bool, LedgerFault> {
    Ok(archive.undecided(height)?.iter().any(|block| block.proposer == own))
}

/// The height that the engine's log is of; none if there is no log, or none that the engine would read.
fn height_of(log: &Path) -> Option<u64> {
    let mut head = [0; HEAD_BYTES];
    File::open(log).ok()?.read_exact(&mut head).ok()?;
    let (version, height) = head.split_first_chunk::<4>()?;
    let height = height.try_into().ok()?;
    (*version == VERSION).then(|| u64::from_be_bytes(height))
}

#[cfg(test)]
mod tests;
