//! The randomness of blocks.

use types::randomness::Input;

use super::Context;
use super::blocks::header;
use crate::error::RpcError;
use crate::wire::RandomnessView;

/// The randomness of a block, with what is needed to check it.
pub(crate) fn randomness(context: &Context, height: u64) -> Result<RandomnessView, RpcError> {
    let Context { facts, ports, .. } = context;
    let none = || RpcError::not_found("randomness of block", height);
    if height == 0 || height > ports.chain.tip().height {
        return Err(none());
    }
    let (block_hash, own) = header(ports, height)?;
    let randomness = own.randomness.ok_or_else(none)?;
    let before =
        if height > 1 { header(ports, height.saturating_sub(1))?.1.randomness } else { None };
    let previous = before.map_or(facts.genesis_hash, |before| before.value);
    let input = Input { chain_id: &facts.chain_id, previous, height };
    let validators = ports.chain.validators(height)?.unwrap_or_default();
    let proposer = validators.iter().find(|one| one.address == own.proposer);
    let public_key = proposer.map(|one| one.public_key).ok_or_else(|| {
        tracing::error!(height, "the proposer of a block is not one of its validators");
        RpcError::Internal
    })?;
    Ok(RandomnessView {
        height,
        block_hash,
        value: randomness.value,
        proof: randomness.proof,
        proposer: own.proposer,
        public_key,
        input: input.message(),
    })
}
