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
//!   ([`super::meeting`]), and no longer than [`START_WAIT_MAX`] for more than the
//!   earliest moment.
//!
//! Votes are seen through the engine's event channel, which may drop events under load. Then the
//! next vote, the proposal or at last the heartbeat wakes the validator.

use std::future::pending;
use std::sync::Arc;

use malachitebft_app::engine::host::{HeightParams, Next};
use malachitebft_app::events::RxEvent;
use malachitebft_app::types::SignedConsensusMsg;
use malachitebft_app_channel::NetworkRequest;
use malachitebft_engine::util::events::Event;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::chain::AppChain;
use super::meeting::{START_WAIT_MAX, meet};
use super::messages::send;
use crate::engine::context::{Ctx, Height, Validators};
use crate::engine::signing::{Signer, Verifier};
use crate::engine::timeouts::HeightTimeouts;
use crate::presence::Presence;
use crate::{ConsensusFault, Pace, ValidatorSet};

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
struct Waiting {
    reply: Reply,
    due: AbortOnDropHandle<()>,
    /// Whether only the earliest moment is waited for.
    is_woken: bool,
}

/// The engine's next event; never if nobody listens.
pub(super) async fn next_event(events: Option<&mut RxEvent<Ctx>>) -> Result<Event<Ctx>, RecvError> {
    match events {
        Some(events) => events.recv().await,
        None => pending().await,
    }
}

/// Starts heights when they are due.
pub(super) struct HeightStarts {
    pace: Arc<dyn Pace>,
    signer: Option<Signer>,
    verifier: Verifier,
    timeouts: HeightTimeouts,
    presence: Presence,
    /// For looking at the engine's peers; none if there are no others.
    peers: Option<mpsc::Sender<NetworkRequest>>,
    waiting: Option<Waiting>,
}

/// What heights are started with.
pub(super) struct Needs {
    pub(super) pace: Arc<dyn Pace>,
    pub(super) signer: Option<Signer>,
    pub(super) verifier: Verifier,
    pub(super) timeouts: HeightTimeouts,
    pub(super) presence: Presence,
    pub(super) peers: Option<mpsc::Sender<NetworkRequest>>,
}

impl HeightStarts {
    pub(super) fn new(needs: Needs) -> Self {
        let Needs { pace, signer, verifier, timeouts, presence, peers } = needs;
        Self { pace, signer, verifier, timeouts, presence, peers, waiting: None }
    }

    /// Resolves when the wait is over; never without one.
    pub(super) async fn due(&mut self) -> Result<(), ConsensusFault> {
        match &mut self.waiting {
            Some(waiting) => {
                (&mut waiting.due).await.map_err(|panic| ConsensusFault::Panic(panic.to_string()))
            }
            None => pending().await,
        }
    }

    /// This set has decided a height in this round.
    pub(super) fn decided(&self, set: &ValidatorSet, height: u64, round: u32) {
        self.presence.decided(set, height, round);
    }

    /// Keeps the answer until the open height is due; `at_once` if it is already.
    pub(super) fn wait(&mut self, reply: Reply, at_once: bool, chain: &AppChain) {
        let height = chain.open_height();
        let votes = chain.own_turn_address();
        let pace = Arc::clone(&self.pace);
        let after_start = matches!(reply, Reply::Ready(_));
        let set = &chain.tip().validators;
        let is_only = votes.is_some_and(|own| set.is_only(&own));
        let others = votes.filter(|_| after_start && !is_only).zip(self.peers.clone());
        let meets = others.map(|(own, peers)| meet(peers, set.clone(), own));
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
    pub(super) fn wake(&mut self, chain: &AppChain) {
        let height = chain.open_height();
        let is_follower = chain.own_turn_address().is_none();
        let Some(waiting) = self.waiting.as_mut().filter(|waiting| !waiting.is_woken) else {
            return;
        };
        if is_follower {
            // Its wait is over already.
            return;
        }
        let pace = Arc::clone(&self.pace);
        let due = tokio::spawn(async move { pace.earliest(height).await });
        waiting.due = AbortOnDropHandle::new(due);
        waiting.is_woken = true;
    }

    /// The question that waits, if there is one; it is to be answered.
    pub(super) fn take(&mut self) -> Option<Reply> {
        self.waiting.take().map(|waiting| waiting.reply)
    }

    /// Has the engine start the open height.
    pub(super) fn start(&self, reply: Reply, chain: &AppChain) {
        let set = &chain.tip().validators;
        let timeouts = self.timeouts.without(self.presence.lost_rounds(set, chain.open_height()));
        let params = HeightParams::new(Validators::from(set), timeouts, None);
        let height = Height(chain.open_height());
        if let Some(signer) = &self.signer {
            signer.set_alone(set.is_only(&signer.address()));
        }
        match reply {
            Reply::Ready(reply) => send(reply, (height, params)),
            Reply::Next(reply) => send(reply, Next::Start(height, params)),
        }
    }

    /// Wakes this validator if the event is another's vote for the open height. A vote of one that
    /// missed its turn shows that it is there, also if it comes too late for the engine.
    pub(super) fn on_event(&mut self, event: Result<Event<Ctx>, RecvError>, chain: &AppChain) {
        let Ok(Event::Received(SignedConsensusMsg::Vote(vote))) = event else { return };
        let (fields, open) = (vote.message.fields(), chain.open_height());
        let Some(voter) = chain.tip().validators.by_address(&fields.validator) else { return };
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
            self.wake(chain);
        }
    }
}
