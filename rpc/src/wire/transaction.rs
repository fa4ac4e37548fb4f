//! Transactions: what became of them, and what they would do.

use std::collections::BTreeMap;

use jsonrpsee::types::ErrorObjectOwned;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use types::{Amount, Hash, Rejection};

use super::{AmountText, HashText, RunState, TxObject, tx_object};
use crate::error::{ErrorData, RpcError};
use crate::ports::{DroppedTx, Effects, IncludedTx, PoolTx, SubmitError};

/// A transaction that was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct SendAnswer {
    /// Its name.
    #[schemars(with = "HashText")]
    pub hash: Hash,
}

/// An error inside a result, shaped like the error of a call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ErrorView {
    /// The JSON-RPC number.
    pub code: i32,
    /// For people.
    pub message: String,
    /// For programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ErrorData>")]
    pub data: Option<Box<RawValue>>,
}

impl From<RpcError> for ErrorView {
    fn from(error: RpcError) -> Self {
        let error = ErrorObjectOwned::from(error);
        Self {
            code: error.code(),
            message: error.message().to_owned(),
            data: error.data().map(RawValue::to_owned),
        }
    }
}

/// One answer of `ombra_sendTransactions`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SendItem {
    /// It was taken.
    Sent(SendAnswer),
    /// It was not.
    Refused {
        /// Why.
        error: ErrorView,
    },
}

impl From<Result<Hash, SubmitError>> for SendItem {
    fn from(answer: Result<Hash, SubmitError>) -> Self {
        match answer {
            Ok(hash) => Self::Sent(SendAnswer { hash }),
            Err(error) => Self::Refused { error: RpcError::from(error).into() },
        }
    }
}

/// Where a transaction is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TxStatus {
    /// In the pool.
    Pending,
    /// In a block, for ever.
    Included,
    /// Given up by the pool.
    Dropped,
}

/// Why a transaction of the pool waits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct WaitView {
    /// The code with which the next block would refuse it, or one of its sender before it.
    pub code: &'static str,
    /// For people.
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
    /// The code of the refusal.
    pub code: &'static str,
    /// For people.
    pub message: String,
    /// When.
    pub at: u64,
}

impl From<&DroppedTx> for DropView {
    fn from(dropped: &DroppedTx) -> Self {
        let DroppedTx { reason, at, .. } = dropped;
        Self { code: reason.code().as_str(), message: reason.message(), at: *at }
    }
}

/// A transaction and what became of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TxView {
    /// Its name.
    #[schemars(with = "HashText")]
    pub hash: Hash,
    /// Where it is in its life.
    pub status: TxStatus,
    /// The signed object.
    #[schemars(with = "TxObject")]
    pub tx: Box<RawValue>,
    /// Included: the block's index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_index: Option<u64>,
    /// Included: the block.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub block_hash: Option<Hash>,
    /// Included: the place in the block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// Included: block time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<u64>,
    /// Included from v7 on: what it burned for its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub inclusion_fee: Option<Amount>,
    /// Pending from v7 on, while the base fee is too high for it: why it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<WaitView>,
    /// Dropped: why and when.
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

/// What a transaction would do.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Simulation {
    /// Whether it would be accepted.
    pub valid: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorView>,
    /// What it would change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<EffectsView>,
}

/// What a transaction would change.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EffectsView {
    /// Balances by address.
    pub balances: BTreeMap<String, BalanceChange>,
    /// The run that it is about, as it would be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunState>,
    /// What it burns.
    #[schemars(with = "AmountText")]
    pub burned: Amount,
}

/// A balance that would change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct BalanceChange {
    /// Now, with everything pending.
    #[schemars(with = "AmountText")]
    pub before: Amount,
    /// Then.
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
