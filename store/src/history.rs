//! Which accounts a transaction concerns.

use std::collections::BTreeMap;

use state::draft::Changes;
use state::error::StorageError;
use state::table::{Key, Table, decode_value};
use state::tables::Runs;
use types::{Address, Block, Body};

/// The positions of a block's transactions by account, ascending: an account sent it, a TRANSFER
/// names it as the receiver, or an AGENT_FINISH settles a run that it submitted.
pub(super) fn positions(
    block: &Block,
    changes: &Changes,
) -> Result<BTreeMap<Address, Vec<u32>>, StorageError> {
    let mut positions: BTreeMap<Address, Vec<u32>> = BTreeMap::new();
    for (tx, position) in block.transactions.iter().zip(0_u32..) {
        positions.entry(tx.from()).or_default().push(position);
        let other = match tx.body() {
            Body::Transfer(body) => Some(body.to),
            Body::AgentFinish(body) => {
                let run =
                    changes.get(&Runs::ID).and_then(|rows| rows.get(&body.agent_run_id.to_bytes()));
                let run = run.and_then(Option::as_deref).map(decode_value::<Runs>).transpose()?;
                run.map(|run| run.submitter)
            }
            Body::ChatTurn(_)
            | Body::AgentRequest(_)
            | Body::AgentClaim(_)
            | Body::AgentStep(_)
            | Body::AgentCancel(_)
            | Body::MinerRegister(_)
            | Body::BlobInit(_)
            | Body::BlobChunk(_)
            | Body::BlobFinalize(_)
            | Body::ValidatorVote(_) => None,
        };
        if let Some(other) = other.filter(|other| *other != tx.from()) {
            positions.entry(other).or_default().push(position);
        }
    }
    Ok(positions)
}
