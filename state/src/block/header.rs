//! What a header must say on top of its parent.

use types::block::merkle_root;
use types::randomness::Input;
use types::{CheckedTx, Forks, Hash, Header, Params, Randomness, SetMember};

use super::error::BlockError;
use super::parent::Parent;
use crate::chain::ChainRules;
use crate::error::StorageError;
use crate::validators;

/// Whether a proposal's timestamp is at most `maxClockSkewMs` ahead of this node's clock. Not a
/// rule for blocks that are final.
///
/// # Errors
/// [`BlockError::Header`] if it is further ahead.
pub fn check_clock(timestamp: u64, now_ms: u64, params: &Params) -> Result<(), BlockError> {
    let latest = now_ms.saturating_add(params.max_clock_skew_ms);
    if timestamp <= latest {
        return Ok(());
    }
    let expected = format!("at most {latest}, the clock and maxClockSkewMs");
    Err(BlockError::Header { field: "timestamp", got: timestamp.to_string(), expected })
}

pub(super) const LAST_HEIGHT: StorageError =
    StorageError::Inconsistent { what: "the height overflows" };

/// The root of the transactions of a block.
pub(super) fn tx_root(transactions: &[CheckedTx]) -> Hash {
    merkle_root(&transactions.iter().map(|tx| tx.hash()).collect::<Vec<_>>())
}

/// What a header must be on top of its parent.
///
/// # Errors
/// [`BlockError`] that names the field.
pub fn check_header(
    chain: &ChainRules,
    parent: &Parent,
    header: &Header,
    transactions: &[CheckedTx],
) -> Result<(), BlockError> {
    let index = parent.height.checked_add(1).ok_or(LAST_HEIGHT)?;
    require("chainId", &header.chain_id, &chain.chain_id)?;
    require("index", &header.index, &index)?;
    require("previousHash", &header.previous_hash, &parent.hash)?;
    if header.timestamp <= parent.timestamp {
        let expected = format!("more than {}, the previous block's", parent.timestamp);
        let got = header.timestamp.to_string();
        return Err(BlockError::Header { field: "timestamp", got, expected });
    }
    require("stateRoot", &header.state_root, &parent.state_root)?;
    let count = u64::try_from(transactions.len()).unwrap_or(u64::MAX);
    require("txCount", &header.tx_count, &count)?;
    require("txRoot", &header.tx_root, &tx_root(transactions))
}

/// What a header must say of randomness: nothing before fork v7, and then what the key proves that its
/// proposer has in `set`, that of its height (docs/protocol.md section 6.1). Costs about as much as
/// three signatures and is charged to no budget: a block has one.
///
/// # Errors
/// [`BlockError::Header`] that names the member.
pub fn check_randomness(
    forks: &Forks,
    set: &[SetMember],
    parent: &Parent,
    header: &Header,
) -> Result<(), BlockError> {
    let refused = |field, got: &dyn std::fmt::Display, expected: &str| {
        Err(BlockError::Header { field, got: got.to_string(), expected: expected.to_owned() })
    };
    let is_v7 = header.index >= forks.v7_from();
    let Randomness { value, proof } = match &header.randomness {
        Some(randomness) if is_v7 => randomness,
        Some(randomness) => return refused("randomness", &randomness.value, "none before fork v7"),
        None if is_v7 => return refused("randomness", &"missing", "it, from fork v7 on"),
        None => return Ok(()),
    };
    let Some(key) = validators::key_of(set, &header.proposer) else {
        return refused("proposer", &header.proposer, "a validator of the height");
    };
    match input(&header.chain_id, parent, header.index).verify(&key, proof) {
        Some(proved) => require("randomness", value, &proved),
        None => refused("randomnessProof", proof, "a proof of the proposer's key"),
    }
}

pub(super) const fn input<'a>(chain_id: &'a str, parent: &Parent, height: u64) -> Input<'a> {
    Input { chain_id, previous: parent.randomness, height }
}

pub(crate) fn require<T: PartialEq + std::fmt::Display>(
    field: &'static str,
    got: &T,
    expected: &T,
) -> Result<(), BlockError> {
    if got == expected {
        return Ok(());
    }
    Err(BlockError::Header { field, got: got.to_string(), expected: expected.to_string() })
}
