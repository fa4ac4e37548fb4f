//! The loop between the engine and the ledger: one task, messages handled in order, each
//! answered.
//!
//! Answers that take a decision of the ledger are awaited in place, on a blocking thread: the
//! engine waits for most of them anyway, and order is what makes the loop easy to reason about.
//! The one answer that may take seconds, when to start the next height, is kept in
//! [`waiting::Waiting`] while the loop goes on.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use malachitebft_app::events::RxEvent;
use malachitebft_app_channel::{AppMsg, NetworkMsg, NetworkRequest};
use malachitebft_core_types::{HeightParams, Round};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use types::Address;

use crate::engine::context::{Ctx, Height, Validators};
use crate::engine::patience::Patience;
use crate::engine::signing::{Signer, Verifier};
use crate::parts::assembler::{Assembler, Limits};
use crate::presence::Presence;
use crate::quorums::Quorums;
use crate::{Counters, Fault, LedgerFault, Ports, Tip};

mod audience;
mod bodies;
mod decide;
mod evidence;
mod meeting;
mod propose;
mod sync;
mod timing;
mod waiting;

use bodies::Bodies;
use propose::Outlined;
use waiting::Waiting;

/// The longest that a validator of a larger set waits for a due block when it starts. Until its
/// first height starts, the engine keeps messages of others back, so nothing could wake it.
const START_WAIT_MAX: Duration = Duration::from_secs(3);

/// How long the engine may take until it listens for others.
const READY_WAIT_MAX: Duration = Duration::from_secs(30);

/// Bodies of one proposer that are put together at a time: an honest one has one for each of its
/// turns, and others may send it again at the same time.
const STREAMS_PER_PROPOSER_MAX: usize = 4;

/// Bodies of one proposer that one node sends at a time, and streams of one node without heads.
const STREAMS_PER_PUBLISHER_MAX: usize = 2;

/// Streams without heads that are kept at a time.
const EARLY_STREAMS_MAX: usize = 8;

/// Chunks kept of a body whose head has not come yet.
const EARLY_CHUNKS_MAX: usize = 16;

/// What the loop needs, apart from its channels.
pub(crate) struct Setup {
    pub(crate) ports: Ports,
    pub(crate) signer: Option<Signer>,
    /// The loop ends when this is over: from then on the validator may sign.
    pub(crate) follows: Option<Follows>,
    /// The loop ends when nobody has heard this node for so long; without it, it does not.
    pub(crate) unheard_max: Option<Duration>,
    pub(crate) verifier: Verifier,
    pub(crate) timeouts: Patience,
    pub(crate) presence: Presence,
    /// Whether bodies are sent to others.
    pub(crate) publishes: bool,
    pub(crate) network: mpsc::Sender<NetworkMsg<Ctx>>,
    /// For looking at the engine's peers.
    pub(crate) peers: mpsc::Sender<NetworkRequest>,
    pub(crate) counters: Counters,
    pub(crate) block_bytes_max: usize,
    pub(crate) tip: Tip,
}

/// What a validator follows for without signing.
#[derive(Clone, Debug)]
pub(crate) struct Follows {
    /// Until this height is decided; none if no height has to be.
    pub(crate) until: Option<u64>,
    /// And until the node allows it.
    pub(crate) may_sign: CancellationToken,
}

impl Follows {
    /// Whether the validator may sign what comes after a block of this height.
    pub(crate) fn is_over(&self, height: u64) -> bool {
        self.may_sign.is_cancelled() && self.until.is_none_or(|until| height >= until)
    }
}

/// The loop's state.
pub(crate) struct App {
    ports: Ports,
    signer: Option<Signer>,
    follows: Option<Follows>,
    unheard_max: Option<Duration>,
    verifier: Verifier,
    timeouts: Patience,
    presence: Presence,
    /// What a quorum has voted for in the open height.
    quorums: Quorums,
    publishes: bool,
    network: mpsc::Sender<NetworkMsg<Ctx>>,
    peers: mpsc::Sender<NetworkRequest>,
    counters: Counters,
    block_bytes_max: usize,
    /// The last commit; what comes next is judged against it.
    tip: Tip,
    /// The round of the open height that has started last.
    round: u32,
    bodies: Bodies,
    /// The bodies of the last outlines that were sent, oldest first; others may need them whole.
    outlined: VecDeque<Outlined>,
    waiting: Option<Waiting>,
}

/// How the loop ended in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// It was asked to.
    Asked,
    /// What the validator had to follow for is over.
    MaySign,
    /// Nobody hears what the validator publishes.
    Unheard,
}

/// How the loop ended without being asked.
pub(crate) enum Ended {
    /// Something failed here.
    Fault(Fault),
    /// The engine closed its channel.
    EngineGone,
}

impl From<Fault> for Ended {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl App {
    pub(crate) fn new(setup: Setup) -> Self {
        let Setup {
            ports,
            signer,
            follows,
            unheard_max,
            verifier,
            timeouts,
            presence,
            publishes,
            network,
            peers,
            counters,
            block_bytes_max,
            tip,
        } = setup;
        let limits = Limits {
            body_bytes_max: block_bytes_max,
            per_proposer_max: STREAMS_PER_PROPOSER_MAX,
            per_publisher_max: STREAMS_PER_PUBLISHER_MAX,
            early_streams_max: EARLY_STREAMS_MAX,
            early_chunks_max: EARLY_CHUNKS_MAX,
        };
        Self {
            ports,
            signer,
            follows,
            unheard_max,
            quorums: verifier.quorums(),
            verifier,
            timeouts,
            presence,
            publishes,
            network,
            peers,
            counters,
            block_bytes_max,
            tip,
            round: 0,
            bodies: Bodies::new(Assembler::new(limits)),
            outlined: VecDeque::new(),
            waiting: None,
        }
    }

    /// Serves the engine until `stop`, a fault, the end of the engine, until a validator that follows may
    /// sign, or until one that signs has been unheard for too long.
    ///
    /// Order of the branches: stop first; then messages, which carry deadlines; then what can
    /// wait a moment.
    pub(crate) async fn run(
        &mut self,
        messages: &mut mpsc::Receiver<AppMsg<Ctx>>,
        mut events: Option<RxEvent<Ctx>>,
        stop: &CancellationToken,
    ) -> Result<End, Ended> {
        let mut unheard = pin!(audience::lost(self.peers.clone(), self.unheard_max));
        let first = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(End::Asked),
            first = tokio::time::timeout(READY_WAIT_MAX, messages.recv()) => first,
        };
        match first {
            Ok(Some(message)) => self.handle(message).await?,
            Ok(None) => return Err(Ended::EngineGone),
            Err(_elapsed) => return Err(Fault::NotReady.into()),
        }
        loop {
            if self.follows.as_ref().is_some_and(|it| it.is_over(self.tip.height)) {
                return Ok(End::MaySign);
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(End::Asked),
                message = messages.recv() => match message {
                    Some(message) => self.handle(message).await?,
                    None => return Err(Ended::EngineGone),
                },
                due = waiting::due(self.waiting.as_mut()) => {
                    due?;
                    self.start_height();
                }
                event = waiting::next_event(events.as_mut()) => self.on_event(event),
                () = &mut unheard => return Ok(End::Unheard),
                // Looked at above.
                () = waiting::allowed(self.follows.as_ref()) => {}
            }
        }
    }

    async fn handle(&mut self, message: AppMsg<Ctx>) -> Result<(), Fault> {
        match message {
            AppMsg::ConsensusReady { reply } => self.on_ready(reply).await?,
            AppMsg::StartedRound { height, round, reply_value, .. } => {
                let values = self.on_started_round(height, round).await?;
                send(reply_value, values);
            }
            AppMsg::GetValue { height, round, reply, .. } => {
                self.on_get_value(height, round, reply).await?;
            }
            AppMsg::ReceivedProposalPart { from, published_by, part, reply } => {
                let value = self.on_part(published_by.unwrap_or(from), part).await?;
                send(reply, value);
            }
            AppMsg::RestreamProposal { height, value_id, .. } => {
                self.on_restream(height, value_id).await?;
            }
            AppMsg::Decided { certificate, reply, .. } => {
                self.commit(certificate).await?;
                send(reply, ());
            }
            AppMsg::Finalized { certificate, evidence, reply, .. } => {
                self.on_finalized(certificate, &evidence, reply).await?;
            }
            AppMsg::GetDecidedValues { range, reply } => {
                let values = self.on_get_decided(range).await?;
                send(reply, values);
            }
            AppMsg::GetHistoryMinHeight { reply } => {
                let archive = Arc::clone(&self.ports.archive);
                let earliest = self.blocking(move || archive.earliest()).await?;
                send(reply, Height(earliest));
            }
            AppMsg::ProcessSyncedValue { height, round, proposer, value_bytes, reply } => {
                let outcome = self.on_synced(height, round, proposer, value_bytes).await?;
                send(reply, outcome);
            }
            AppMsg::ExtendVote { reply, .. } => send(reply, None),
            AppMsg::VerifyVoteExtensions { extensions, reply, .. } => {
                send(reply, sync::refuse_extensions(extensions));
            }
        }
        Ok(())
    }

    /// Runs a call of the ledger on a blocking thread.
    async fn blocking<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> Result<T, LedgerFault> + Send + 'static,
    ) -> Result<T, Fault> {
        match tokio::task::spawn_blocking(call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(source)) => Err(Fault::Ledger { height: self.open_height(), source }),
            Err(panic) => Err(Fault::Panic(panic.to_string())),
        }
    }

    /// The height that is being decided, or will be next.
    const fn open_height(&self) -> u64 {
        self.tip.height.saturating_add(1)
    }

    /// Our address, if we may vote on the open height.
    fn own_turn_address(&self) -> Option<Address> {
        let address = self.signer.as_ref()?.address();
        self.tip.validators.by_address(&address).map(|validator| validator.address)
    }

    fn height_params(&self) -> (Height, HeightParams<Ctx>) {
        let (set, height) = (&self.tip.validators, self.open_height());
        let timeouts = self.timeouts.without(self.presence.lost_rounds(set, height));
        (Height(height), HeightParams::new(Validators::from(set), timeouts, None))
    }
}

/// Answers the engine. It is gone only while it stops, and then nobody needs the answer.
fn send<T>(reply: tokio::sync::oneshot::Sender<T>, answer: T) {
    if reply.send(answer).is_err() {
        tracing::debug!("the engine no longer waits for an answer");
    }
}

/// A round as the ledger counts it. Rounds of messages are always defined.
fn number(round: Round) -> u32 {
    round.as_u32().unwrap_or(0)
}

#[cfg(test)]
mod tests;
