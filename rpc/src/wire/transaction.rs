//! Transactions: their status, and what they would do.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use types::{Amount, Hash, Rejection};

use super::{AmountText, HashText, RunState, TxObject, tx_object};
use crate::error::{ErrorData, RpcError};
use crate::ports::{DroppedTx, Effects, IncludedTx, PoolTx, SubmitError};

/// The answer to an accepted transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct SendAnswer {
    /// The hash of the transaction.
    #[schemars(with = "HashText")]
    pub hash: Hash,
}

/// An error within a result, in the form of a JSON-RPC error.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ErrorView {
    /// The JSON-RPC error number.
    pub code: i32,
    /// The message, for people.
    pub message: String,
    /// The details, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ErrorData>")]
    pub data: Option<Box<RawValue>>,
}

impl From<RpcError> for ErrorView {
    fn from(error: RpcError) -> Self {
        Self {
            code: error.number(),
            message: error.to_string(),
            data: error.data().and_then(|data| to_raw_value(&data).ok()),
        }
    }
}

/// One entry of the result of `ombra_sendTransactions`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SendItem {
    /// The pool accepted the transaction.
    Sent(SendAnswer),
    /// The pool rejected the transaction.
    Rejected {
        /// Why the pool rejected the transaction.
        error: ErrorView,
    },
}

impl From<Result<Hash, SubmitError>> for SendItem {
    fn from(answer: Result<Hash, SubmitError>) -> Self {
        match answer {
            Ok(hash) => Self::Sent(SendAnswer { hash }),
            Err(error) => Self::Rejected { error: RpcError::from(error).into() },
        }
    }
}

/// The status of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TxStatus {
    /// The transaction is in the pool.
    Pending,
    /// The transaction is in a block, which is final.
    Included,
    /// The pool dropped the transaction.
    Dropped,
}

/// Why a transaction waits in the pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct WaitView {
    /// The code with which the next block would reject the transaction, or an earlier transaction
    /// of its sender.
    pub code: &'static str,
    /// The message, for people.
    pub message: String,
}

impl From<&Rejection> for WaitView {
    fn from(reason: &Rejection) -> Self {
        Self { code: reason.code().as_str(), message: reason.message() }
    }
}

/// Why and when a transaction was dropped.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct DropView {
    /// The code of the rejection.
    pub code: &'static str,
    /// The message, for people.
    pub message: String,
    /// When the pool dropped the transaction, in milliseconds since 1970.
    pub at: u64,
}

impl From<&DroppedTx> for DropView {
    fn from(dropped: &DroppedTx) -> Self {
        let DroppedTx { reason, at, .. } = dropped;
        Self { code: reason.code().as_str(), message: reason.message(), at: *at }
    }
}

/// A transaction and its status.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TxView {
    /// The hash of the transaction.
    #[schemars(with = "HashText")]
    pub hash: Hash,
    /// The status of the transaction.
    pub status: TxStatus,
    /// The signed transaction object.
    #[schemars(with = "TxObject")]
    pub tx: Box<RawValue>,
    /// The index of the block. Only if the status is `included`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_index: Option<u64>,
    /// The hash of the block. Only if the status is `included`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub block_hash: Option<Hash>,
    /// The position of the transaction in its block, starting at 0. Only if the status is
    /// `included`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// The time of the block, in milliseconds since 1970. Only if the status is `included`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<u64>,
    /// The inclusion fee that the transaction burned. Only in blocks from v7 on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub inclusion_fee: Option<Amount>,
    /// Why the transaction waits. Only from v7 on, and only while the base fee is too high for a
    /// `pending` transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<WaitView>,
    /// Why and when the pool dropped the transaction. Only if the status is `dropped`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped: Option<DropView>,
}

impl From<&IncludedTx> for TxView {
    fn from(included: &IncludedTx) -> Self {
        let IncludedTx { tx, location, block_hash, timestamp } = included;
        Self {
            hash: tx.hash(),
            status: TxStatus::Included,
            tx: tx_object(tx),
            block_index: Some(location.height),
            block_hash: Some(*block_hash),
            position: Some(location.position),
            timestamp: Some(*timestamp),
            inclusion_fee: None,
            waiting: None,
            dropped: None,
        }
    }
}

impl From<&PoolTx> for TxView {
    fn from(pooled: &PoolTx) -> Self {
        let (tx, status) = match pooled {
            PoolTx::Pending(tx) | PoolTx::Waiting { tx, .. } => (tx, TxStatus::Pending),
            PoolTx::Dropped(dropped) => (&dropped.tx, TxStatus::Dropped),
        };
        let (waiting, dropped) = match pooled {
            PoolTx::Pending(_) => (None, None),
            PoolTx::Waiting { reason, .. } => (Some(WaitView::from(&**reason)), None),
            PoolTx::Dropped(dropped) => (None, Some(DropView::from(&**dropped))),
        };
        Self {
            hash: tx.hash(),
            status,
            tx: tx_object(tx),
            block_index: None,
            block_hash: None,
            position: None,
            timestamp: None,
            inclusion_fee: None,
            waiting,
            dropped,
        }
    }
}

/// What a transaction would do now.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Simulation {
    /// Whether the pool would accept the transaction.
    pub valid: bool,
    /// Why the pool would reject the transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorView>,
    /// What the transaction would change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<EffectsView>,
}

/// What a transaction would change.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EffectsView {
    /// The balances that would change, by address.
    pub balances: BTreeMap<String, BalanceChange>,
    /// The record of the run after the transaction, if the transaction is about a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunState>,
    /// The amount that the transaction would burn.
    #[schemars(with = "AmountText")]
    pub burned: Amount,
}

/// A balance before and after a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct BalanceChange {
    /// The balance now, counting all pending transactions.
    #[schemars(with = "AmountText")]
    pub before: Amount,
    /// The balance after the transaction.
    #[schemars(with = "AmountText")]
    pub after: Amount,
}

impl From<Effects> for Simulation {
    fn from(effects: Effects) -> Self {
        let Effects { balances, run, burned } = effects;
        let change = |(address, before, after): (types::Address, _, _)| {
            (address.to_string(), BalanceChange { before, after })
        };
        let effects = EffectsView {
            balances: balances.into_iter().map(change).collect(),
            run: run.as_ref().map(RunState::from),
            burned,
        };
        Self { valid: true, error: None, effects: Some(effects) }
    }
}

impl From<Rejection> for Simulation {
    fn from(rejection: Rejection) -> Self {
        let error = ErrorView::from(RpcError::from(rejection));
        Self { valid: false, error: Some(error), effects: None }
    }
}
