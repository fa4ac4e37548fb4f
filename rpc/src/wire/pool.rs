//! The contents of the pool.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use types::CheckedTx;

use super::{TxObject, tx_object};
use crate::ports::{PoolCount, SenderContent};

/// The number and size of the waiting transactions.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct PoolStatus {
    /// The number of executable transactions, including those that wait for the base fee to fall.
    pub pending: u64,
    /// The number of transactions that wait for an earlier nonce.
    pub queued: u64,
    /// The size of their payloads and signatures in bytes.
    pub bytes: u64,
    /// The same figures for each transaction type.
    pub types: BTreeMap<&'static str, PoolKindStatus>,
}

/// The number and size of the waiting transactions of one type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct PoolKindStatus {
    /// The number of executable transactions, including those that wait for the base fee to fall.
    pub pending: u64,
    /// The number of transactions that wait for an earlier nonce.
    pub queued: u64,
    /// The size of their payloads and signatures in bytes.
    pub bytes: u64,
}

impl FromIterator<(&'static str, PoolCount)> for PoolStatus {
    fn from_iter<I: IntoIterator<Item = (&'static str, PoolCount)>>(counts: I) -> Self {
        let mut status = Self::default();
        for (kind, PoolCount { pending, queued, bytes }) in counts {
            status.pending = status.pending.saturating_add(pending);
            status.queued = status.queued.saturating_add(queued);
            status.bytes = status.bytes.saturating_add(bytes);
            status.types.insert(kind, PoolKindStatus { pending, queued, bytes });
        }
        status
    }
}

/// Transactions by nonce.
type ByNonce = BTreeMap<u64, Box<RawValue>>;

/// The waiting transactions by sender and nonce.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolContent {
    /// Executable transactions.
    #[schemars(with = "BTreeMap<String, BTreeMap<u64, TxObject>>")]
    pub pending: BTreeMap<String, ByNonce>,
    /// Transactions that wait for an earlier nonce.
    #[schemars(with = "BTreeMap<String, BTreeMap<u64, TxObject>>")]
    pub queued: BTreeMap<String, ByNonce>,
    /// Transactions that wait for the base fee to fall. Absent if there are none; present from v7
    /// on.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Option<BTreeMap<String, BTreeMap<u64, TxObject>>>")]
    pub waiting: BTreeMap<String, ByNonce>,
    /// The cursor of the next page of senders. `null` at the end of the list.
    pub next_cursor: Option<String>,
}

impl PoolContent {
    /// Adds the waiting transactions of one sender; returns the size of their texts in bytes.
    pub(crate) fn add(&mut self, content: &SenderContent) -> usize {
        let SenderContent { sender, pending, waiting, queued } = content;
        let lists = [
            (pending, &mut self.pending),
            (waiting, &mut self.waiting),
            (queued, &mut self.queued),
        ];
        for (txs, to) in lists {
            if !txs.is_empty() {
                to.insert(sender.to_string(), by_nonce(txs));
            }
        }
        pending.iter().chain(waiting).chain(queued).map(|tx| tx.signed_bytes()).sum()
    }
}

/// The waiting transactions of one sender by nonce.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SenderPool {
    /// Executable transactions.
    #[schemars(with = "BTreeMap<u64, TxObject>")]
    pub pending: ByNonce,
    /// Transactions that wait for an earlier nonce.
    #[schemars(with = "BTreeMap<u64, TxObject>")]
    pub queued: ByNonce,
    /// Transactions that wait for the base fee to fall. Absent if there are none; present from v7
    /// on.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Option<BTreeMap<u64, TxObject>>")]
    pub waiting: ByNonce,
}

impl From<SenderContent> for SenderPool {
    fn from(content: SenderContent) -> Self {
        let SenderContent { sender: _, pending, waiting, queued } = content;
        Self { pending: by_nonce(&pending), queued: by_nonce(&queued), waiting: by_nonce(&waiting) }
    }
}

fn by_nonce(txs: &[CheckedTx]) -> ByNonce {
    txs.iter().map(|tx| (tx.nonce(), tx_object(tx))).collect()
}
