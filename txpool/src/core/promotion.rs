//! Queued transactions whose turn has come.

use std::collections::{BTreeMap, BTreeSet};

use types::{Address, CheckedTx, Rejection};

use super::contents::{Contents, Settled};
use super::draft::Draft;
use super::history::History;
use crate::error::PoolFault;
use crate::ports::AdmitError;
use crate::senders::SenderId;
use crate::slab::Slot;
use crate::subject::is_about_the_subject;

/// Moves transactions from queues to the executable ones.
pub(super) struct Promotion<'a> {
    pub(super) contents: &'a mut Contents,
    pub(super) draft: &'a mut Draft,
    pub(super) history: &'a mut History,
}

impl Promotion<'_> {
    /// Admits the sender's queued transactions whose turn has come.
    pub(super) fn promote(&mut self, id: SenderId, now_ms: u64) -> Result<(), PoolFault> {
        while let Some(slot) = self.contents.promotable(id) {
            self.promote_one(id, slot, now_ms)?;
        }
        self.contents.close_if_empty(id);
        Ok(())
    }

    /// Admits queued transactions of these senders whose turn has come, the earliest accepted first, at
    /// most so many. Answers how many were looked at.
    pub(super) fn promote_all(
        &mut self,
        senders: &BTreeSet<Address>,
        most: usize,
        now_ms: u64,
    ) -> Result<usize, PoolFault> {
        let head = |contents: &Contents, id| {
            let slot = contents.promotable(id)?;
            Some((contents.entries().get(slot)?.arrival, (id, slot)))
        };
        let ids = senders.iter().filter_map(|address| self.contents.senders().find(*address));
        let mut heads: BTreeMap<_, _> = ids.filter_map(|(id, _)| head(self.contents, id)).collect();
        let mut looked_at = 0_usize;
        while looked_at < most
            && let Some((_, (id, slot))) = heads.pop_first()
        {
            self.promote_one(id, slot, now_ms)?;
            looked_at = looked_at.saturating_add(1);
            heads.extend(head(self.contents, id));
        }
        Ok(looked_at)
    }

    /// Admits a queued transaction with the sender's next nonce. One that is refused is dropped with
    /// its reason; those after it stay queued, unless the reason loses them too.
    fn promote_one(&mut self, id: SenderId, slot: Slot, now_ms: u64) -> Result<(), PoolFault> {
        let entry = self.contents.entries().get(slot);
        let Some(tx) = entry.map(|entry| entry.tx.clone()) else { return Ok(()) };
        if self.contents.senders().get(id).is_some_and(|sender| !sender.is_settled()) {
            self.make_pending(slot, Settled::No);
            return Ok(());
        }
        if let Err(reason) = self.draft.check_lowest_fee(&tx) {
            // It would keep those after it out of blocks for as long as it is there.
            self.history.drop_queued(self.contents, (id, tx.nonce()), reason, now_ms);
            return Ok(());
        }
        match self.draft.admit(&tx) {
            Ok(()) => self.make_pending(slot, Settled::Yes),
            Err(AdmitError::Fault(fault)) => return Err(fault),
            Err(AdmitError::Rejected(reason)) if self.draft.is_early(&tx, &reason)? => {
                self.contents.hold(&tx);
            }
            // What it builds on may be among what is to be executed again.
            Err(AdmitError::Rejected(_)) if self.contents.order().unsettled_len() > 0 => {
                self.make_pending(slot, Settled::No);
            }
            Err(AdmitError::Rejected(reason)) => {
                self.drop_dependents(id, &tx, &reason, now_ms);
                self.history.drop_queued(self.contents, (id, tx.nonce()), reason, now_ms);
            }
        }
        Ok(())
    }

    fn make_pending(&mut self, slot: Slot, is_settled: Settled) {
        if let Some(tx) = self.contents.make_pending(slot, is_settled, self.draft) {
            self.history.promoted(tx);
        }
    }

    /// Drops what the sender has queued about the subject of a transaction that was dropped, if the
    /// reason means that all of it is lost.
    pub(super) fn drop_dependents(
        &mut self,
        id: SenderId,
        lost: &CheckedTx,
        reason: &Rejection,
        now_ms: u64,
    ) {
        let Some(subject) = lost.body().subject() else { return };
        if !is_about_the_subject(reason.code()) {
            return;
        }
        let Some(sender) = self.contents.senders().get(id) else { return };
        let nonces: Vec<u64> = sender
            .queued
            .iter()
            .filter(|(nonce, _)| **nonce > lost.nonce())
            .filter(|(_, slot)| {
                let entry = self.contents.entries().get(**slot);
                entry.and_then(|entry| entry.tx.body().subject()) == Some(subject)
            })
            .map(|(nonce, _)| *nonce)
            .collect();
        for nonce in nonces {
            let reason = reason.clone().with("after", lost.hash());
            self.history.drop_queued(self.contents, (id, nonce), reason, now_ms);
        }
    }
}
