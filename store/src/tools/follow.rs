//! Blocks that others sent, executed over the tip of a database that is in use.

use super::ahead::{self, Supply};
use super::error::ToolError;
use super::execution::Replay;
use crate::database::Store;
use crate::meta::Tip;

/// Commits are synced together until they have so much work: what a crash of the machine costs then
/// takes about a second to get again.
const WORK_UNSYNCED_MAX: u64 = 20_000;
/// The work of a block without transactions, in transactions.
const WORK_OF_BLOCK: u64 = 8;

/// Executes blocks over the tip of `store`, in the order of `blocks`, which ends when there are no
/// more, and says when it has to wait for one: those before are executed meanwhile. They are checked ahead on other threads; every certificate, hash and root is verified
/// before a byte of its block is written. `committed` is called after each commit with the new tip
/// and the number of its transactions, before it is synced; everything is on the disk when this
/// returns. Nothing else may write to the store meanwhile.
///
/// # Errors
/// [`ToolError`]; the blocks before the one at fault are committed. [`ToolError::wrong_block`] says
/// whether it is the block's fault.
pub fn follow(
    store: &Store,
    replay: &Replay<'_>,
    blocks: impl Iterator<Item = Supply> + Send,
    mut committed: impl FnMut(&Tip, u64),
) -> Result<Tip, ToolError> {
    let mut tip = replay.begin(store)?;
    let mut unsynced = 0_u64;
    let outcome = ahead::run_as_they_come(replay, blocks.map(Ok), |block| {
        let transactions = block.block().header.tx_count;
        tip = replay.step(store, &tip, block)?;
        unsynced = unsynced.saturating_add(transactions).saturating_add(WORK_OF_BLOCK);
        if unsynced >= WORK_UNSYNCED_MAX {
            store.sync()?;
            unsynced = 0;
        }
        committed(&tip, transactions);
        Ok(())
    });
    store.sync()?;
    outcome.map(|()| tip)
}
