//! The work on one call: what is next, one step at a time.

use std::collections::BTreeSet;

use agent::text::cut;
use tokio::sync::Notify;
use tokio::time::sleep;
use types::agent::ExecutorId;
use types::tx::{CallCommit, CallReveal, HexBytes};
use types::{Body, Hash};

use super::Shared;
use super::next::{Step, next};
use crate::chain::CallView;
use crate::engine::error::{Halt, Pauses};
use crate::engine::outbox::About;
use crate::engine::tx_outcome::Verdict;
use crate::journal::call::{CallEntry, CallOutcome, CallPhase, CallStanding, Paused, Said};
use crate::journal::entry::Purpose;
use crate::ports::Event;

/// The bytes of a reason in a CALL_REVEAL.
const REASON_BYTES_MAX: usize = 1_024;
/// While nothing but the settlement is waited for, the call is looked at this much less often.
const PATIENCE: u32 = 6;

/// So many dissents among the last answers of an executor that were compared pause its offers, whatever
/// its test says. Fewer may be the work of a majority that lies.
const DISSENTS_MAX: usize = 3;
/// How long the offers of an executor that passes its test are paused: an hour.
const SOUND_PAUSE_MS: u64 = 3_600_000;

impl Shared {
    /// Works on a call until it is over, the engine is stopped, or the journal fails.
    pub(super) async fn serve(&self, call: &Hash, round: u8, moved: &Notify) -> Result<(), Halt> {
        let inner = &self.inner;
        let fresh = || Pauses::new(inner.parts.config.pause_ms);
        let (mut pauses, mut phase) = (fresh(), None);
        loop {
            if inner.stop.is_cancelled() {
                return Err(Halt::Stopped);
            }
            let Some(entry) = inner.parts.journal.call(call, round)? else { return Ok(()) };
            if phase.as_ref() != Some(&entry.phase) {
                // Pauses grow as long as nothing goes on.
                (pauses, phase) = (fresh(), Some(entry.phase.clone()));
            }
            let view = inner.patiently(|| self.market.calls.call(call)).await?;
            let step = next(&entry, view.as_ref(), &inner.me);
            tracing::debug!(%call, round, ?step, "next");
            match (step, view) {
                (Step::Rest, _) => return Ok(()),
                (Step::Execute, Some(view)) => self.execute(&entry, &view).await?,
                (Step::Commit, _) => match commitment(&entry, inner.me) {
                    Some(body) => {
                        let (signed, purpose) =
                            (CallPhase::CommitSigned, Purpose::Commit { round });
                        self.send(&entry.at(signed), &body, purpose, &mut pauses).await?;
                    }
                    None => pauses.pause(&inner.stop).await?,
                },
                (Step::Reveal, _) => match reveal(&entry) {
                    Some(body) => {
                        let (signed, purpose) =
                            (CallPhase::RevealSigned, Purpose::Reveal { round });
                        self.send(&entry.at(signed), &body, purpose, &mut pauses).await?;
                    }
                    None => pauses.pause(&inner.stop).await?,
                },
                (Step::Resend, _) => self.resend(&entry).await?,
                (Step::Confirm(phase), _) => {
                    inner.parts.journal.put_call(&entry.at(phase)).await?;
                }
                (Step::Miss(why), _) => {
                    tracing::warn!(%call, round, why, "missed");
                    let missed = CallPhase::Missed(why.to_owned());
                    inner.parts.journal.put_call(&entry.at(missed)).await?;
                }
                (Step::Judge(standing), Some(view)) => self.judge(&entry, standing, &view).await?,
                (Step::Close(outcome), Some(view)) => self.close(&entry, outcome, &view).await?,
                (Step::AwaitPhase, _) => self.moved(moved, 1).await?,
                (Step::AwaitSettlement, _) => self.moved(moved, PATIENCE).await?,
                (Step::AwaitNode | Step::Execute | Step::Judge(_) | Step::Close(_), _) => {
                    pauses.pause(&inner.stop).await?;
                }
            }
        }
    }

    /// Waits until something happened to the call, or for some polls.
    async fn moved(&self, moved: &Notify, polls: u32) -> Result<(), Halt> {
        tokio::select! {
            biased;
            () = self.inner.stop.cancelled() => Err(Halt::Stopped),
            () = moved.notified() => Ok(()),
            () = sleep(self.poll_pause().saturating_mul(polls)) => Ok(()),
        }
    }

    /// Signs, sends, and writes down what became of it. After a rejection it waits a little: what follows is
    /// decided by the chain's record, which the node may not have yet.
    async fn send(
        &self,
        signed: &CallEntry,
        body: &Body,
        purpose: Purpose,
        pauses: &mut Pauses,
    ) -> Result<(), Halt> {
        match self.inner.outbox.post_about(About::Call(signed), body, purpose).await? {
            Verdict::Included { .. } => Ok(()),
            Verdict::Refused(code) => {
                tracing::warn!(call = %signed.call, code, "a transaction of a call was rejected");
                pauses.pause(&self.inner.stop).await
            }
        }
    }

    /// Sends what was signed as it is. Where the outbox has nothing, it is signed anew: what is
    /// committed to and revealed stays the same.
    async fn resend(&self, entry: &CallEntry) -> Result<(), Halt> {
        if self.inner.outbox.resend(&entry.call).await? > 0 {
            return Ok(());
        }
        let phase = match &entry.phase {
            CallPhase::RevealSigned => CallPhase::Committed,
            CallPhase::CommitSigned => CallPhase::Executed,
            CallPhase::Assigned
            | CallPhase::Executed
            | CallPhase::Committed
            | CallPhase::Revealed
            | CallPhase::Missed(_)
            | CallPhase::Over(_) => return Ok(()),
        };
        Ok(self.inner.parts.journal.put_call(&entry.at(phase)).await?)
    }

    /// The round is decided.
    async fn judge(
        &self,
        entry: &CallEntry,
        standing: CallStanding,
        view: &CallView,
    ) -> Result<(), Halt> {
        let judged = CallEntry { standing: Some(standing), ..entry.clone() };
        self.put_judged(&judged, standing, view).await
    }

    /// Writes down how this miner stands. Where others agreed about another answer, the executor is
    /// tested again; it is offered no more if it fails, or if that happened several times lately.
    async fn put_judged(
        &self,
        entry: &CallEntry,
        standing: CallStanding,
        view: &CallView,
    ) -> Result<(), Halt> {
        let journal = &self.inner.parts.journal;
        let agreed = match standing {
            CallStanding::Agreed => true,
            CallStanding::Dissented => false,
            CallStanding::Undecided
            | CallStanding::Unable
            | CallStanding::Withheld
            | CallStanding::Absent => {
                return Ok(journal.put_call(entry).await?);
            }
        };
        // Where answers may differ, to stand alone says nothing about this machine.
        let Some(executor) = entry.executor.filter(|_| view.is_compared) else {
            return Ok(journal.put_call(entry).await?);
        };
        let dissents = journal.put_compared(entry, &executor, agreed).await?;
        if !agreed {
            self.dissented(entry, &executor, dissents).await?;
        }
        Ok(())
    }

    /// Pauses the offers of an executor after a dissent where there is reason to.
    async fn dissented(
        &self,
        entry: &CallEntry,
        executor: &ExecutorId,
        dissents: usize,
    ) -> Result<(), Halt> {
        let CallEntry { call, round, .. } = *entry;
        let fault = self.market.fitness.fault_after_dissent(executor).await;
        if fault.is_none() && dissents < DISSENTS_MAX {
            tracing::warn!(
                %call, round, %executor, dissents,
                "the others agree on another answer; the executor passes its test"
            );
            return Ok(());
        }
        let since_ms = self.inner.parts.clock.now_ms();
        // Liars must not take a sound machine off the market for good.
        let is_sound = fault.is_none();
        let until_ms = is_sound.then(|| since_ms.saturating_add(SOUND_PAUSE_MS));
        let fault = fault.unwrap_or_else(|| "it passes its test".to_owned());
        tracing::error!(
            %call, round, %executor, dissents, fault,
            "the others agree on another answer: this executor is no longer offered"
        );
        let paused = Paused { call, round, since_ms, until_ms };
        self.inner.parts.journal.pause_offers(executor, &paused).await?;
        self.market.resumed.notify_one();
        Ok(())
    }

    async fn close(
        &self,
        entry: &CallEntry,
        outcome: CallOutcome,
        view: &CallView,
    ) -> Result<(), Halt> {
        let CallOutcome { status, standing, paid_micro, penalty_micro } = outcome;
        let over = entry.over(outcome);
        if entry.standing == Some(standing) {
            self.inner.parts.journal.put_call(&over).await?;
        } else {
            self.put_judged(&over, standing, view).await?;
        }
        let (call, status) = (entry.call, status.as_str());
        tracing::info!(%call, status, standing = standing.word(), paid_micro, penalty_micro, "over");
        self.inner.parts.counters.count(Event::Served { standing, paid_micro, penalty_micro });
        Ok(())
    }

    /// Drops receipts that have no room.
    pub(super) async fn make_room(&self) -> Result<(), Halt> {
        let Some(config) = self.market.config.borrow().clone() else { return Ok(()) };
        let open = self.inner.parts.journal.open_calls()?;
        let open: BTreeSet<_> = open.iter().map(|it| (it.call, it.round)).collect();
        let receipts = self.market.receipts.clone();
        let bytes_max = config.receipt_bytes_max();
        let made = tokio::task::spawn_blocking(move || receipts.make_room(bytes_max, &open));
        match made.await {
            Ok(Ok(0)) => (),
            Ok(Ok(dropped)) => tracing::info!(dropped, "dropped old receipts to make room"),
            Ok(Err(error)) => tracing::warn!(%error, "old receipts cannot be dropped"),
            Err(error) => tracing::error!(%error, "dropping receipts failed"),
        }
        Ok(())
    }
}

fn commitment(entry: &CallEntry, me: types::Address) -> Option<Body> {
    let commitment = entry.commitment(me)?;
    let (call_id, round) = (entry.call, entry.round.into());
    Some(Body::CallCommit(CallCommit { call_id, round, commitment }))
}

fn reveal(entry: &CallEntry) -> Option<Body> {
    let Said { answer, result, reason, salt, said_ms: _ } = entry.said.as_ref()?;
    let result = const_hex::decode(result).ok()?;
    let usage = answer.usage;
    Some(Body::CallReveal(CallReveal {
        call_id: entry.call,
        round: entry.round.into(),
        salt: *salt,
        outcome: answer.outcome.as_str().to_owned(),
        result: HexBytes(result),
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        fuel: usage.fuel,
        receipt_hash: answer.receipt_hash,
        reason: reason.as_deref().map(|why| cut(why, REASON_BYTES_MAX).to_owned()),
    }))
}

/// What a call is executed on, if the node has told it.
pub(super) fn payload(view: &CallView) -> Option<&[u8]> {
    view.payload.as_deref().filter(|bytes| Hash::digest(bytes) == view.payload_hash)
}
