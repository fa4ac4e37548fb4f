//! What the pool answers.

use std::sync::Arc;

use types::{Address, CheckedTx, Hash, Transaction};

use super::Core;
use crate::Dropped;
use crate::entries::Place;
use crate::senders::Sender;
use crate::slab::Slot;
use crate::tally::{Stats, Status};

/// What the pool knows of a transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// It is executable.
    Pending(CheckedTx),
    /// It waits for a nonce.
    Queued(CheckedTx),
    /// It was accepted and then dropped, not long ago.
    Dropped(Arc<Dropped>),
}

/// The transactions of one sender, each list in the order of nonces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SenderContent {
    /// The sender.
    pub address: Address,
    /// Executable.
    pub pending: Vec<CheckedTx>,
    /// Waiting for a nonce.
    pub queued: Vec<CheckedTx>,
}

impl Core {
    pub(crate) fn find(&self, hash: Hash) -> Option<Found> {
        let Some(entry) = self.entries.by_hash(hash) else {
            return self.dropped.get(hash).map(|dropped| Found::Dropped(Arc::clone(dropped)));
        };
        let tx = entry.tx.clone();
        Some(match entry.place {
            Place::Pending(_) => Found::Pending(tx),
            Place::Queued => Found::Queued(tx),
        })
    }

    /// The pooled transaction that is this one, signature included, and so needs no check.
    pub(crate) fn recognise(&self, tx: &Transaction) -> Option<CheckedTx> {
        let pooled = &self.entries.by_hash(tx.hash())?.tx;
        let is_same =
            pooled.signature() == tx.signature() && pooled.stated_hash() == tx.stated_hash();
        is_same.then(|| pooled.clone())
    }

    /// What at most `senders_max` senders have, by address, from the first after `after`.
    pub(crate) fn content(&self, after: Option<Address>, senders_max: usize) -> Vec<SenderContent> {
        let mut senders: Vec<&Sender> = self
            .senders
            .iter()
            .map(|(_, sender)| sender)
            .filter(|sender| after.is_none_or(|after| sender.address > after))
            .collect();
        senders.sort_unstable_by_key(|sender| sender.address);
        senders.truncate(senders_max);
        senders.into_iter().map(|sender| self.content_of(sender)).collect()
    }

    pub(crate) fn content_from(&self, address: Address) -> SenderContent {
        match self.senders.find(address) {
            Some((_, sender)) => self.content_of(sender),
            None => SenderContent { address, pending: Vec::new(), queued: Vec::new() },
        }
    }

    fn content_of(&self, sender: &Sender) -> SenderContent {
        let tx = |slot: &Slot| Some(self.entries.get(*slot)?.tx.clone());
        SenderContent {
            address: sender.address,
            pending: sender.pending.iter().filter_map(tx).collect(),
            queued: sender.queued.values().filter_map(tx).collect(),
        }
    }

    pub(crate) fn status(&self) -> Status {
        self.tally.status().clone()
    }

    pub(crate) fn stats(&self) -> Stats {
        self.tally.stats(self.senders.iter().count())
    }
}
