//! What the pool answers.

use std::sync::Arc;

use types::{Account, Address, CheckedTx, Hash, Rejection, Transaction};

use super::contents::Contents;
use super::draft::Draft;
use super::history::History;
use crate::Dropped;
use crate::entries::{Entry, EntryPlace};
use crate::error::PoolFault;
use crate::senders::{Sender, SenderId};
use crate::slab::Slot;
use crate::tally::{Stats, Status};

/// What the pool knows of a transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// It is executable.
    Pending(CheckedTx),
    /// It is executable, but a block may not take it before the base fee has fallen.
    Waiting {
        /// The transaction.
        tx: CheckedTx,
        /// What it would be refused with in the next block.
        reason: Box<Rejection>,
    },
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
    /// Executable when the base fee has fallen.
    pub waiting: Vec<CheckedTx>,
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

/// Reads the pool.
pub(crate) struct Query<'a> {
    pub(super) contents: &'a Contents,
    pub(super) draft: &'a Draft,
    pub(super) history: &'a History,
}

impl<'a> Query<'a> {
    /// A pooled transaction.
    pub(crate) fn entry(&self, hash: Hash) -> Option<&'a Entry> {
        self.contents.entries().by_hash(hash)
    }

    pub(crate) fn find(&self, hash: Hash) -> Option<Found> {
        let Some(entry) = self.entry(hash) else {
            return self.history.dropped(hash).map(|dropped| Found::Dropped(Arc::clone(dropped)));
        };
        let tx = entry.tx.clone();
        Some(match entry.place {
            EntryPlace::Pending(_) => match self.why_waiting(entry) {
                Some(reason) => Found::Waiting { tx, reason: Box::new(reason) },
                None => Found::Pending(tx),
            },
            EntryPlace::Queued => Found::Queued(tx),
        })
    }

    /// The nonce of the first transaction of the sender that waits for the base fee to fall.
    fn first_waiting(&self, id: SenderId) -> Option<(u64, Slot)> {
        self.contents.market()?.first_waiting(id)
    }

    /// Why an executable transaction waits for the base fee to fall, if it does: for its own sake, or for
    /// that of one of its sender before it.
    fn why_waiting(&self, entry: &Entry) -> Option<Rejection> {
        let (nonce, slot) = self.first_waiting(entry.sender)?;
        if entry.tx.nonce() < nonce {
            return None;
        }
        let first = &self.contents.entries().get(slot)?.tx;
        let reason = self.draft.check_base_fee(first).err()?;
        Some(if nonce == entry.tx.nonce() { reason } else { reason.with("after", first.hash()) })
    }

    /// The pooled transaction that is this one, signature included, and so needs no check.
    pub(crate) fn recognise(&self, tx: &Transaction) -> Option<CheckedTx> {
        let pooled = &self.entry(tx.hash())?.tx;
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
        let senders =
            self.contents.senders().after(after).take(senders_max).take_while(|(_, sender)| {
                let has_room = txs < PAGE_TXS;
                txs = txs.saturating_add(sender.count());
                has_room
            });
        let items: Vec<_> = senders.map(|(id, sender)| self.content_of(id, sender)).collect();
        let last = items.last().map(|sender| sender.address);
        Page { items, next: self.if_more_after(last) }
    }

    /// The names of what the first senders after `after` have, by address and nonce: of whole senders,
    /// until there are [`PAGE_TXS`] or more.
    pub(crate) fn names(&self, after: Option<Address>) -> Page<(Address, Hash)> {
        let mut items = Vec::with_capacity(PAGE_TXS);
        let mut last = after;
        for (_, sender) in self.contents.senders().after(after) {
            if items.len() >= PAGE_TXS {
                break;
            }
            let slots = sender.pending.iter().chain(sender.queued.values());
            let hashes =
                slots.filter_map(|slot| Some(self.contents.entries().get(*slot)?.tx.hash()));
            items.extend(hashes.map(|hash| (sender.address, hash)));
            last = Some(sender.address);
        }
        Page { items, next: self.if_more_after(last) }
    }

    /// The address, if there are senders after it.
    fn if_more_after(&self, address: Option<Address>) -> Option<Address> {
        address.filter(|_| self.contents.senders().after(address).next().is_some())
    }

    /// The first executable transactions, in the order in which they are to be executed, with those that
    /// wait for the base fee to fall.
    pub(crate) fn pending(&self, most: usize) -> Vec<CheckedTx> {
        let slots = self.contents.order().iter().take(most).map(|ready| ready.slot);
        slots.filter_map(|slot| Some(self.contents.entries().get(slot)?.tx.clone())).collect()
    }

    pub(crate) fn content_from(&self, address: Address) -> SenderContent {
        match self.contents.senders().find(address) {
            Some((id, sender)) => self.content_of(id, sender),
            None => {
                let (pending, waiting, queued) = (Vec::new(), Vec::new(), Vec::new());
                SenderContent { address, pending, waiting, queued }
            }
        }
    }

    fn content_of(&self, id: SenderId, sender: &Sender) -> SenderContent {
        let tx = |slot: &Slot| Some(self.contents.entries().get(*slot)?.tx.clone());
        let first_waiting = self.first_waiting(id).map(|(nonce, _)| nonce);
        let executable = sender.pending.iter().filter_map(tx);
        let (waiting, pending) =
            executable.partition(|tx| first_waiting.is_some_and(|first| tx.nonce() >= first));
        SenderContent {
            address: sender.address,
            pending,
            waiting,
            queued: sender.queued.values().filter_map(tx).collect(),
        }
    }

    /// The account with everything executable applied. What waits for a phase of its call has its nonce,
    /// and so has what its sender sent after it.
    pub(crate) fn account(&self, address: Address) -> Result<Account, PoolFault> {
        let account = self.draft.account(address)?;
        let Some((_, sender)) = self.contents.senders().find(address) else { return Ok(account) };
        // What is to be executed again has its nonces, whatever comes of it.
        let mut nonce = account.nonce;
        if !sender.is_settled() {
            nonce = nonce.max(sender.next);
        }
        if self.contents.next_held(address) == Some(nonce) {
            let queued = sender.queued.range(nonce..).map(|(queued, _)| *queued);
            let last = queued.zip(nonce..).take_while(|(queued, at)| queued == at).last();
            nonce = last.map_or(nonce, |(last, _)| last.saturating_add(1));
        }
        Ok(Account { nonce, ..account })
    }

    /// How many transactions are executable and do not wait for the base fee to fall.
    pub(crate) fn pending_count(&self) -> usize {
        self.contents.order().len().saturating_sub(self.contents.waiting_count())
    }

    /// Whether there is something that the next block could take.
    pub(crate) fn has_offers(&self) -> bool {
        self.contents.has_offers()
    }

    pub(crate) fn status(&self) -> Status {
        self.contents.status().clone()
    }

    pub(crate) fn stats(&self) -> Stats {
        self.history.stats(self.contents)
    }
}
