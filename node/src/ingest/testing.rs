//! A chain in a folder with the real pool, journal and verifier, for tests of what hands transactions in.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use genesis::Genesis;
use parking_lot::Mutex;
use state::Forks;
use state::block::{BlockBuilder, Executed};
use store::{Options, Store};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use txpool::ports::EventSink;
use txpool::verifier::Rules;
use txpool::{BlockLimits, Committed, Config, Pool, PoolEvent, Ports, Touched, Verifier};
use types::build::{Envelope, build_tx};
use types::tx::Transfer;
use types::{Amount, CheckedTx, Hash, Keypair};

use super::{IngestHandle, IngestService, Parts, Text, service};
use crate::adapters::pool::{Pending, PoolChain, PoolLedger};
use crate::chain::NodeChain;
use crate::chain_spec::ChainSpec;
use crate::clock::now_ms;
use crate::fault::NodeFault;
use crate::sync::SyncState;

/// How long something may take that has nothing to wait for.
const SOON: Duration = Duration::from_secs(20);

pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    timeout(SOON, work).await.expect("it takes too long")
}

/// Senders that have money: those with the numbers below this.
const SENDERS: u8 = 8;

/// What each operation of the pool accepted.
#[derive(Debug, Default)]
struct Operations(Mutex<Vec<Vec<Hash>>>);

impl EventSink for Operations {
    fn publish(&self, events: Vec<PoolEvent>) {
        let accepted = events.into_iter().filter_map(|event| match event {
            PoolEvent::Accepted { tx, .. } => Some(tx.hash()),
            PoolEvent::Promoted(_) | PoolEvent::Demoted(_) | PoolEvent::Dropped(_) => None,
        });
        let accepted: Vec<Hash> = accepted.collect();
        if !accepted.is_empty() {
            self.0.lock().push(accepted);
        }
    }

    fn executable(&self) {}
}

/// A chain with a few rich accounts, and an empty pool.
pub(crate) struct World {
    folder: TempDir,
    pub(crate) chain: Arc<NodeChain>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) sync: Arc<SyncState>,
    operations: Arc<Operations>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::of(SENDERS, &[], Forks::default())
    }

    /// The same with so many rich accounts, and with these parameters and forks.
    pub(crate) fn of(senders: u8, params: &[String], forks: Forks) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let accounts = (0..senders).map(|number| (key(number).address(), Amount::new(1_000_000)));
        let validator = Keypair::from_seed(&[255; 32]).public_key();
        let genesis =
            Genesis::dev("test", 1, validator, accounts.collect(), params, forks).unwrap();
        let store = Store::open(&folder.path().join("database"), Options::default()).unwrap();
        let spec = ChainSpec::of(&genesis).unwrap();
        let chain = Arc::new(NodeChain::open(store, spec, &genesis.state()).unwrap());
        let operations = Arc::<Operations>::default();
        let pending = Arc::new(Pending::new(Arc::clone(&chain)).unwrap());
        let ports = Ports {
            ledger: Box::new(PoolLedger(Arc::clone(&pending))),
            chain: Arc::new(PoolChain(pending)),
            events: Arc::<Operations>::clone(&operations),
        };
        let skew = chain.spec().params().max_clock_skew_ms;
        let journal = folder.path().join("journal");
        let pool = Pool::with_journal(Config::default(), skew, ports, &journal).unwrap();
        pool.restore(&verifier(&chain.spec().static_rules()), 1, now_ms()).unwrap();
        Self { folder, chain, pool: Arc::new(pool), sync: Arc::default(), operations }
    }

    /// A chain, and an ingest service over its pool.
    pub(crate) fn with_service() -> (Self, IngestHandle, IngestService) {
        let world = Self::new();
        let (handle, service) = service(Parts {
            chain: Arc::clone(&world.chain),
            pool: Arc::clone(&world.pool),
            verifier: world.verifier(),
            sync: Arc::clone(&world.sync),
        });
        (world, handle, service)
    }

    fn verifier(&self) -> Verifier {
        verifier(&self.chain.spec().static_rules())
    }

    /// What a text is once it is checked.
    pub(crate) fn checked(&self, text: &str) -> CheckedTx {
        self.verifier().check(vec![bytes(text)], 1).remove(0).unwrap()
    }

    /// Puts a transaction into the pool, not through the service.
    pub(crate) fn admit(&self, text: &str) {
        self.pool.submit(&[self.checked(text)], now_ms()).remove(0).unwrap();
    }

    /// Commits a block of everything that is pending.
    pub(crate) fn commit(&self) {
        let (rules, store) = (Arc::clone(&self.chain.spec().rules), self.chain.store());
        let (base, parent) = (store.latest(), store.parent().unwrap());
        let proposer = Keypair::from_seed(&[255; 32]);
        let mut builder = BlockBuilder::new(rules, base, parent, &proposer, now_ms()).unwrap();
        let limits = BlockLimits { bytes: usize::MAX, count: usize::MAX };
        for tx in self.pool.candidates(limits) {
            builder.push(&tx).unwrap();
        }
        let executed = builder.finish().unwrap();
        self.chain.commit(executed.block.hash(), &executed, &[]).unwrap();
        let Executed { block, events, .. } = &executed;
        let touched = Touched::by(events);
        let included = Committed { included: &block.transactions, touched: &touched };
        self.pool.committed(&included, now_ms()).unwrap();
    }

    /// Takes the folder of the journal away, which must not have been written yet.
    pub(crate) fn break_journal(&self) {
        std::fs::remove_dir_all(self.journal()).unwrap();
    }

    /// Lets the journal be written again.
    pub(crate) fn mend_journal(&self) {
        std::fs::create_dir(self.journal()).unwrap();
    }

    fn journal(&self) -> PathBuf {
        self.folder.path().join("journal")
    }

    /// What each operation of the pool accepted so far, in order.
    pub(crate) fn operations(&self) -> Vec<Vec<Hash>> {
        self.operations.0.lock().clone()
    }
}

/// A service that runs until the test ends.
pub(crate) struct Started {
    stop: CancellationToken,
    pub(crate) task: JoinHandle<Result<(), NodeFault>>,
}

impl Started {
    pub(crate) fn new(service: IngestService) -> Self {
        let stop = CancellationToken::new();
        Self { stop: stop.clone(), task: tokio::spawn(service.run(stop)) }
    }

    pub(crate) async fn end(self) {
        self.stop.cancel();
        soon(self.task).await.unwrap().unwrap();
    }
}

fn verifier(rules: &Rules) -> Verifier {
    Verifier::new(rules.clone(), NonZeroUsize::MIN).unwrap()
}

pub(crate) fn key(number: u8) -> Keypair {
    Keypair::from_seed(&[number; 32])
}

/// A signed transfer of so much. Accounts above the first eight have no money.
pub(crate) fn transfer(sender: u8, nonce: u64, micro: u64) -> String {
    let to = Keypair::from_seed(&[200; 32]).address();
    let fields = Transfer::new(to, Amount::new(micro), Amount::ZERO);
    let envelope = Envelope::new(nonce, now_ms(), Some("test".to_owned()));
    build_tx(&key(sender), &fields.into(), &envelope)
}

/// The same transaction with another one's signature.
pub(crate) fn badly_signed(text: &str) -> String {
    let other = transfer(SENDERS, 0, 1);
    let signature = |text: &str| text.rsplit('"').nth(1).unwrap().to_owned();
    text.replace(&signature(text), &signature(&other))
}

pub(crate) fn bytes(text: &str) -> Text {
    text.as_bytes().into()
}
