//! The loop between the engine and the ledger: one task, messages handled in order, each
//! answered.
//!
//! Answers that take a decision of the ledger are awaited in place, on a blocking thread: the
//! engine waits for most of them anyway, and order is what makes the loop easy to reason about.
//! The one answer that may take seconds, when to start the next height, is kept in
//! [`waiting::HeightStarts`] while the loop goes on.
//!
//! The loop only passes messages on: its parts own what they need and know of each other only what they
//! are given.

use std::pin::pin;
use std::time::Duration;

use malachitebft_app::events::RxEvent;
use malachitebft_app::types::streaming::StreamMessage;
use malachitebft_app::types::{PeerId, ProposedValue};
use malachitebft_app_channel::{AppMsg, NetworkMsg, NetworkRequest};
use malachitebft_core_types::{CommitCertificate, Round};
use malachitebft_engine::util::streaming::StreamContent;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use types::Hash;

use crate::admission::Admission;
use crate::engine::context::{Ctx, Height};
use crate::engine::signing::{Signer, Verifier};
use crate::engine::timeouts::HeightTimeouts;
use crate::parts::Part;
use crate::presence::Presence;
use crate::validator_nodes::ValidatorNodes;
use crate::{ConsensusFault, Counters, Ports, Tip};

mod audience;
mod bodies;
mod certificates;
mod chain;
mod evidence;
mod follows;
mod meeting;
mod messages;
mod propose;
mod sync;
mod timing;
mod validation;
mod waiting;

use bodies::Bodies;
use chain::AppChain;
pub(crate) use follows::Follows;
use messages::send;
use propose::Proposer;
use sync::BlockSync;
use validation::Validation;
use waiting::{HeightStarts, Needs, Reply};

/// How long the engine may take until it listens for others.
const READY_WAIT_MAX: Duration = Duration::from_secs(30);

/// What the loop needs, apart from its channels.
pub(crate) struct Setup {
    pub(crate) ports: Ports,
    pub(crate) signer: Option<Signer>,
    /// The loop ends when this is over: from then on the validator may sign.
    pub(crate) follows: Option<Follows>,
    /// The loop ends when nobody has heard this node for so long; without it, it does not.
    pub(crate) unheard_max: Option<Duration>,
    pub(crate) verifier: Verifier,
    /// What the engine is given of what others send, which depends on the tip.
    pub(crate) admission: Admission,
    pub(crate) timeouts: HeightTimeouts,
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

/// The loop's parts.
pub(crate) struct App {
    follows: Option<Follows>,
    unheard_max: Option<Duration>,
    /// For looking at the engine's peers.
    peers: mpsc::Sender<NetworkRequest>,
    validator_nodes: ValidatorNodes,
    admission: Admission,
    counters: Counters,
    chain: AppChain,
    proposer: Proposer,
    validation: Validation,
    starts: HeightStarts,
    sync: BlockSync,
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
    Fault(ConsensusFault),
    /// The engine closed its channel.
    EngineGone,
}

impl From<ConsensusFault> for Ended {
    fn from(fault: ConsensusFault) -> Self {
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
            admission,
            timeouts,
            presence,
            publishes,
            network,
            peers,
            counters,
            block_bytes_max,
            tip,
        } = setup;
        let Ports { ledger, archive, pace, clock, counters: _ } = ports;
        let own = signer.as_ref().map(Signer::address);
        admission.set_tip(&tip);
        let validator_nodes = ValidatorNodes::default();
        let bodies = Bodies::of_size(block_bytes_max, validator_nodes.clone());
        let will_vote = follows.is_some();
        Self {
            follows,
            unheard_max,
            chain: AppChain::new(ledger, archive, own, tip),
            proposer: Proposer::new(signer.clone(), publishes, network, counters.clone()),
            validation: Validation::new(
                bodies,
                verifier.clone(),
                clock,
                will_vote,
                counters.clone(),
            ),
            starts: HeightStarts::new(Needs {
                pace,
                signer,
                verifier,
                timeouts,
                presence,
                peers: publishes.then(|| peers.clone()),
            }),
            sync: BlockSync { block_bytes_max },
            peers,
            validator_nodes,
            admission,
            counters,
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
        let validator_nodes = self.validator_nodes.clone();
        let mut learns = pin!(validator_nodes.learn(self.peers.clone()));
        let first = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(End::Asked),
            first = tokio::time::timeout(READY_WAIT_MAX, messages.recv()) => first,
        };
        match first {
            Ok(Some(message)) => self.handle(message).await?,
            Ok(None) => return Err(Ended::EngineGone),
            Err(_elapsed) => return Err(ConsensusFault::NotReady.into()),
        }
        loop {
            if self.follows.as_ref().is_some_and(|it| it.is_over(self.chain.tip().height)) {
                return Ok(End::MaySign);
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(End::Asked),
                message = messages.recv() => match message {
                    Some(message) => self.handle(message).await?,
                    None => return Err(Ended::EngineGone),
                },
                due = self.starts.due() => {
                    due?;
                    self.start_height();
                }
                event = waiting::next_event(events.as_mut()) => {
                    self.starts.on_event(event, &self.chain);
                }
                () = &mut unheard => return Ok(End::Unheard),
                never = &mut learns => match never {},
                // Looked at above.
                () = follows::allowed(self.follows.as_ref()) => {}
            }
        }
    }

    async fn handle(&mut self, message: AppMsg<Ctx>) -> Result<(), ConsensusFault> {
        match message {
            AppMsg::ConsensusReady { reply } => {
                let height = self.chain.open_height();
                let kept = self.chain.archive(move |archive| archive.undecided(height)).await?;
                let unfinished = !kept.is_empty();
                self.starts.wait(Reply::Ready(reply), unfinished, &self.chain);
            }
            AppMsg::StartedRound { height, round, reply_value, .. } => {
                let values = self.on_started_round(height, round).await?;
                send(reply_value, values);
            }
            AppMsg::GetValue { height, round, reply, .. } => {
                self.proposer.on_get_value(height, round, reply, &self.chain).await?;
            }
            AppMsg::ReceivedProposalPart { from, published_by, part, reply } => {
                let value = self.on_part(published_by.unwrap_or(from), part).await?;
                send(reply, value);
            }
            AppMsg::RestreamProposal { height, value_id, .. } => {
                self.proposer.on_restream(height, value_id, &self.chain).await?;
            }
            AppMsg::Decided { certificate, reply, .. } => {
                self.commit(certificate).await?;
                send(reply, ());
            }
            AppMsg::Finalized { certificate, evidence, reply, .. } => {
                evidence::report(&evidence, &self.chain, &self.counters).await?;
                self.commit(certificate).await?;
                self.starts.wait(Reply::Next(reply), false, &self.chain);
                // Its proposal came before this node had committed the height before.
                if self.validation.bodies.has_parked(self.chain.open_height()) {
                    self.starts.wake(&self.chain);
                }
            }
            AppMsg::GetDecidedValues { range, reply } => {
                let values = self.sync.on_get_decided(range, &self.chain).await?;
                send(reply, values);
            }
            AppMsg::GetHistoryMinHeight { reply } => {
                let earliest = self.chain.archive(|archive| archive.earliest()).await?;
                send(reply, Height(earliest));
            }
            AppMsg::ProcessSyncedValue { height, round, proposer, value_bytes, reply } => {
                let block = (proposer, value_bytes);
                let outcome = self.sync.on_synced(height, round, block, &self.chain).await?;
                send(reply, outcome);
            }
            AppMsg::ExtendVote { reply, .. } => send(reply, None),
            AppMsg::VerifyVoteExtensions { extensions, reply, .. } => {
                send(reply, sync::refuse_extensions(extensions));
            }
        }
        Ok(())
    }

    async fn on_started_round(
        &mut self,
        height: Height,
        round: Round,
    ) -> Result<Vec<ProposedValue<Ctx>>, ConsensusFault> {
        self.validation.start_round(height, round, &self.chain, &self.proposer).await
    }

    /// Takes a part of a body; answers with its value when it is whole and its height is open, or else
    /// with that of one that a quorum has voted for although it came at the wrong time.
    async fn on_part(
        &mut self,
        publisher: PeerId,
        part: StreamMessage<Part>,
    ) -> Result<Option<ProposedValue<Ctx>>, ConsensusFault> {
        let Self { chain, proposer, validation, starts, .. } = self;
        if let StreamContent::Data(Part::Want(digest)) = part.content {
            proposer.on_want(&Hash::new(digest)).await;
            return validation.judge_agreed(chain, proposer).await;
        }
        let (is_announced, body) = validation.take_part(publisher, part, chain);
        if is_announced {
            starts.wake(chain);
        }
        if let Some(body) = body
            && let Some(value) = validation.on_body(publisher, body, chain, proposer).await?
        {
            return Ok(Some(value));
        }
        validation.judge_agreed(chain, proposer).await
    }

    /// Makes a decided block final, unless it is already.
    async fn commit(&mut self, certificate: CommitCertificate<Ctx>) -> Result<(), ConsensusFault> {
        let certificate = certificates::from_engine(&certificate);
        let height = certificate.height;
        let tip = self.chain.tip();
        if height <= tip.height {
            return Ok(());
        }
        self.starts.decided(&tip.validators, height, certificate.round);
        self.chain.commit(certificate).await?;
        self.admission.set_tip(self.chain.tip());
        self.validation.prune(height);
        self.counters.commits.inc();
        Ok(())
    }

    /// Starts the open height, if the engine waits for that.
    fn start_height(&mut self) {
        let Some(reply) = self.starts.take() else { return };
        self.validation.open(self.chain.open_height(), &self.chain.tip().validators);
        self.admission.start(self.chain.open_height());
        self.starts.start(reply, &self.chain);
    }
}

#[cfg(test)]
mod tests;
