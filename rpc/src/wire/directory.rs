//! Miners and blobs.

use schemars::JsonSchema;
use serde::Serialize;
use types::{Address, Amount, Blob, Bond, Hash, Miner, MinerFigures, SubmitterFigures};

use super::{AddressText, AmountText, HashText};
use crate::ports::{MinerEntry, Stake};

/// An entry of the miner directory, with the miner's statistics.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MinerView {
    /// The miner's id, which its first registration fixes.
    #[schemars(with = "HashText")]
    pub miner_id: Hash,
    /// The address of the miner.
    #[schemars(with = "AddressText")]
    pub address: Address,
    /// The miner's display name, as last registered.
    pub name: String,
    /// What the miner can do, as last registered.
    pub capabilities: Vec<String>,
    /// The model that the miner uses, as last registered.
    pub model_info: String,
    /// The block time of the last registration.
    pub registered_at: u64,
    /// The number of runs that the miner has claimed.
    pub runs_claimed: u64,
    /// The number of runs that the miner has ended as `completed`.
    pub runs_completed: u64,
    /// The number of runs that the miner has ended with any other status except `timeout`.
    pub runs_failed: u64,
    /// The number of the miner's runs that timed out, and of its claims that lapsed or that it gave
    /// up.
    pub runs_timed_out: u64,
    /// The number of output tokens in the miner's recorded steps.
    pub tokens: u64,
    /// The total rewards that the miner has received.
    #[schemars(with = "AmountText")]
    pub earnings: Amount,
    /// The number of rewards that submitters refused. Absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewards_refused: Option<u64>,
}

impl From<MinerEntry> for MinerView {
    fn from(entry: MinerEntry) -> Self {
        let MinerEntry { miner, figures } = entry;
        let Miner { miner_id, address, name, capabilities, model_info, registered_at } = miner;
        let MinerFigures { claimed, completed, failed, timed_out, tokens, earnings, refused } =
            figures;
        Self {
            miner_id,
            address,
            name,
            capabilities,
            model_info,
            registered_at,
            runs_claimed: claimed,
            runs_completed: completed,
            runs_failed: failed,
            runs_timed_out: timed_out,
            tokens,
            earnings,
            rewards_refused: (refused > 0).then_some(refused),
        }
    }
}

/// The record of a blob.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlobView {
    /// The id of the blob.
    pub blob_id: String,
    /// The address of the owner, who alone may add chunks.
    #[schemars(with = "AddressText")]
    pub owner: Address,
    /// The media type that the owner states.
    pub content_type: String,
    /// The size of the blob in bytes.
    pub total_bytes: u64,
    /// The number of chunks in the complete blob.
    pub total_chunks: u64,
    /// The number of chunks that have arrived.
    pub received: u64,
    /// The SHA-256 that the blob's bytes must have.
    #[schemars(with = "HashText")]
    pub content_hash: Hash,
    /// Whether the blob is finalized.
    #[serde(rename = "final")]
    pub is_final: bool,
    /// The block time of the SOCIAL_BLOB_INIT.
    pub created_at: u64,
}

impl From<Blob> for BlobView {
    fn from(blob: Blob) -> Self {
        let Blob {
            blob_id,
            owner,
            content_type,
            total_bytes,
            total_chunks,
            received,
            content_hash,
            is_final,
            created_at,
            ..
        } = blob;
        Self {
            blob_id,
            owner,
            content_type,
            total_bytes,
            total_chunks,
            received,
            content_hash,
            is_final,
            created_at,
        }
    }
}

/// The bond of a miner, and the statistics of a submitter of runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BondView {
    /// The address of the account.
    #[schemars(with = "AddressText")]
    pub address: Address,
    /// The account's bond.
    #[schemars(with = "AmountText")]
    pub bonded: Amount,
    /// The part of the bond that is locked for runs and calls.
    #[schemars(with = "AmountText")]
    pub locked: Amount,
    /// The part of the bond that is not locked.
    #[schemars(with = "AmountText")]
    pub free: Amount,
    /// Amounts that the account has withdrawn from its bond and that the chain has not paid out
    /// yet; at most 100, the earliest first.
    pub unbonding: Vec<UnbondingView>,
    /// The number of the account's own runs whose rewards were held.
    pub rewards_held: u64,
    /// The number of rewards that the account refused as a submitter.
    pub rewards_refused: u64,
}

/// An amount withdrawn from a bond and not paid out yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnbondingView {
    /// The time at which the chain pays it out, in milliseconds since 1970.
    pub due: u64,
    /// The amount.
    #[schemars(with = "AmountText")]
    pub amount: Amount,
}

impl BondView {
    /// The view of an account's bond and statistics.
    #[must_use]
    pub fn new(address: Address, stake: Stake) -> Self {
        let Stake { bond, unbonding, submitter } = stake;
        let Bond { bonded, locked } = bond;
        let SubmitterFigures { held, refused } = submitter;
        let unbonding = unbonding.into_iter();
        Self {
            address,
            bonded,
            locked,
            free: bond.free(),
            unbonding: unbonding.map(|(due, amount)| UnbondingView { due, amount }).collect(),
            rewards_held: held,
            rewards_refused: refused,
        }
    }
}
