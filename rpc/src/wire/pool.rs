//! The pool.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use types::CheckedTx;

use super::{TxObject, tx_object};
use crate::ports::{PoolCount, SenderContent};

/// Counts and bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct PoolStatus {
    /// Executable transactions, with those that wait for the base fee to fall.
    pub pending: u64,
    /// Transactions that wait for an earlier nonce.
    pub queued: u64,
    /// Bytes of payloads and signatures.
    pub bytes: u64,
    /// The same by type.
    pub types: BTreeMap<&'static str, PoolKindStatus>,
}

/// Counts and bytes of one type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct PoolKindStatus {
    /// Executable transactions.
    pub pending: u64,
    /// Transactions that wait for an earlier nonce.
    pub queued: u64,
    /// Bytes of payloads and signatures.
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

/// Waiting transactions by sender and nonce.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolContent {
    /// Executable.
    #[schemars(with = "BTreeMap<String, BTreeMap<u64, TxObject>>")]
    pub pending: BTreeMap<String, ByNonce>,
    /// Waiting for an earlier nonce.
    #[schemars(with = "BTreeMap<String, BTreeMap<u64, TxObject>>")]
    pub queued: BTreeMap<String, ByNonce>,
    /// From v7 on, waiting for the base fee to fall; left out if there are none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Option<BTreeMap<String, BTreeMap<u64, TxObject>>>")]
    pub waiting: BTreeMap<String, ByNonce>,
    /// What to ask with for the next senders; null at the end.
    pub next_cursor: Option<String>,
}

impl PoolContent {
    /// Adds what one sender has waiting; answers the bytes of the texts.
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

/// Waiting transactions of one sender by nonce.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SenderPool {
    /// Executable.
    #[schemars(with = "BTreeMap<u64, TxObject>")]
    pub pending: ByNonce,
    /// Waiting for an earlier nonce.
    #[schemars(with = "BTreeMap<u64, TxObject>")]
    pub queued: ByNonce,
    /// From v7 on, waiting for the base fee to fall; left out if there are none.
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
