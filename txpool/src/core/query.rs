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

/// A part of the pool's content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page<T> {
    /// What is in it, by address.
    pub items: Vec<T>,
    /// The address to ask with for the next part, if there is one.
    pub next: Option<Address>,
}

/// A page ends with the sender that brings it to so many transactions, so that the pool's lock is held
/// for a fraction of a millisecond. One sender has at most [`crate::Config::sender_count_max`].
const PAGE_TXS: usize = 256;

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

    /// What the first senders after `after` have: of at most `senders_max`, and no more senders once
    /// there are [`PAGE_TXS`] transactions.
    pub(crate) fn content(
        &self,
        after: Option<Address>,
        senders_max: usize,
    ) -> Page<SenderContent> {
        let mut txs = 0_usize;
        let senders = self.senders.after(after).take(senders_max).take_while(|sender| {
            let has_room = txs < PAGE_TXS;
            txs = txs.saturating_add(sender.count());
            has_room
        });
        let items: Vec<_> = senders.map(|sender| self.content_of(sender)).collect();
        let last = items.last().map(|sender| sender.address);
        Page { items, next: self.if_more_after(last) }
    }

    /// The names of what the first senders after `after` have, by address and nonce: of whole senders,
    /// until there are [`PAGE_TXS`] or more.
    pub(crate) fn names(&self, after: Option<Address>) -> Page<(Address, Hash)> {
        let mut items = Vec::with_capacity(PAGE_TXS);
        let mut last = after;
        for sender in self.senders.after(after) {
            if items.len() >= PAGE_TXS {
                break;
            }
            let slots = sender.pending.iter().chain(sender.queued.values());
            let hashes = slots.filter_map(|slot| Some(self.entries.get(*slot)?.tx.hash()));
            items.extend(hashes.map(|hash| (sender.address, hash)));
            last = Some(sender.address);
        }
        Page { items, next: self.if_more_after(last) }
    }

    /// The address, if there are senders after it.
    fn if_more_after(&self, address: Option<Address>) -> Option<Address> {
        address.filter(|_| self.senders.after(address).next().is_some())
    }

    /// The first executable transactions, in the order in which they are to be executed.
    pub(crate) fn pending(&self, most: usize) -> Vec<CheckedTx> {
        let slots = self.order.iter().take(most).map(|ready| ready.slot);
        slots.filter_map(|slot| Some(self.entries.get(slot)?.tx.clone())).collect()
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
        self.tally.stats(self.senders.len())
    }
}
