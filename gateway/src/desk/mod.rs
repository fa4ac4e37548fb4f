//! The desk: takes requests in, has one worker for each that is not over, and tells how far they are.

mod blobs;
mod drain;
mod ended;
mod enter;
mod later;
mod progress;
mod work;

use std::collections::BTreeMap;
use std::sync::Arc;

use miner::chain::ChainError;
use miner::outbox::{Halt, Outbox, Setting as OutboxSetting};
use miner::ports::Clock;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use types::{Address, Keypair};

use crate::chain::{Node, PRICES_LAST};
use crate::lookout::Lookout;
use crate::openai::Fault;
use crate::question::{Prices, Question};
use crate::record::{Delivery, Phase, RequestId};
use crate::settings::Settings;
use crate::store::{Admission, Attached, NewRequest, Store};
pub use drain::DrainFault;
pub use ended::{Answered, Ended};
pub(crate) use enter::Entry;
pub use progress::Progress;

/// The first pause between two attempts, milliseconds.
const PAUSE_MS: u64 = 100;
/// How many blobs are stored at once, at most: the places of an outbox.
const BLOBS_AT_ONCE: usize = 16;
/// How many different requests are taken in at once, at most.
const ARRIVALS_AT_ONCE: usize = 64;

/// What a desk is made of.
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
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Ends everything.
    pub stop: CancellationToken,
}

/// The desk.
#[derive(Debug)]
pub struct Desk {
    pub(crate) settings: Settings,
    pub(crate) key: Keypair,
    pub(crate) store: Arc<Store>,
    pub(crate) node: Node,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) stop: CancellationToken,
    pub(crate) outbox: Outbox,
    lookout: Lookout,
    /// Cancelled once what was signed before the start has its fate.
    recovered: CancellationToken,
    live: Mutex<BTreeMap<RequestId, watch::Receiver<Progress>>>,
    prices: Mutex<Option<(Instant, (Prices, bool))>>,
    /// Held while a blob is stored, by the first byte of its hash: the same text is stored once.
    blobs: [tokio::sync::Mutex<()>; BLOBS_AT_ONCE],
    /// Held while a request is taken in, by its body: whoever repeats it finds its worker.
    arrivals: [tokio::sync::Mutex<()>; ARRIVALS_AT_ONCE],
    tasks: TaskTracker,
}

impl Desk {
    /// A desk at which nobody works yet.
    #[must_use]
    pub fn new(parts: Parts) -> Arc<Self> {
        let Parts { settings, key, store, node, clock, stop } = parts;
        let outbox = Outbox::new(OutboxSetting {
            key: key.clone(),
            clock: Arc::clone(&clock),
            ledger: Arc::new(node.miners.clone()),
            rows: Arc::<Store>::clone(&store),
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
            lookout: Lookout::default(),
            recovered: CancellationToken::new(),
            live: Mutex::default(),
            prices: Mutex::default(),
            blobs: std::array::from_fn(|_| tokio::sync::Mutex::new(())),
            arrivals: std::array::from_fn(|_| tokio::sync::Mutex::new(())),
            tasks: TaskTracker::new(),
        })
    }

    /// The wallet that pays.
    #[must_use]
    pub fn wallet(&self) -> Address {
        self.key.address()
    }

    /// Continues the requests that were open when the gateway last stopped, and watches the chain. Returns
    /// once the desk is stopped and all its tasks have ended.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub async fn run(self: &Arc<Self>) -> Result<(), Halt> {
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
            self.lookout.watch(&self.node.client, self.wallet(), &self.stop).await;
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

    /// Takes a request in, or finds the one that it repeats; which one, and how it goes on.
    ///
    /// # Errors
    /// Why it is not taken in.
    pub async fn take(
        self: &Arc<Self>,
        new: NewRequest,
        question: Question,
    ) -> Result<(RequestId, watch::Receiver<Progress>), Fault> {
        let desk = Arc::clone(self);
        // A client that hangs up meanwhile must not leave a request behind that nobody works on.
        let taken = self.tasks.spawn(async move { desk.take_now(new, question).await });
        taken.await.unwrap_or_else(|_broken| Err(Fault::internal()))
    }

    async fn take_now(
        self: &Arc<Self>,
        new: NewRequest,
        question: Question,
    ) -> Result<(RequestId, watch::Receiver<Progress>), Fault> {
        let place = usize::from(new.body.as_bytes()[0]) % ARRIVALS_AT_ONCE;
        let _turn = match self.arrivals.get(place) {
            Some(arrival) => Some(arrival.lock().await),
            None => None,
        };
        let admission = self.store.admit(new).await.map_err(|error| internal(&error))?;
        match admission {
            Admission::New(id) => Ok((id, self.spawn(id, Some(question)))),
            Admission::Known(Attached(id)) => {
                let known = self.live.lock().get(&id).cloned();
                Ok((id, known.unwrap_or_else(|| self.spawn(id, None))))
            }
            Admission::NameReused => Err(Fault::name_reused()),
            Admission::Refused(refused) => Err(Fault::refused(&refused)),
            Admission::WalletEmpty { left_micro } => Err(Fault::quota(format!(
                "the gateway's wallet {} has {left_micro} micro-OMBRA left",
                self.wallet()
            ))),
        }
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

    /// Writes down whether a client got its answer; nobody waits for that.
    pub fn deliver(self: &Arc<Self>, id: RequestId, delivery: Delivery) {
        let desk = Arc::clone(self);
        self.tasks.spawn(async move {
            if let Err(error) = desk.store.deliver(id, delivery).await {
                tracing::error!(%error, request = id.0, "what became of a connection is not written");
            }
        });
    }

    /// Has a worker bring a request to its end; how it goes on.
    fn spawn(
        self: &Arc<Self>,
        id: RequestId,
        question: Option<Question>,
    ) -> watch::Receiver<Progress> {
        let mut live = self.live.lock();
        if let Some(known) = live.get(&id) {
            return known.clone();
        }
        let (tell, hear) = watch::channel(Progress::default());
        live.insert(id, hear.clone());
        drop(live);
        let desk = Arc::clone(self);
        self.tasks.spawn(async move {
            match Box::pin(desk.work(id, question, &tell)).await {
                Ok(()) => (),
                Err(Halt::Stopped) => tell.send_modify(|it| it.end(Err(Fault::stopping()))),
                Err(Halt::Journal(error)) => {
                    tracing::error!(%error, "the store cannot be used; the gateway stops");
                    tell.send_modify(|it| it.end(Err(Fault::internal())));
                    desk.stop.cancel();
                }
            }
            desk.live.lock().remove(&id);
        });
        hear
    }
}

fn internal(error: &miner::journal::JournalError) -> Fault {
    tracing::error!(%error, "the store cannot be used");
    Fault::internal()
}
