//! Verifying a database that began with a snapshot: its blocks cannot be executed from genesis, and
//! the state before its first one is gone. What is there is checked against itself and against the
//! validators.

use std::fs;
use std::path::Path;

use state::block::{Parent, check_header, check_randomness};
use state::error::StorageError;
use state::{Rules, rules};
use types::{Forks, Header};

use super::error::{ReplayError, ToolError};
use super::execution::Replay;
use super::rebuild::read;
use super::{Progress, ahead};
use crate::certificates::V7Height;
use crate::database::Store;
use crate::meta::Tip;
use crate::snapshots::{MakeError, root_of_rows};

/// Checks every block from the earliest on (its form, its transactions, its parent, its certificate) and
/// the root of the state against the rows; answers the tip and how many transactions there are. `scratch`
/// must not exist and is removed again.
pub(super) fn check(
    store: &Store,
    scratch: &Path,
    replay: &Replay<'_>,
    progress: Progress<'_>,
) -> Result<(Tip, u64), ToolError> {
    let tip = store.tip()?;
    let transactions = blocks(store, replay, progress)?;
    let file = |source| ToolError::File { path: scratch.to_path_buf(), source };
    fs::create_dir_all(scratch).map_err(file)?;
    let root = root_of_rows(&store.snapshot(), scratch);
    fs::remove_dir_all(scratch).map_err(file)?;
    let found = root.map_err(|error| match error {
        MakeError::Storage(fault) => ToolError::Storage(fault),
        MakeError::File { path, source } => ToolError::File { path, source },
        MakeError::TooLong { .. }
        | MakeError::NoLinks
        | MakeError::Unusable { .. }
        | MakeError::Stopped => ToolError::Storage(StorageError::Inconsistent {
            what: "a row is longer than any row may be",
        }),
    })?;
    if found != tip.state_root {
        let (height, what, expected) = (tip.height, "the root of the rows", tip.state_root);
        return Err(ToolError::Mismatch { height, what, found, expected });
    }
    Ok((tip, transactions))
}

/// Checks the blocks; answers how many transactions they have.
fn blocks(store: &Store, replay: &Replay<'_>, progress: Progress<'_>) -> Result<u64, ToolError> {
    let (earliest, tip) = (store.earliest(), store.tip()?);
    let before = earliest.saturating_sub(1);
    let missing = ToolError::Missing { height: before };
    let first = store.snapshot().header(before)?.ok_or(missing)?;
    // From genesis or from the state, which has the height of v7 once that has been reached.
    let forks = Rules::at(&replay.chain, &store.snapshot(), tip.height)?.forks;
    let mut last = parent(&first.header, replay);
    let mut transactions = 0_u64;
    let encoded = (earliest..=tip.height).map(|height| read(store, height));
    ahead::run(replay, encoded, |block| {
        let header = block.block().header.clone();
        // The root that it carries was certified with it, and cannot be computed any more.
        let on = Parent { state_root: header.state_root, ..last };
        let refused = |source: ReplayError| ToolError::Replay {
            height: last.height.saturating_add(1),
            source: Box::new(source),
        };
        check_header(&replay.chain, &on, &header, &block.block().transactions)
            .map_err(|error| refused(error.into()))?;
        certified(store, replay, &header, (&forks, &on)).map_err(refused)?;
        transactions = transactions.saturating_add(header.tx_count);
        last = parent(&header, replay);
        progress(header.index.saturating_sub(before), tip.height.saturating_sub(before));
        Ok(())
    })?;
    if last.hash == tip.hash {
        return Ok(transactions);
    }
    let (height, found, expected) = (tip.height, tip.hash, last.hash);
    Err(ToolError::Mismatch { height, what: "the stored tip", found, expected })
}

/// What a block is to the next one, but for the root of the state after it.
fn parent(header: &Header, replay: &Replay<'_>) -> Parent {
    Parent {
        height: header.index,
        hash: header.hash(),
        timestamp: header.timestamp,
        state_root: header.state_root,
        randomness: header.randomness.map_or(replay.genesis_hash, |it| it.value),
        proposer: Some(header.proposer),
    }
}

/// The set of a block's height signed it, and its proposer's key made its randomness.
fn certified(
    store: &Store,
    replay: &Replay<'_>,
    header: &Header,
    (forks, on): (&Forks, &Parent),
) -> Result<(), ReplayError> {
    let (snapshot, height) = (store.snapshot(), header.index);
    let set = snapshot.validator_set(height)?;
    let set = set.as_ref().map(|set| set.members.as_slice());
    let certificate = snapshot.certificate(height)?.unwrap_or_default();
    let v7 = V7Height::Known(rules::v7_from(&replay.chain, &snapshot)?);
    let verified = replay.certificates.verify(v7, set, height, &header.hash(), &certificate);
    verified.map_err(|reason| ReplayError::Certificate { reason })?;
    let set = set.unwrap_or(&replay.chain.validators);
    Ok(check_randomness(forks, set, on, header)?)
}
