//! What of the pool is in the market.

use types::{Address, Body, CheckedTx, Hash};

use super::Contents;
use crate::core::draft::Draft;
use crate::entries::{Entry, EntryPlace};
use crate::market::{Market, Offer, is_favoured, rate};
use crate::senders::SenderId;
use crate::slab::Slot;
use crate::tally::Volume;

/// Of what is about a run, so many transactions at most are offered again when its request is in a block.
const REOPENED_MAX: usize = 64;

impl Contents {
    /// Follows the base fee. Tips decide from now on, or do not any more.
    pub(in crate::core) fn follow_base_fee(&mut self, draft: &Draft) {
        match (&mut self.market, draft.base_fee()) {
            (Some(market), Some(base_fee)) => return market.follow(base_fee),
            (None, None) => return,
            (Some(_), None) | (None, Some(_)) => {}
        }
        self.open_market(draft);
        let pending: Vec<(SenderId, Slot)> = self
            .senders
            .iter()
            .flat_map(|(id, sender)| sender.pending.iter().map(move |slot| (id, *slot)))
            .collect();
        for (id, slot) in pending {
            self.offer(id, slot, draft);
        }
    }

    /// A block had room for more than it has.
    pub(in crate::core) const fn count_roomy_block(&mut self) {
        self.roomy_blocks = self.roomy_blocks.saturating_add(1);
    }

    /// A market without anything in it, if there is a base fee.
    pub(super) fn open_market(&mut self, draft: &Draft) {
        self.market = draft.base_fee().map(|base_fee| Market::at(base_fee, self.size));
    }

    /// An executable transaction is in the market, after the others of its sender.
    pub(super) fn offer(&mut self, id: SenderId, slot: Slot, draft: &Draft) {
        if let Some(market) = &mut self.market
            && let Some(Entry { tx, arrival, .. }) = self.entries.get(slot)
        {
            let (nonce, arrival, bytes) = (tx.nonce(), *arrival, tx.encoded_bytes());
            let (rate, is_favoured) = (rate(tx), is_favoured(tx));
            let highest = draft.highest_base_fee(tx);
            market.push(id, Offer { slot, nonce, arrival, bytes, rate, highest, is_favoured });
        }
    }

    /// A transaction is in the market no more.
    pub(super) fn withdraw(&mut self, id: SenderId, slot: Slot) {
        if let Some(market) = &mut self.market
            && let Some(Entry { tx, arrival, .. }) = self.entries.get(slot)
        {
            market.remove(id, tx.nonce(), *arrival);
        }
    }

    /// These are in the market no more, as far as they are executable. A block has many of each sender, which
    /// finds its new places only once.
    pub(super) fn withdraw_all(&mut self, slots: &[Slot]) {
        let Some(market) = &mut self.market else { return };
        let mut removed: Vec<(SenderId, usize, (u64, u64))> = Vec::with_capacity(slots.len());
        for (position, slot) in slots.iter().enumerate() {
            if let Some(Entry { tx, sender, arrival, place: EntryPlace::Pending(_), .. }) =
                self.entries.get(*slot)
            {
                removed.push((*sender, position, (tx.nonce(), *arrival)));
            }
        }
        removed.sort_unstable();
        // Whose last one comes first in the block had its turn first.
        let of_sender = removed.chunk_by(|(id, ..), (other, ..)| id == other);
        let mut in_turn: Vec<_> =
            of_sender.filter_map(|those| Some((those.last()?, those))).collect();
        in_turn.sort_unstable_by_key(|((_, position, _), _)| *position);
        for ((id, ..), those) in in_turn {
            market.remove_all(*id, those.iter().map(|(.., place)| *place));
        }
    }

    /// A block could not take a transaction: it is not offered until [`Contents::reopen`]. Answers whether
    /// it is executable.
    pub(in crate::core) fn close(&mut self, hash: Hash) -> bool {
        let Some(Entry { tx, sender, place: EntryPlace::Pending(_), .. }) =
            self.entries.by_hash(hash)
        else {
            return false;
        };
        if let Some(market) = &mut self.market {
            market.close(*sender, tx.nonce());
        }
        true
    }

    /// What blocks could not take may be valid now.
    pub(in crate::core) fn reopen(&mut self) {
        if let Some(market) = &mut self.market {
            market.reopen();
        }
    }

    /// Whatever blocks could not take may be valid now.
    pub(in crate::core) fn reopen_all(&mut self) {
        if let Some(market) = &mut self.market {
            market.reopen_all();
        }
    }

    /// A block has what blocks could not take something without: a payment, or the request for a run.
    pub(in crate::core) fn reopen_for(
        &mut self,
        included: &[CheckedTx],
        paid: impl Iterator<Item = Address>,
    ) {
        let Some(market) = self.market.as_mut().filter(|market| market.has_closed()) else {
            return;
        };
        let payees = included.iter().filter_map(|tx| tx.body().payee(tx.from()));
        for (id, _) in payees.chain(paid).filter_map(|payee| self.senders.find(payee)) {
            market.open(id);
        }
        let requests = included.iter().filter(|tx| matches!(tx.body(), Body::AgentRequest(_)));
        let runs = requests.filter_map(|tx| tx.body().agent_run_id());
        let waiting = runs.flat_map(|run| self.subjects.of_run(run).take(REOPENED_MAX));
        for entry in waiting.filter_map(|hash| self.entries.by_hash(hash)) {
            market.open(entry.sender);
        }
    }

    /// The last one that each of these has in the tenth counts with all others from now on.
    pub(in crate::core) fn give_way(&mut self, givers: &[SenderId]) {
        if let Some(market) = &mut self.market {
            market.give_way(givers);
        }
    }

    /// Gives at most so many places in the tenth to those who could have more, while there is room beside
    /// it.
    pub(in crate::core) fn share_tenth(&mut self, room: Volume, most: usize) {
        if let Some(market) = &mut self.market {
            market.share(room, most);
        }
    }
}
