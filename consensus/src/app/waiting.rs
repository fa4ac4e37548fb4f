//! When the next height starts.
//!
//! The engine asks twice: `ConsensusReady`, once after its start, and `Finalized`, after each
//! height. Both answers say which height to start; the loop gives them when a block is due.
//!
//! * A follower answers at once: it can only wait for others.
//! * A validator waits for [`Pace`](crate::Pace); a part of a proposal for the open height from
//!   its rightful proposer, or a vote for it, wakes it: then it waits for the earliest moment
//!   alone, since nobody can make another validator's blocks come faster. The engine keeps votes
//!   and values for the next height until that starts, so none is lost.
//! * After a start, the only validator waits for the pace unless it has a proposal from before
//!   the restart, which it then finishes; a validator among others waits until they are connected
//!   ([`meeting`]), and no longer than [`START_WAIT_MAX`](super::START_WAIT_MAX) for more than the
//!   earliest moment.
//!
//! Votes are seen through the engine's event channel, which may drop events under load. Then the
//! next vote, the proposal or at last the heartbeat wakes the validator.

use std::future::pending;
use std::sync::Arc;

use malachitebft_app::engine::host::{HeightParams, Next};
use malachitebft_app::events::RxEvent;
use malachitebft_app::types::{MisbehaviorEvidence, SignedConsensusMsg};
use malachitebft_core_types::CommitCertificate;
use malachitebft_engine::util::events::Event;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

use super::{App, Follows, START_WAIT_MAX, meeting, send};
use crate::Fault;
use crate::engine::context::{Ctx, Height};

/// How many heights late a vote may be that shows that its validator is there.
const LATE_MAX: u64 = 8;

/// The engine's question, to be answered with the open height.
pub(super) enum Reply {
    /// After the engine's start.
    Ready(oneshot::Sender<(Height, HeightParams<Ctx>)>),
    /// After a height.
    Next(oneshot::Sender<Next<Ctx>>),
}

/// A question that is kept until a block is due.
pub(super) struct Waiting {
    reply: Reply,
    due: AbortOnDropHandle<()>,
    /// Whether only the earliest moment is waited for.
    is_woken: bool,
}

/// Resolves when the wait is over; never without one.
pub(super) async fn due(waiting: Option<&mut Waiting>) -> Result<(), Fault> {
    match waiting {
        Some(waiting) => (&mut waiting.due).await.map_err(|panic| Fault::Panic(panic.to_string())),
        None => pending().await,
    }
}

/// Ends when the node allows a validator to sign that follows. Never if there is none, or if it was
/// allowed before.
pub(super) async fn allowed(follows: Option<&Follows>) {
    match follows {
        Some(Follows { may_sign, .. }) if !may_sign.is_cancelled() => may_sign.cancelled().await,
        Some(_) | None => pending().await,
    }
}

/// The engine's next event; never if nobody listens.
pub(super) async fn next_event(events: Option<&mut RxEvent<Ctx>>) -> Result<Event<Ctx>, RecvError> {
    match events {
        Some(events) => events.recv().await,
        None => pending().await,
    }
}

impl App {
    pub(super) async fn on_ready(
        &mut self,
        reply: oneshot::Sender<(Height, HeightParams<Ctx>)>,
    ) -> Result<(), Fault> {
        let height = self.open_height();
        let archive = Arc::clone(&self.ports.archive);
        let kept = self.blocking(move || archive.undecided(height)).await?;
        let unfinished = !kept.is_empty();
        self.wait(Reply::Ready(reply), unfinished);
        Ok(())
    }

    pub(super) async fn on_finalized(
        &mut self,
        certificate: CommitCertificate<Ctx>,
        evidence: &MisbehaviorEvidence<Ctx>,
        reply: oneshot::Sender<Next<Ctx>>,
    ) -> Result<(), Fault> {
        self.report(evidence).await?;
        self.commit(certificate).await?;
        self.wait(Reply::Next(reply), false);
        Ok(())
    }

    /// Keeps the answer until the open height is due; `at_once` if it is already.
    fn wait(&mut self, reply: Reply, at_once: bool) {
        let height = self.open_height();
        let votes = self.own_turn_address();
        let pace = Arc::clone(&self.ports.pace);
        let after_start = matches!(reply, Reply::Ready(_));
        let is_only = votes.is_some_and(|own| self.tip.validators.is_only(&own));
        let others = votes.filter(|_| after_start && !is_only && self.publishes);
        let meets =
            others.map(|own| meeting::meet(self.peers.clone(), self.tip.validators.clone(), own));
        let due = tokio::spawn(async move {
            let meets = async {
                if let Some(meets) = meets {
                    meets.await;
                }
            };
            if votes.is_none() || at_once {
                return meets.await;
            }
            if is_only || !after_start {
                return pace.due(height).await;
            }
            let due = tokio::time::timeout(START_WAIT_MAX, pace.due(height));
            if tokio::join!(meets, due).1.is_err() {
                tracing::debug!(height, "starts to vote although no block is due here");
                pace.earliest(height).await;
            }
        });
        let due = AbortOnDropHandle::new(due);
        self.waiting = Some(Waiting { reply, due, is_woken: false });
    }

    /// Starts the open height as soon as it may be: another validator finds a block due.
    pub(super) fn wake(&mut self) {
        let height = self.open_height();
        let is_follower = self.own_turn_address().is_none();
        let Some(waiting) = self.waiting.as_mut().filter(|waiting| !waiting.is_woken) else {
            return;
        };
        if is_follower {
            // Its wait is over already.
            return;
        }
        let pace = Arc::clone(&self.ports.pace);
        let due = tokio::spawn(async move { pace.earliest(height).await });
        waiting.due = AbortOnDropHandle::new(due);
        waiting.is_woken = true;
    }

    /// Starts the open height, if the engine waits for that.
    pub(super) fn start_height(&mut self) {
        let Some(Waiting { reply, .. }) = self.waiting.take() else { return };
        let (height, params) = self.height_params();
        self.quorums.open(height.0, &self.tip.validators);
        if let Some(signer) = &self.signer {
            signer.set_alone(self.tip.validators.is_only(&signer.address()));
        }
        match reply {
            Reply::Ready(reply) => send(reply, (height, params)),
            Reply::Next(reply) => send(reply, Next::Start(height, params)),
        }
    }

    /// Wakes this validator if the event is another's vote for the open height. A vote of one that
    /// missed its turn shows that it is there, also if it comes too late for the engine.
    pub(super) fn on_event(&mut self, event: Result<Event<Ctx>, RecvError>) {
        let Ok(Event::Received(SignedConsensusMsg::Vote(vote))) = event else { return };
        let (fields, open) = (vote.message.fields(), self.open_height());
        let Some(voter) = self.tip.validators.by_address(&fields.validator) else { return };
        let wakes = self.waiting.is_some() && fields.height == open;
        let is_late = (open.saturating_sub(LATE_MAX)..open).contains(&fields.height);
        let returns = is_late && self.presence.has_missed(&voter.address);
        let signature = vote.signature.get();
        if !(wakes || returns) || !self.verifier.is_vote(&fields, &voter.public_key, &signature) {
            return;
        }
        if returns {
            self.presence.heard(voter.address, open);
        }
        if wakes {
            tracing::debug!(height = fields.height, voter = %fields.validator, "others vote");
            self.wake();
        }
    }
}
