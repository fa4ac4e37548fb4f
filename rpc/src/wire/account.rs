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
    /// The account's address.
    #[schemars(with = "AddressText")]
    pub address: Address,
    /// The amount that the account can spend.
    #[schemars(with = "AmountText")]
    pub balance: Amount,
    /// The balance in OMBRA, with six decimals.
    pub balance_ombra: String,
    /// The nonce of the account's next transaction, as of the latest block.
    pub nonce: u64,
    /// The nonce of the account's next transaction, counting its pending transactions.
    pub pending_nonce: u64,
    /// The amount that the account can spend after its pending transactions.
    #[schemars(with = "AmountText")]
    pub pending_balance: Amount,
    /// Whether the account has an entry in the miner directory.
    pub is_miner: bool,
    /// The account's entry in the miner directory.
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

/// The direction of a transaction, seen from an account.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Direction {
    /// The account sent the transaction.
    Out,
    /// Another account sent the transaction.
    In,
    /// The account transferred money to itself.
    #[serde(rename = "self")]
    Own,
}

/// A transaction in the list of an account.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountTx {
    /// The hash of the transaction.
    #[schemars(with = "HashText")]
    pub hash: Hash,
    /// The type of the transaction.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The direction of the transaction, seen from the account.
    pub direction: Direction,
    /// The address of the sender.
    #[schemars(with = "AddressText")]
    pub from: Address,
    /// The sender's nonce.
    pub nonce: u64,
    /// The index of the block.
    pub block_index: u64,
    /// The position of the transaction in its block, starting at 0.
    pub position: u32,
    /// The time of the block, in milliseconds since 1970.
    pub timestamp: u64,
    /// The receiver. Only for a TRANSFER.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AddressText>")]
    pub to: Option<Address>,
    /// The amount that the receiver gets. Only for a TRANSFER.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub amount: Option<Amount>,
    /// The fee, which the block's proposer gets. Only for a TRANSFER.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub fee: Option<Amount>,
    /// The id of the run. Only for AGENT transactions that are about a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub agent_run_id: Option<Hash>,
}

impl AccountTx {
    /// The entry for `included` in the list of `account`.
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
