//! How a transaction gets into the pool (docs/protocol.md section 9).

use std::collections::{BTreeMap, BTreeSet};

use types::{Account, Address, CheckedTx, Code, Rejection};

use super::limits::{Newcomer, Room};
use super::{Core, Settled};
use crate::entries::Place;
use crate::error::Fault;
use crate::ports::{AdmitError, Chain, Extent};
use crate::senders::SenderId;
use crate::slab::Slot;
use crate::{Accepted, Standing};

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
        chain: &dyn Chain,
    ) -> Result<Accepted, AdmitError> {
        self.submit_as(Origin::New, tx, now_ms, chain)
    }

    /// Takes one that was in the pool before: it may wait for the base fee to fall.
    pub(crate) fn resubmit(
        &mut self,
        tx: &CheckedTx,
        now_ms: u64,
        chain: &dyn Chain,
    ) -> Result<Accepted, AdmitError> {
        self.submit_as(Origin::Journal, tx, now_ms, chain)
    }

    fn submit_as(
        &mut self,
        origin: Origin,
        tx: &CheckedTx,
        now_ms: u64,
        chain: &dyn Chain,
    ) -> Result<Accepted, AdmitError> {
        let answer = self.submit_once(origin, tx, now_ms, chain);
        self.share_tenth();
        if let Err(AdmitError::Rejected(reason)) = &answer {
            self.tally.refused(reason.code());
        }
        answer
    }

    fn submit_once(
        &mut self,
        origin: Origin,
        tx: &CheckedTx,
        now_ms: u64,
        chain: &dyn Chain,
    ) -> Result<Accepted, AdmitError> {
        let hash = tx.hash();
        if let Some(entry) = self.entries.by_hash(hash) {
            self.tally.known();
            let standing = match entry.place {
                Place::Pending(_) => Standing::Pending,
                Place::Queued => Standing::Queued,
            };
            return Ok(Accepted { hash, standing, is_new: false });
        }
        let nonces = self.nonces(tx)?;
        if tx.nonce() < nonces.committed && chain.is_included(hash)? {
            self.tally.known();
            return Ok(Accepted { hash, standing: Standing::Included, is_new: false });
        }
        check_nonce(tx, nonces)?;
        let next = nonces.next;
        let standing = if tx.nonce() == next {
            if self.next_held(tx.from()) == Some(next) {
                return Err(taken(next, self.account(tx.from())?.nonce).into());
            }
            if origin == Origin::New {
                self.ledger.check_base_fee(tx)?;
            }
            let follows = self.senders.find(tx.from()).filter(|(_, sender)| !sender.is_settled());
            match follows.map(|(id, _)| id) {
                Some(id) => self.admit_unseen(tx, id, now_ms)?,
                None => self.admit_or_hold(tx, now_ms)?,
            }
        } else {
            self.enqueue(tx, next, now_ms)?;
            Standing::Queued
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
    ) -> Result<Option<Rejection>, Fault> {
        if self.entries.by_hash(tx.hash()).is_some() {
            return Ok(None);
        }
        match self.look(tx, paid) {
            Ok(()) => Ok(None),
            Err(AdmitError::Rejected(reason)) => {
                self.tally.refused(reason.code());
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
            self.ledger.check_base_fee(tx)?;
        } else {
            // Those before it may come with it.
            self.check_existence(tx, nonces.next)?;
        }
        // What pays for it may be among what is to be executed again.
        if self.order.unsettled_len() > 0 { Ok(()) } else { self.ledger.check(tx, Extent::Funds) }
    }

    /// Refuses a nonce that the sender's next one cannot come near, whatever comes with it: it ascends by
    /// as many as the sender may still have in the pool.
    fn check_reach(&self, tx: &CheckedTx, next: u64) -> Result<(), Rejection> {
        let count = self.senders.find(tx.from()).map_or(0, |(_, sender)| sender.count());
        let more = self.config.sender_count_max.saturating_sub(count);
        let window = self.config.nonce_window;
        let reach = window.saturating_add(u64::try_from(more).unwrap_or(u64::MAX));
        let is_near = tx.nonce().saturating_sub(next) < reach;
        if is_near { Ok(()) } else { Err(too_high(tx.nonce(), next, window)) }
    }

    fn nonces(&self, tx: &CheckedTx) -> Result<Nonces, Fault> {
        if let Some((_, sender)) = self.senders.find(tx.from()) {
            return Ok(Nonces { committed: sender.committed(), next: sender.next });
        }
        // Without anything of the sender in the pool, the draft's nonce is the committed one.
        let nonce = self.ledger.account(tx.from())?.nonce;
        Ok(Nonces { committed: nonce, next: nonce })
    }

    /// A transaction with the sender's next nonce: executed on the draft, kept until the phase of its call
    /// has come, or refused.
    fn admit_or_hold(&mut self, tx: &CheckedTx, now_ms: u64) -> Result<Standing, AdmitError> {
        match self.admit_next(tx, now_ms) {
            Ok(()) => Ok(Standing::Pending),
            Err(AdmitError::Rejected(reason)) if self.is_early(tx, &reason)? => {
                self.room_for(tx, Newcomer::Queued, now_ms)?;
                self.make_room(tx, Newcomer::Queued, now_ms);
                let id = self.senders.open(tx.from(), tx.nonce());
                self.insert_queued(tx, id, now_ms);
                self.held.hold(tx);
                Ok(Standing::Queued)
            }
            Err(error) => Err(error),
        }
    }

    /// The nonce of what the sender has that waits for a phase of its call, if nothing has to come before
    /// it.
    pub(super) fn next_held(&self, address: Address) -> Option<u64> {
        let (_, sender) = self.senders.find(address).filter(|_| self.held.is_of(address))?;
        sender.queued.contains_key(&sender.next).then_some(sender.next)
    }

    /// A transaction with the sender's next nonce: executed on the draft, or refused. The rules of
    /// the ledger come before those of the pool.
    fn admit_next(&mut self, tx: &CheckedTx, now_ms: u64) -> Result<(), AdmitError> {
        match self.room_for(tx, Newcomer::Executable, now_ms) {
            Ok(Room::Free) => {
                self.ledger.admit(tx)?;
                self.make_room(tx, Newcomer::Executable, now_ms);
            }
            Ok(room @ (Room::Shared | Room::Dearer)) => {
                self.ledger.check(tx, Extent::Whole)?;
                let gone = self.clear_for(tx, room)?;
                match self.ledger.admit(tx) {
                    Ok(()) => {}
                    Err(AdmitError::Rejected(_)) => {
                        // It builds on what had to go for it.
                        self.put_back(gone);
                        return Err(self.pool_full().into());
                    }
                    Err(fault @ AdmitError::Fault(_)) => {
                        self.put_back(gone);
                        return Err(fault);
                    }
                }
                self.make_room(tx, Newcomer::Executable, now_ms);
                self.bury_all(gone, now_ms);
            }
            Err(refusal) => {
                self.ledger.check(tx, Extent::Whole)?;
                return Err(refusal.into());
            }
        }
        let id = self.senders.open(tx.from(), tx.nonce());
        self.insert_pending(tx, id, now_ms);
        // What fails here is for whoever sent it, and has been told to nobody yet: it is looked at
        // again with the next block.
        if let Err(fault) = self.promote(id, now_ms) {
            tracing::error!(%fault, "a queued transaction could not be executed");
            self.restless.insert(tx.from());
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
    ) -> Result<Standing, AdmitError> {
        self.ledger.check_form(tx)?;
        let room = self.room_for(tx, Newcomer::Executable, now_ms)?;
        let gone = self.clear_for(tx, room)?;
        let follows = self.senders.find(tx.from());
        if follows.is_none_or(|(_, sender)| sender.next != tx.nonce()) {
            // What it follows built on what had to go for it.
            self.put_back(gone);
            return Err(self.pool_full().into());
        }
        self.make_room(tx, Newcomer::Executable, now_ms);
        self.bury_all(gone, now_ms);
        self.insert_unsettled(tx, id, now_ms);
        self.promote(id, now_ms)?;
        Ok(Standing::Pending)
    }

    /// A transaction beyond the sender's next nonce: kept until the gap closes.
    fn enqueue(&mut self, tx: &CheckedTx, next: u64, now_ms: u64) -> Result<(), AdmitError> {
        self.check_queueable(tx, next)?;
        self.room_for(tx, Newcomer::Queued, now_ms)?;
        self.make_room(tx, Newcomer::Queued, now_ms);
        let id = self.senders.open(tx.from(), next);
        self.insert_queued(tx, id, now_ms);
        Ok(())
    }

    /// Whether a transaction beyond the sender's next nonce may wait, if there is room.
    fn check_queueable(&self, tx: &CheckedTx, next: u64) -> Result<(), AdmitError> {
        self.ledger.check_form(tx)?;
        let nonce = tx.nonce();
        // The window counts from the last executable nonce, which is one below `next`.
        if nonce.saturating_sub(next) >= self.config.nonce_window {
            return Err(too_high(nonce, next, self.config.nonce_window).into());
        }
        if self.senders.find(tx.from()).is_some_and(|(_, s)| s.queued.contains_key(&nonce)) {
            return Err(taken(nonce, next).into());
        }
        self.check_existence(tx, next)
    }

    /// Keys cost nothing, so whoever has neither money nor a transaction must not take room.
    fn check_existence(&self, tx: &CheckedTx, next: u64) -> Result<(), AdmitError> {
        if next == 0 && self.ledger.account(tx.from())? == Account::default() {
            let refusal = too_high(tx.nonce(), next, self.config.nonce_window);
            return Err(refusal.with("account", "does not exist yet").into());
        }
        Ok(())
    }

    /// Admits the sender's queued transactions whose turn has come.
    pub(super) fn promote(&mut self, id: SenderId, now_ms: u64) -> Result<(), Fault> {
        while let Some(slot) = self.promotable(id) {
            self.promote_one(id, slot, now_ms)?;
        }
        self.senders.close_if_empty(id);
        Ok(())
    }

    /// Admits queued transactions of these senders whose turn has come, the earliest accepted first, at
    /// most so many. Answers how many were looked at.
    pub(super) fn promote_all(
        &mut self,
        senders: &BTreeSet<Address>,
        most: usize,
        now_ms: u64,
    ) -> Result<usize, Fault> {
        let head = |core: &Self, id| {
            let slot = core.promotable(id)?;
            Some((core.entries.get(slot)?.arrival, (id, slot)))
        };
        let ids = senders.iter().filter_map(|address| self.senders.find(*address));
        let mut heads: BTreeMap<_, _> = ids.filter_map(|(id, _)| head(self, id)).collect();
        let mut looked_at = 0_usize;
        while looked_at < most
            && let Some((_, (id, slot))) = heads.pop_first()
        {
            self.promote_one(id, slot, now_ms)?;
            looked_at = looked_at.saturating_add(1);
            heads.extend(head(self, id));
        }
        Ok(looked_at)
    }

    /// The sender's queued transaction with the next nonce, unless it waits for a phase of its call.
    fn promotable(&self, id: SenderId) -> Option<Slot> {
        let sender = self.senders.get(id).filter(|sender| !self.held.is_of(sender.address))?;
        sender.queued.get(&sender.next).copied()
    }

    /// Admits a queued transaction with the sender's next nonce. One that is refused is dropped with
    /// its reason; those after it stay queued, unless the reason loses them too.
    fn promote_one(&mut self, id: SenderId, slot: Slot, now_ms: u64) -> Result<(), Fault> {
        let Some(tx) = self.entries.get(slot).map(|entry| entry.tx.clone()) else { return Ok(()) };
        if self.senders.get(id).is_some_and(|sender| !sender.is_settled()) {
            self.make_pending(slot, Settled::No);
            return Ok(());
        }
        match self.ledger.admit(&tx) {
            Ok(()) => self.make_pending(slot, Settled::Yes),
            Err(AdmitError::Fault(fault)) => return Err(fault),
            Err(AdmitError::Rejected(reason)) if self.is_early(&tx, &reason)? => {
                self.held.hold(&tx);
            }
            // What it builds on may be among what is to be executed again.
            Err(AdmitError::Rejected(_)) if self.order.unsettled_len() > 0 => {
                self.make_pending(slot, Settled::No);
            }
            Err(AdmitError::Rejected(reason)) => {
                self.drop_dependents(id, &tx, &reason, now_ms);
                self.drop_queued(id, tx.nonce(), reason, now_ms);
            }
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

pub(super) fn stale(nonce: u64, committed: u64) -> Rejection {
    Rejection::new(Code::NonceStale, "nonce", nonce, committed)
        .with("tx", nonce)
        .with("state", committed)
}

fn too_high(nonce: u64, next: u64, window: u64) -> Rejection {
    Rejection::new(Code::NonceTooHigh, "nonce", nonce, next)
        .with("tx", nonce)
        .with("state", next)
        .with("window", window)
}

fn taken(nonce: u64, next: u64) -> Rejection {
    let expected = format_args!("a nonce that no pending transaction has, such as {next}");
    Rejection::new(Code::NonceTaken, "nonce", nonce, expected).with("tx", nonce).with("next", next)
}
