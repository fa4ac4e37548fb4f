//! Executing the chain again, into another database.

use super::error::ToolError;
use super::execution::{EncodedBlock, Replay};
use super::{Progress, ahead};
use crate::database::Store;
use crate::meta::Tip;

/// Executes the blocks of `source` up to `height` into `target`, which may have the first of them
/// already. Every hash, root and rule is checked on the way. Answers the target's tip, which is on
/// the disk.
///
/// # Errors
/// [`ToolError`] says which block is wrong, and how.
pub fn rebuild(
    source: &Store,
    target: &Store,
    height: u64,
    replay: &Replay<'_>,
    progress: Progress<'_>,
) -> Result<Tip, ToolError> {
    rebuild_counting(source, target, height, replay, progress).map(|(tip, _)| tip)
}

/// [`rebuild`], which answers how many transactions it executed, too.
pub(super) fn rebuild_counting(
    source: &Store,
    target: &Store,
    height: u64,
    replay: &Replay<'_>,
    progress: Progress<'_>,
) -> Result<(Tip, u64), ToolError> {
    let mut tip = replay.begin(target)?;
    let mut transactions = 0_u64;
    let blocks = (tip.height.saturating_add(1)..=height).map(|height| read(source, height));
    ahead::run(replay, blocks, |block| {
        progress(tip.height, height);
        let stated = block.stated_hash();
        transactions = transactions.saturating_add(block.block().header.tx_count);
        tip = replay.step(target, &tip, block)?;
        match stated.filter(|stated| *stated != tip.hash) {
            None => Ok(()),
            Some(found) => {
                let (height, what, expected) = (tip.height, "the stored hash", tip.hash);
                Err(ToolError::Mismatch { height, what, found, expected })
            }
        }
    })?;
    target.sync()?;
    progress(height, height);
    Ok((tip, transactions))
}

pub(super) fn read(source: &Store, height: u64) -> Result<EncodedBlock, ToolError> {
    let missing = || ToolError::Missing { height };
    let snapshot = source.snapshot();
    let (hash, bytes) = snapshot.hash_and_bytes(height)?.ok_or_else(missing)?;
    let certificate = snapshot.certificate(height)?.ok_or_else(missing)?;
    Ok(EncodedBlock { height, bytes, certificate, stated_hash: Some(hash) })
}
