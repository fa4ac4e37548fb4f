//! Miners and blobs.

use schemars::JsonSchema;
use serde::Serialize;
use types::{Address, Amount, Blob, Bond, Hash, Miner, MinerFigures, SubmitterFigures};

use super::{AddressText, AmountText, HashText};
use crate::ports::{MinerEntry, Stake};

/// A miner with what it has done.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MinerView {
    /// Fixed by the first registration.
    #[schemars(with = "HashText")]
    pub miner_id: Hash,
    /// The account.
    #[schemars(with = "AddressText")]
    pub address: Address,
    /// As registered last.
    pub name: String,
    /// As registered last.
    pub capabilities: Vec<String>,
    /// As registered last.
    pub model_info: String,
    /// Block time of the last registration.
    pub registered_at: u64,
    /// Runs claimed.
    pub runs_claimed: u64,
    /// Runs finished as completed.
    pub runs_completed: u64,
    /// Runs finished by the miner otherwise.
    pub runs_failed: u64,
    /// Claims that lapsed and runs that timed out.
    pub runs_timed_out: u64,
    /// Output tokens of recorded steps.
    pub tokens: u64,
    /// Rewards received.
    #[schemars(with = "AmountText")]
    pub earnings: Amount,
    /// Rewards that submitters refused; absent if there are none.
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

/// A blob's record.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlobView {
    /// Its id.
    pub blob_id: String,
    /// Who may add chunks.
    #[schemars(with = "AddressText")]
    pub owner: Address,
    /// As the owner says.
    pub content_type: String,
    /// The size.
    pub total_bytes: u64,
    /// How many chunks make it.
    pub total_chunks: u64,
    /// How many of them are there.
    pub received: u64,
    /// SHA-256 of the bytes.
    #[schemars(with = "HashText")]
    pub content_hash: Hash,
    /// Whether it is finalised.
    #[serde(rename = "final")]
    pub is_final: bool,
    /// Block time of SOCIAL_BLOB_INIT.
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

/// What an account has at stake as a miner, and what it has done as a submitter of runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BondView {
    /// The account.
    #[schemars(with = "AddressText")]
    pub address: Address,
    /// Its bond.
    #[schemars(with = "AmountText")]
    pub bonded: Amount,
    /// The part that is locked for runs.
    #[schemars(with = "AmountText")]
    pub locked: Amount,
    /// The part that is not.
    #[schemars(with = "AmountText")]
    pub free: Amount,
    /// What it took out of its bond and is not paid yet, the earliest first; at most 100 payments.
    pub unbonding: Vec<UnbondingView>,
    /// Its runs whose reward was held.
    pub rewards_held: u64,
    /// Rewards that it refused as a submitter.
    pub rewards_refused: u64,
}

/// A payment out of a bond.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnbondingView {
    /// When it is paid: block time in milliseconds.
    pub due: u64,
    /// How much.
    #[schemars(with = "AmountText")]
    pub amount: Amount,
}

impl BondView {
    /// The view of an account's stake.
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
