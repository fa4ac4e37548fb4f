//! Accounts and their transactions.

use schemars::JsonSchema;
use serde::Serialize;
use types::{Account, Address, Amount, Body, Hash};

use super::{AddressText, AmountText, HashText, MinerView};
use crate::ports::{IncludedTx, PendingAccount};

/// An account.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountView {
    /// The address.
    #[schemars(with = "AddressText")]
    pub address: Address,
    /// What it can spend.
    #[schemars(with = "AmountText")]
    pub balance: Amount,
    /// The same in OMBRA with six decimals.
    pub balance_ombra: String,
    /// The nonce of its next transaction, by the latest block.
    pub nonce: u64,
    /// The nonce of its next transaction, pending ones counted.
    pub pending_nonce: u64,
    /// What it can spend after its pending transactions.
    #[schemars(with = "AmountText")]
    pub pending_balance: Amount,
    /// Whether it is in the miner directory.
    pub is_miner: bool,
    /// Its entry there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub miner: Option<MinerView>,
}

impl AccountView {
    /// The view of an account.
    #[must_use]
    pub fn new(
        address: Address,
        account: Account,
        pending: PendingAccount,
        miner: Option<MinerView>,
    ) -> Self {
        Self {
            address,
            balance: account.balance,
            balance_ombra: account.balance.ombra(),
            nonce: account.nonce,
            pending_nonce: pending.nonce,
            pending_balance: pending.balance,
            is_miner: miner.is_some(),
            miner,
        }
    }
}

/// How a transaction concerns an account.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Direction {
    /// Sent by it.
    Out,
    /// Sent by another.
    In,
    /// A transfer to itself.
    #[serde(rename = "self")]
    Own,
}

/// A transaction in an account's list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountTx {
    /// Its name.
    #[schemars(with = "HashText")]
    pub hash: Hash,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// How it concerns the account.
    pub direction: Direction,
    /// The sender.
    #[schemars(with = "AddressText")]
    pub from: Address,
    /// The sender's nonce.
    pub nonce: u64,
    /// The block's index.
    pub block_index: u64,
    /// The place in the block.
    pub position: u32,
    /// Block time.
    pub timestamp: u64,
    /// TRANSFER: the receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AddressText>")]
    pub to: Option<Address>,
    /// TRANSFER: what the receiver gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub amount: Option<Amount>,
    /// TRANSFER: what the proposer gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub fee: Option<Amount>,
    /// AGENT transactions: the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub agent_run_id: Option<Hash>,
}

impl AccountTx {
    /// The entry of `included` in the list of `account`.
    #[must_use]
    pub fn new(included: &IncludedTx, account: Address) -> Self {
        let IncludedTx { tx, location, timestamp, .. } = included;
        #[expect(clippy::wildcard_enum_match_arm, reason = "only a transfer has a receiver")]
        let transfer = match tx.body() {
            Body::Transfer(transfer) => Some(transfer),
            _ => None,
        };
        let to = transfer.map(|transfer| transfer.to.address);
        let direction = match (tx.from() == account, to == Some(account)) {
            (true, true) => Direction::Own,
            (true, false) => Direction::Out,
            (false, _) => Direction::In,
        };
        Self {
            hash: tx.hash(),
            kind: tx.body().type_name(),
            direction,
            from: tx.from(),
            nonce: tx.nonce(),
            block_index: location.height,
            position: location.position,
            timestamp: *timestamp,
            to,
            amount: transfer.map(|transfer| transfer.amount),
            fee: transfer.map(|transfer| transfer.fee),
            agent_run_id: tx.body().agent_run_id(),
        }
    }
}
