//! How a transaction gets into the pool (docs/protocol.md section 9).

use std::collections::BTreeSet;

use types::{Account, Address, CheckedTx, Rejection};

use super::limits::{Newcomer, Room};
use super::parts::Core;
use super::rejection::{stale, taken, too_high};
use super::rivals::Way;
use crate::entries::EntryPlace;
use crate::error::PoolFault;
use crate::ports::{AdmitError, CommittedChain, Extent};
use crate::senders::SenderId;
use crate::slab::Slot;
use crate::tally::Half;
use crate::{Accepted, TxStanding};

/// Where a transaction comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// From a client or a peer.
    New,
    /// From the journal of an earlier run, whose pool had taken it.
    Journal,
}

/// What the pool knows of a sender's nonces.
#[derive(Clone, Copy)]
struct Nonces {
    /// The account's nonce in the committed state.
    committed: u64,
    /// The nonce after the last executable one.
    next: u64,
}

impl Core {
    /// Takes one transaction or says why not. A refused transaction changes nothing, but that what it
    /// would have displaced may have to be executed again.
    pub(crate) fn submit(
        &mut self,
        tx: &CheckedTx,
        now_ms: u64,
        chain: &dyn CommittedChain,
    ) -> Result<Accepted, AdmitError> {
        self.submit_as(Origin::New, tx, now_ms, chain)
    }

    /// Takes one that was in the pool before: it may wait for the base fee to fall.
    pub(crate) fn resubmit(
        &mut self,
        tx: &CheckedTx,
        now_ms: u64,
        chain: &dyn CommittedChain,
    ) -> Result<Accepted, AdmitError> {
        self.submit_as(Origin::Journal, tx, now_ms, chain)
    }

    fn submit_as(
        &mut self,
        origin: Origin,
        tx: &CheckedTx,
        now_ms: u64,
        chain: &dyn CommittedChain,
    ) -> Result<Accepted, AdmitError> {
        let answer = self.submit_once(origin, tx, now_ms, chain);
        self.share_tenth();
        if let Err(AdmitError::Rejected(reason)) = &answer {
            self.history.refused(reason.code());
        }
        answer
    }

    fn submit_once(
        &mut self,
        origin: Origin,
        tx: &CheckedTx,
        now_ms: u64,
        chain: &dyn CommittedChain,
    ) -> Result<Accepted, AdmitError> {
        let hash = tx.hash();
        if let Some(entry) = self.contents.entries().by_hash(hash) {
            self.history.known();
            let standing = match entry.place {
                EntryPlace::Pending(_) => TxStanding::Pending,
                EntryPlace::Queued => TxStanding::Queued,
            };
            return Ok(Accepted { hash, standing, is_new: false });
        }
        let nonces = self.nonces(tx)?;
        if tx.nonce() < nonces.committed && chain.is_included(hash)? {
            self.history.known();
            return Ok(Accepted { hash, standing: TxStanding::Included, is_new: false });
        }
        check_nonce(tx, nonces)?;
        let next = nonces.next;
        let standing = if tx.nonce() == next {
            if self.has_queued(tx.from(), next) {
                return Err(taken(next, self.query().account(tx.from())?.nonce).into());
            }
            if origin == Origin::New {
                self.draft.check_base_fee(tx)?;
            }
            let follows =
                self.contents.senders().find(tx.from()).filter(|(_, sender)| !sender.is_settled());
            match follows.map(|(id, _)| id) {
                Some(id) => self.admit_unseen(tx, id, now_ms)?,
                None => self.admit_or_hold(tx, now_ms)?,
            }
        } else {
            self.enqueue(tx, next, now_ms)?;
            TxStanding::Queued
        };
        Ok(Accepted { hash, standing, is_new: true })
    }

    /// Why the transaction would be refused for its nonce or its sender's balance as things are,
    /// whatever its signature is worth; none if it could be taken, alone or after others, or is known.
    /// Whether a block holds the transaction is not looked at: one whose nonce is stale may stand in one.
    /// What its sender has is not looked at if it is one of those who may be paid before.
    pub(crate) fn glance(
        &mut self,
        tx: &CheckedTx,
        paid: &BTreeSet<Address>,
    ) -> Result<Option<Rejection>, PoolFault> {
        if self.contents.entries().by_hash(tx.hash()).is_some() {
            return Ok(None);
        }
        match self.look(tx, paid) {
            Ok(()) => Ok(None),
            Err(AdmitError::Rejected(reason)) => {
                self.history.refused(reason.code());
                Ok(Some(reason))
            }
            Err(AdmitError::Fault(fault)) => Err(fault),
        }
    }

    fn look(&self, tx: &CheckedTx, paid: &BTreeSet<Address>) -> Result<(), AdmitError> {
        let nonces = self.nonces(tx)?;
        check_nonce(tx, nonces)?;
        self.check_reach(tx, nonces.next)?;
        if paid.contains(&tx.from()) {
            return Ok(());
        }
        if tx.nonce() == nonces.next {
            self.draft.check_base_fee(tx)?;
        } else {
            // Those before it may come with it.
            self.check_existence(tx, nonces.next)?;
        }
        // What pays for it may be among what is to be executed again.
        if self.contents.order().unsettled_len() > 0 {
            Ok(())
        } else {
            self.draft.check(tx, Extent::Funds)
        }
    }

    /// Refuses a nonce that the sender's next one cannot come near, whatever comes with it: it ascends by
    /// as many as the sender may still have in the pool.
    fn check_reach(&self, tx: &CheckedTx, next: u64) -> Result<(), Rejection> {
        let count = self.contents.senders().find(tx.from()).map_or(0, |(_, sender)| sender.count());
        let more = self.limits.sender_count_max().saturating_sub(count);
        let window = self.limits.nonce_window();
        let reach = window.saturating_add(u64::try_from(more).unwrap_or(u64::MAX));
        let is_near = tx.nonce().saturating_sub(next) < reach;
        if is_near { Ok(()) } else { Err(too_high(tx.nonce(), next, window)) }
    }

    /// Whether the sender's next one waits for the phase of its call, or for what keeps it out to go.
    fn has_queued(&self, sender: Address, next: u64) -> bool {
        let sender = self.contents.senders().find(sender);
        sender.is_some_and(|(_, sender)| sender.queued.contains_key(&next))
    }

    fn nonces(&self, tx: &CheckedTx) -> Result<Nonces, PoolFault> {
        if let Some((_, sender)) = self.contents.senders().find(tx.from()) {
            return Ok(Nonces { committed: sender.committed(), next: sender.next });
        }
        // Without anything of the sender in the pool, the draft's nonce is the committed one.
        let nonce = self.draft.account(tx.from())?.nonce;
        Ok(Nonces { committed: nonce, next: nonce })
    }

    /// A transaction with the sender's next nonce: executed on the draft, kept until the phase of its call
    /// has come, or refused.
    fn admit_or_hold(&mut self, tx: &CheckedTx, now_ms: u64) -> Result<TxStanding, AdmitError> {
        match self.execute(tx, now_ms) {
            Ok(()) => {}
            Err(AdmitError::Rejected(reason)) if self.draft.is_early(tx, &reason)? => {
                self.queue(tx, tx.nonce(), now_ms)?;
                self.contents.hold(tx);
                return Ok(TxStanding::Queued);
            }
            Err(AdmitError::Rejected(reason)) => {
                if self.execute_instead(tx, reason, now_ms)? == TxStanding::Queued {
                    return Ok(TxStanding::Queued);
                }
            }
            Err(fault @ AdmitError::Fault(_)) => return Err(fault),
        }
        let (id, slot) = self.contents.insert_pending(tx, now_ms, &self.draft);
        self.accepted(tx, slot, Half::Pending);
        // What fails here is for whoever sent it, and has been told to nobody yet: it is looked at
        // again with the next block.
        if let Err(fault) = self.promotion().promote(id, now_ms) {
            tracing::error!(%fault, "a queued transaction could not be executed");
            self.restless.insert(tx.from());
        }
        Ok(TxStanding::Pending)
    }

    /// Executes a transaction that was refused for `reason` in place of what keeps it out, if that gives way.
    /// It is queued if that takes longer.
    fn execute_instead(
        &mut self,
        tx: &CheckedTx,
        reason: Rejection,
        now_ms: u64,
    ) -> Result<TxStanding, AdmitError> {
        let gone = match self.eviction().make_way(tx, &reason, now_ms)? {
            Way::Barred => return Err(reason.into()),
            Way::Open(gone) => gone,
            Way::Opening => {
                self.queue(tx, tx.nonce(), now_ms)?;
                self.restless.insert(tx.from());
                return Ok(TxStanding::Queued);
            }
        };
        match self.execute(tx, now_ms) {
            Ok(()) => {
                self.eviction().bury_all(gone, now_ms);
                Ok(TxStanding::Pending)
            }
            Err(error) => {
                self.contests.fail(tx.from());
                self.eviction().put_back(gone);
                Err(error)
            }
        }
    }

    /// Executes a transaction with the sender's next nonce on the draft, for which there is room then, or
    /// refuses it. The rules of the ledger come before those of the pool.
    fn execute(&mut self, tx: &CheckedTx, now_ms: u64) -> Result<(), AdmitError> {
        match self.capacity().room_for(tx, Newcomer::Executable, now_ms) {
            Ok(Room::Free) => {
                self.draft.admit(tx)?;
                self.eviction().make_room(tx, Newcomer::Executable, now_ms);
            }
            Ok(room @ (Room::Shared | Room::Dearer)) => {
                self.draft.check(tx, Extent::Whole)?;
                let gone = self.eviction().clear_for(tx, room)?;
                match self.draft.admit(tx) {
                    Ok(()) => {}
                    Err(AdmitError::Rejected(_)) => {
                        // It builds on what had to go for it.
                        self.eviction().put_back(gone);
                        return Err(self.capacity().pool_full().into());
                    }
                    Err(fault @ AdmitError::Fault(_)) => {
                        self.eviction().put_back(gone);
                        return Err(fault);
                    }
                }
                self.eviction().make_room(tx, Newcomer::Executable, now_ms);
                self.eviction().bury_all(gone, now_ms);
            }
            Err(rejection) => {
                self.draft.check(tx, Extent::Whole)?;
                return Err(rejection.into());
            }
        }
        Ok(())
    }

    /// A transaction with the nonce after others of its sender that are to be executed again: it is
    /// executed after them, and dropped then if it must be.
    fn admit_unseen(
        &mut self,
        tx: &CheckedTx,
        id: SenderId,
        now_ms: u64,
    ) -> Result<TxStanding, AdmitError> {
        self.draft.check_form(tx)?;
        let room = self.capacity().room_for(tx, Newcomer::Executable, now_ms)?;
        if room == Room::Dearer {
            // Nobody knows yet whether its sender can pay what it offers.
            return Err(self.capacity().pool_full().into());
        }
        let gone = self.eviction().clear_for(tx, room)?;
        let follows = self.contents.senders().find(tx.from());
        if follows.is_none_or(|(_, sender)| sender.next != tx.nonce()) {
            // What it follows built on what had to go for it.
            self.eviction().put_back(gone);
            return Err(self.capacity().pool_full().into());
        }
        self.eviction().make_room(tx, Newcomer::Executable, now_ms);
        self.eviction().bury_all(gone, now_ms);
        let slot = self.contents.insert_unsettled(tx, id, now_ms, &self.draft);
        self.accepted(tx, slot, Half::Pending);
        self.promotion().promote(id, now_ms)?;
        Ok(TxStanding::Pending)
    }

    /// A transaction beyond the sender's next nonce: kept until the gap closes.
    fn enqueue(&mut self, tx: &CheckedTx, next: u64, now_ms: u64) -> Result<(), AdmitError> {
        self.check_queueable(tx, next)?;
        self.queue(tx, next, now_ms)
    }

    /// Keeps a transaction in its sender's queue, if there is room.
    fn queue(&mut self, tx: &CheckedTx, next: u64, now_ms: u64) -> Result<(), AdmitError> {
        self.capacity().room_for(tx, Newcomer::Queued, now_ms)?;
        self.eviction().make_room(tx, Newcomer::Queued, now_ms);
        let slot = self.contents.insert_queued(tx, next, now_ms);
        self.accepted(tx, slot, Half::Queued);
        Ok(())
    }

    fn accepted(&mut self, tx: &CheckedTx, slot: Slot, half: Half) {
        self.history.accepted(tx, slot, half, &self.contents);
    }

    /// Whether a transaction beyond the sender's next nonce may wait, if there is room.
    fn check_queueable(&self, tx: &CheckedTx, next: u64) -> Result<(), AdmitError> {
        self.draft.check_form(tx)?;
        self.draft.check_lowest_fee(tx)?;
        let nonce = tx.nonce();
        // The window counts from the last executable nonce, which is one below `next`.
        if nonce.saturating_sub(next) >= self.limits.nonce_window() {
            return Err(too_high(nonce, next, self.limits.nonce_window()).into());
        }
        if self
            .contents
            .senders()
            .find(tx.from())
            .is_some_and(|(_, s)| s.queued.contains_key(&nonce))
        {
            return Err(taken(nonce, next).into());
        }
        self.check_existence(tx, next)
    }

    /// Keys cost nothing, so whoever has neither money nor a transaction must not take room.
    fn check_existence(&self, tx: &CheckedTx, next: u64) -> Result<(), AdmitError> {
        if next == 0 && self.draft.account(tx.from())? == Account::default() {
            let rejection = too_high(tx.nonce(), next, self.limits.nonce_window());
            return Err(rejection.with("account", "does not exist yet").into());
        }
        Ok(())
    }
}

/// Refuses a nonce that is used up or that another transaction has.
fn check_nonce(tx: &CheckedTx, Nonces { committed, next }: Nonces) -> Result<(), Rejection> {
    let nonce = tx.nonce();
    if nonce < committed {
        return Err(stale(nonce, committed));
    }
    if nonce < next { Err(taken(nonce, next)) } else { Ok(()) }
}
