//! The service itself: what it holds, its start and its end, and a worker for each request.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent::clock::Clock;
use futures::future::BoxFuture;
use miner::chain::ChainError;
use miner::outbox::{Halt, Outbox, Setting as OutboxSetting};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use types::{Address, Keypair};

use super::Progress;
use super::fates::Fates;
use crate::chain::{Node, PRICES_LAST};
use crate::chain_events::ChainEvents;
use crate::key_turns::KeyTurns;
use crate::market::{Agents, CallQuestion, Pinned};
use crate::openai::ApiFault;
use crate::operate::Watch;
use crate::question::{Prices, Question};
use crate::record::{Delivery, Phase, RequestId};
use crate::settings::Settings;
use crate::store::Store;

/// The first pause between two attempts, milliseconds.
pub(super) const PAUSE_MS: u64 = 100;
/// How many blobs are stored at once, at most: the places of an outbox.
const BLOBS_AT_ONCE: usize = 16;
/// How many different requests are taken in at once, at most.
pub(super) const ARRIVALS_AT_ONCE: usize = 64;

/// A request that was taken in, and how it goes on.
pub(crate) type Submitted = (RequestId, watch::Receiver<Progress>);

/// What a service is made of.
#[derive(Debug)]
pub struct Parts {
    /// The settings.
    pub settings: Settings,
    /// The wallet that pays.
    pub key: Keypair,
    /// The store.
    pub store: Arc<Store>,
    /// The node.
    pub node: Node,
    /// The chain's name.
    pub chain_id: String,
    /// The agents' methods that the settings make tools of.
    pub pinned: Vec<Pinned>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Ends everything.
    pub stop: CancellationToken,
}

/// What a request asks of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Job {
    /// A question to a miner.
    Ask(Question),
    /// A call of an agent.
    Call(CallQuestion),
}

/// Takes requests in, and has one worker for each that is not over.
#[derive(Debug)]
pub struct RequestService {
    pub(crate) settings: Settings,
    pub(crate) key: Keypair,
    pub(crate) store: Arc<Store>,
    pub(crate) node: Node,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) stop: CancellationToken,
    pub(crate) outbox: Outbox,
    /// The agents' methods that the settings make tools of.
    pub(crate) pinned: Vec<Pinned>,
    /// The chain's name, which is part of the ids of calls.
    pub(super) chain_id: String,
    pub(super) agents: Agents,
    pub(super) chain_events: ChainEvents,
    /// Cancelled once what was signed before the start has its fate.
    pub(super) recovered: CancellationToken,
    /// What the workers tell of their requests, as long as they work or somebody listens.
    pub(super) live: Mutex<BTreeMap<RequestId, watch::Sender<Progress>>>,
    pub(super) prices: Mutex<Option<(Instant, (Prices, bool))>>,
    /// Held while a blob is stored, by the first byte of its hash: the same text is stored once.
    pub(super) blobs: [tokio::sync::Mutex<()>; BLOBS_AT_ONCE],
    /// Held while a request is taken in, by its body: whoever repeats it finds its worker.
    pub(super) arrivals: [tokio::sync::Mutex<()>; ARRIVALS_AT_ONCE],
    pub(super) tasks: TaskTracker,
    /// The bodies of requests that are read.
    pub(crate) body_turns: KeyTurns,
    /// The answers that are sent to clients.
    pub(crate) answer_turns: KeyTurns,
    pub(crate) watch: Watch,
}

impl RequestService {
    /// A service at which nobody works yet.
    #[must_use]
    pub fn new(parts: Parts) -> Arc<Self> {
        let Parts { settings, key, store, node, chain_id, pinned, clock, stop } = parts;
        let fates = Fates { store: Arc::clone(&store), node: node.clone(), stop: stop.clone() };
        let outbox = Outbox::new(OutboxSetting {
            key: key.clone(),
            clock: Arc::clone(&clock),
            ledger: Arc::new(node.miners.clone()),
            rows: Arc::new(fates),
            pause_ms: PAUSE_MS,
            stop: stop.clone(),
        });
        Arc::new(Self {
            settings,
            key,
            store,
            node,
            clock,
            stop,
            outbox,
            pinned,
            chain_id,
            agents: Agents::default(),
            chain_events: ChainEvents::default(),
            recovered: CancellationToken::new(),
            live: Mutex::default(),
            prices: Mutex::default(),
            blobs: std::array::from_fn(|_| tokio::sync::Mutex::new(())),
            arrivals: std::array::from_fn(|_| tokio::sync::Mutex::new(())),
            tasks: TaskTracker::new(),
            body_turns: KeyTurns::default(),
            answer_turns: KeyTurns::default(),
            watch: Watch::default(),
        })
    }

    /// The wallet that pays.
    #[must_use]
    pub fn wallet(&self) -> Address {
        self.key.address()
    }

    /// Continues the requests that were open when the gateway last stopped, and watches the chain. Returns
    /// once the service is stopped and all its tasks have ended.
    ///
    /// # Errors
    /// When the store cannot be used.
    #[must_use]
    pub fn run(self: &Arc<Self>) -> BoxFuture<'_, Result<(), Halt>> {
        Box::pin(self.run_service())
    }

    async fn run_service(self: &Arc<Self>) -> Result<(), Halt> {
        let outcome = tokio::select! {
            biased;
            () = self.stop.cancelled() => Ok(()),
            outcome = self.go_on() => outcome,
        };
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        match outcome {
            Err(Halt::Stopped) | Ok(()) => Ok(()),
            Err(halt) => Err(halt),
        }
    }

    async fn go_on(self: &Arc<Self>) -> Result<(), Halt> {
        self.store.lose_connections().await?;
        let slips: Vec<_> = self.store.outbox()?.into_iter().map(|(slip, _)| slip).collect();
        let watching = async {
            self.chain_events.watch(&self.node.client, self.wallet(), &self.stop).await;
            Ok(())
        };
        let recovering = async {
            self.outbox.recover(&slips).await?;
            let mut interrupted = Vec::new();
            for record in self.store.open_requests()? {
                let progress = self.spawn(record.id, None);
                if matches!(record.phase, Phase::Reserved) {
                    interrupted.push(progress);
                }
            }
            // The chain was never asked, so these end at once. A retry of one is a request of its own.
            for mut progress in interrupted {
                drop(progress.wait_for(|it| it.ended.is_some()).await);
            }
            self.recovered.cancel();
            Ok::<(), Halt>(())
        };
        tokio::try_join!(recovering, watching).map(|((), ())| ())
    }

    /// The store.
    #[must_use]
    pub const fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Whether requests can be taken in.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.recovered.is_cancelled() && !self.stop.is_cancelled()
    }

    /// What things cost now, and whether runs can be protected.
    ///
    /// # Errors
    /// When the node does not answer.
    pub async fn prices(&self) -> Result<(Prices, bool), ChainError> {
        let known = *self.prices.lock();
        if let Some((_, prices)) = known.filter(|(at, _)| at.elapsed() < PRICES_LAST) {
            return Ok(prices);
        }
        let prices = self.node.prices().await?;
        *self.prices.lock() = Some((Instant::now(), prices));
        Ok(prices)
    }

    /// Writes down whether a client got its answer; nobody waits for that, and whoever is taken in after
    /// this finds it.
    pub fn deliver(self: &Arc<Self>, id: RequestId, delivery: Delivery) {
        let (service, ordered) = (Arc::clone(self), self.store.deliver_next(id, delivery));
        self.tasks.spawn(async move {
            let written = match ordered {
                Some(written) => written.await,
                None => service.store.deliver(id, delivery).await,
            };
            if let Err(error) = written {
                tracing::error!(%error, request = id.0, "cannot record how a connection ended");
            }
        });
    }

    /// Has a worker bring a request to its end; how it goes on.
    pub(super) fn spawn(
        self: &Arc<Self>,
        id: RequestId,
        job: Option<Job>,
    ) -> watch::Receiver<Progress> {
        let mut live = self.live.lock();
        if let Some(known) = live.get(&id) {
            return known.subscribe();
        }
        let (tell, hear) = watch::channel(Progress::default());
        live.insert(id, tell.clone());
        drop(live);
        let service = Arc::clone(self);
        self.tasks.spawn(async move {
            match Box::pin(service.work(id, job, &tell)).await {
                Ok(()) => (),
                Err(Halt::Stopped) => tell.send_modify(|it| it.end(Err(ApiFault::stopping()))),
                Err(Halt::Journal(error)) => {
                    tracing::error!(%error, "the store cannot be used; the gateway stops");
                    tell.send_modify(|it| it.end(Err(ApiFault::internal())));
                    service.stop.cancel();
                }
            }
            service.forget(id, &tell).await;
        });
        hear
    }

    /// Forgets what was told of a request, once nobody listens any more: until then, whoever repeats the
    /// request shares its answer, which is kept in memory once.
    async fn forget(&self, id: RequestId, tell: &watch::Sender<Progress>) {
        loop {
            tokio::select! {
                () = self.stop.cancelled() => (),
                () = tell.closed() => (),
            }
            let mut live = self.live.lock();
            if tell.is_closed() || self.stop.is_cancelled() {
                live.remove(&id);
                return;
            }
        }
    }
}
