//! What the store holds over interruptions, and that no money is reserved twice or lost.

use std::path::Path;
use std::sync::Arc;

use agent::clock::Clock;
use miner::outbox::{Rows as _, Slip, Verdict};
use redb::{ReadableDatabase as _, ReadableTableMetadata as _};
use tempfile::TempDir;
use types::{Address, Hash};
use wallet::ChainIdentity;

use super::tables::{BODIES, NAMES, REQUESTS};
use super::{
    About, Admission, Attached, Identity, KeyFault, NewRequest, OpenError, Store, TakenBack,
};
use crate::keys::{Key, hash_of};
use crate::money::{Budget, Limits, Period, Refused};
use crate::operate::Event;
use crate::record::{Bill, Delivery, Phase, Purpose, RequestId, Unpaid};
use crate::testing::{self, NOW_MS, TestClock, Told, wants};

const WALLET: Address = Address::new([7; 20]);

struct Bench {
    store: Store,
    clock: Arc<TestClock>,
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = TestClock::new();
        let store = open(&folder.path().join("store"), &clock).unwrap();
        Self { store, clock, folder }
    }

    /// The same with somebody who counts.
    fn counted() -> (Self, Arc<Told>) {
        let (bench, told) = (Self::new(), Arc::new(Told::default()));
        let store = bench.store.counted_by(Arc::<Told>::clone(&told));
        (Self { store, ..bench }, told)
    }

    /// The same after the process was killed and started again.
    fn again(self) -> Self {
        let Self { store, clock, folder } = self;
        drop(store);
        let store = open(&folder.path().join("store"), &clock).unwrap();
        Self { store, clock, folder }
    }

    /// The same with a key that has no limits.
    async fn with_key() -> (Self, Key) {
        let bench = Self::new();
        let key = bench.key(Limits::default()).await;
        (bench, key)
    }

    async fn key(&self, limits: Limits) -> Key {
        self.store.new_key("one", limits).await.unwrap().0
    }

    async fn admit(&self, request: NewRequest) -> Admission {
        self.store.admit(request).await.unwrap()
    }

    async fn signed(&self, id: RequestId, nonce: u64) -> Slip {
        let slip = Slip { nonce, hash: Hash::digest(&nonce.to_be_bytes()), text: "{}".to_owned() };
        let about = About::Request { id, purpose: Purpose::Request };
        let phase = Phase::Signed { run: run() };
        self.store.sign(&slip, about, Some(phase)).await.unwrap();
        slip
    }

    /// How many requests can be repeated by their names, and how many by their bodies.
    fn repeatable(&self) -> (u64, u64) {
        let read = self.store.database.begin_read().unwrap();
        let names = read.open_table(NAMES).unwrap().len().unwrap();
        (names, read.open_table(BODIES).unwrap().len().unwrap())
    }

    fn phase(&self, id: RequestId) -> Phase {
        self.store.request(id).unwrap().unwrap().phase
    }
}

fn open(path: &Path, clock: &Arc<TestClock>) -> Result<Store, OpenError> {
    let clock: Arc<dyn Clock> = Arc::<TestClock>::clone(clock);
    Store::open(path, WALLET, None, clock)
}

/// Limits with this budget and no other.
fn budget(micro: u64, per: Period) -> Limits {
    Limits { budget: Some(Budget { micro, per }), ..Limits::default() }
}

fn run() -> Hash {
    Hash::digest(b"run")
}

fn bill() -> Phase {
    Phase::Settled(Bill {
        reward_micro: 30,
        network_fee_micro: 100,
        fees_micro: 7,
        ..testing::bill(run())
    })
}

fn unpaid() -> Phase {
    Phase::Unpaid { run: None, why: Unpaid::NoMiner, fees_micro: 5 }
}

fn new(admission: &Admission) -> RequestId {
    let Admission::New(id) = admission else { panic!("expected a new request, got {admission:?}") };
    *id
}

#[tokio::test]
async fn ten_requests_at_once_cannot_use_a_budget_twice() {
    let bench = Bench::new();
    let key = bench.key(budget(1_000, Period::Day)).await;
    let bodies: Vec<String> = (0..10).map(|number| format!("body {number}")).collect();
    let all = bodies.iter().map(|body| bench.store.admit(wants(&key, body, 300)));
    let admissions = futures::future::join_all(all).await;
    let taken = admissions.iter().filter(|it| matches!(it, Ok(Admission::New(_)))).count();
    assert_eq!(3, taken);
    let refused = Refused::Budget { micro: 300, left_micro: 100, per: Period::Day };
    let others = admissions.into_iter().filter(|it| !matches!(it, Ok(Admission::New(_))));
    assert!(others.map(Result::unwrap).all(|it| it == Admission::Refused(refused.clone())));
    let standing = &bench.store.keys().unwrap()[0];
    assert_eq!((3, 900), (standing.tally.open, standing.today.reserved_micro));
}

#[tokio::test]
async fn what_is_left_is_released_once_however_often_the_end_is_written() {
    let (bench, key) = Bench::with_key().await;
    let id = new(&bench.admit(wants(&key, "a", 500)).await);
    let bench = bench.again();
    for _ in 0..2 {
        bench.store.advance(id, bill()).await.unwrap();
        bench.store.advance(id, unpaid()).await.unwrap();
    }
    assert_eq!(bill(), bench.phase(id));
    let standing = &bench.store.keys().unwrap()[0];
    assert_eq!(0, standing.tally.open);
    assert_eq!((137, 0), (standing.tally.spent_micro, standing.tally.reserved_micro));
    assert_eq!((137, 0), (standing.today.spent_micro, standing.today.reserved_micro));
    assert_eq!(0, bench.store.open_requests().unwrap().len());
}

#[tokio::test]
async fn the_wallet_is_not_promised_twice_either() {
    let (bench, key) = Bench::with_key().await;
    let poor = |body: &str, micro| NewRequest { balance_micro: 1_000, ..wants(&key, body, micro) };
    let first = new(&bench.admit(poor("a", 700)).await);
    let left = Admission::WalletEmpty { left_micro: 300 };
    assert_eq!(left, bench.admit(poor("b", 301)).await);
    // Its escrow is on the chain: what the wallet has is without it, and only fees may still go.
    let slip = bench.signed(first, 0).await;
    bench.store.resolve(&slip, &Verdict::Included { inclusion_micro: 0 }).await.unwrap();
    let rest = NewRequest { balance_micro: 300, ..wants(&key, "b", 291) };
    assert_eq!(Admission::WalletEmpty { left_micro: 290 }, bench.admit(rest).await);
    let rest = NewRequest { balance_micro: 300, ..wants(&key, "b", 290) };
    new(&bench.admit(rest).await);
}

#[tokio::test]
async fn an_idempotency_key_follows_the_same_request_and_no_other_body() {
    let (bench, key) = Bench::with_key().await;
    let named = |body: &str| NewRequest { name: Some(hash_of("name")), ..wants(&key, body, 500) };
    let id = new(&bench.admit(named("a")).await);
    let bench = bench.again();
    let known = Admission::Known(Attached(id));
    assert_eq!(known, bench.admit(named("a")).await);
    assert_eq!(Admission::NameReused, bench.admit(named("b")).await);
    bench.store.advance(id, bill()).await.unwrap();
    assert_eq!(known, bench.admit(named("a")).await);
    bench.clock.pass(24 * 60 * 60 * 1_000);
    let next = new(&bench.admit(named("b")).await);
    // One that nobody was paid for is forgotten.
    bench.store.advance(next, unpaid()).await.unwrap();
    new(&bench.admit(named("c")).await);
}

#[tokio::test]
async fn a_retry_attaches_to_the_oldest_lost_request_that_nobody_picked_up() {
    let (bench, key) = Bench::with_key().await;
    let again = || NewRequest { is_retry: true, ..wants(&key, "a", 500) };
    let first = new(&bench.admit(wants(&key, "a", 500)).await);
    let second = new(&bench.admit(again()).await);
    assert_ne!(first, second, "a connection waits for the first");
    for id in [second, first] {
        bench.store.deliver(id, Delivery::Lost).await.unwrap();
    }
    let other = NewRequest { body: hash_of("b"), ..again() };
    new(&bench.admit(other).await);
    assert_eq!(Admission::Known(Attached(first)), bench.admit(again()).await);
    assert_eq!(Admission::Known(Attached(second)), bench.admit(again()).await);
    let third = new(&bench.admit(again()).await);
    // Who is killed has lost all connections.
    bench.store.deliver(second, Delivery::Done).await.unwrap();
    let bench = bench.again();
    bench.store.lose_connections().await.unwrap();
    assert_eq!(Admission::Known(Attached(first)), bench.admit(again()).await);
    assert_eq!(Admission::Known(Attached(third)), bench.admit(again()).await);
    // After an hour nobody means it any more.
    bench.store.deliver(first, Delivery::Lost).await.unwrap();
    bench.clock.pass(60 * 60 * 1_000);
    new(&bench.admit(again()).await);
    // Without the word that it is a retry, the same is asked anew.
    new(&bench.admit(wants(&key, "a", 500)).await);
}

#[tokio::test]
async fn requests_that_nobody_repeats_any_more_are_not_looked_at() {
    let (bench, key) = Bench::with_key().await;
    let again = || NewRequest { is_retry: true, ..wants(&key, "a", 500) };
    let first = new(&bench.admit(wants(&key, "a", 500)).await);
    new(&bench.admit(wants(&key, "a", 500)).await);
    bench.clock.pass(60 * 60 * 1_000);
    let third = new(&bench.admit(wants(&key, "a", 500)).await);
    // Who looks at the first learns that its row is damaged.
    let damaged = bench.store.change(move |write| {
        write.open_table(REQUESTS)?.insert(first.0, b"damaged".as_slice())?;
        Ok(())
    });
    damaged.await.unwrap();
    bench.store.lose_connections().await.unwrap();
    assert_eq!(Admission::Known(Attached(third)), bench.admit(again()).await);
}

#[tokio::test]
async fn old_requests_are_forgotten_when_new_ones_come_and_their_records_stay() {
    let (bench, key) = Bench::with_key().await;
    let named = |name: &str| NewRequest { name: Some(hash_of(name)), ..wants(&key, name, 500) };
    for name in ["a", "b", "c"] {
        new(&bench.admit(named(name)).await);
    }
    bench.clock.pass(24 * 60 * 60 * 1_000 - 1);
    new(&bench.admit(named("d")).await);
    assert_eq!((4, 4), bench.repeatable());
    bench.clock.pass(1);
    new(&bench.admit(named("a")).await);
    assert_eq!((2, 2), bench.repeatable());
    assert_eq!(5, bench.store.requests(10).unwrap().len());
}

#[tokio::test]
async fn a_retry_finds_what_was_lost_just_before_it() {
    let (bench, key) = Bench::with_key().await;
    let again = || NewRequest { is_retry: true, ..wants(&key, "a", 500) };
    let first = new(&bench.admit(wants(&key, "a", 500)).await);
    // Nobody has waited for that yet.
    let lost = bench.store.deliver_next(first, Delivery::Lost).expect("few changes wait");
    assert_eq!(Admission::Known(Attached(first)), bench.admit(again()).await);
    lost.await.unwrap();
}

#[tokio::test]
async fn a_transaction_is_in_the_outbox_until_its_fate_is_written() {
    let (bench, key) = Bench::with_key().await;
    let mut ids = Vec::new();
    for body in ["a", "b", "c"] {
        ids.push(new(&bench.admit(wants(&key, body, 500)).await));
    }
    for (nonce, id) in (0..).zip(&ids) {
        bench.signed(*id, nonce).await;
    }
    let bench = bench.again();
    let slips: Vec<Slip> =
        bench.store.outbox().unwrap().into_iter().map(|(slip, _)| slip).collect();
    assert_eq!(3, slips.len());
    let fates = ["", "NONCE_STALE", "INSUFFICIENT_BALANCE"];
    for (slip, code) in slips.iter().zip(fates) {
        let included = code.is_empty();
        let verdict = if included {
            Verdict::Included { inclusion_micro: 0 }
        } else {
            Verdict::Refused(code.to_owned())
        };
        bench.store.resolve(slip, &verdict).await.unwrap();
    }
    assert_eq!(0, bench.store.nonces().unwrap().len());
    let phases: Vec<Phase> = ids.iter().map(|id| bench.phase(*id)).collect();
    let refused = Phase::Refused { code: "INSUFFICIENT_BALANCE".to_owned() };
    let sent = Phase::Sent { run: run(), since_ms: NOW_MS };
    assert_eq!(vec![sent, Phase::Reserved, refused], phases);
    let sent = bench.store.request(ids[0]).unwrap().unwrap();
    assert_eq!(Some(slips[0].hash), sent.request_tx());
}

#[tokio::test]
async fn fillers_and_drains_are_kept_for_the_books() {
    let bench = Bench::new();
    let slip = |nonce| Slip { nonce, hash: Hash::digest(b"tx"), text: "{}".to_owned() };
    bench.store.fill(&slip(3)).await.unwrap();
    let drain = About::Drain { to: WALLET, micro: 5 };
    bench.store.sign(&slip(4), drain, None).await.unwrap();
    bench.store.resolve(&slip(3), &Verdict::Included { inclusion_micro: 0 }).await.unwrap();
    assert_eq!(1, bench.store.loose().unwrap().len());
    bench.store.resolve(&slip(4), &Verdict::Refused("X".to_owned())).await.unwrap();
    assert_eq!((1, 0), (bench.store.loose().unwrap().len(), bench.store.nonces().unwrap().len()));
}

#[tokio::test]
async fn a_key_is_in_force_until_it_is_revoked() {
    let bench = Bench::new();
    let (key, secret) = bench.store.new_key("one", Limits::default()).await.unwrap();
    let taken = bench.store.new_key("one", Limits::default()).await.unwrap_err();
    assert!(matches!(taken, KeyFault::NameTaken(name) if name == "one"));
    let bench = bench.again();
    assert_eq!(Some(key), bench.store.key_of(&secret.hash()).unwrap());
    assert_eq!(None, bench.store.key_of(&hash_of("another")).unwrap());
    bench.store.revoke_key("one").await.unwrap();
    assert_eq!(None, bench.store.key_of(&secret.hash()).unwrap());
    let unknown = bench.store.revoke_key("one").await.unwrap_err();
    assert!(matches!(unknown, KeyFault::Unknown(name) if name == "one"));
    bench.store.new_key("one", Limits::default()).await.unwrap();
    assert_eq!(2, bench.store.keys().unwrap().len());
    let bytes = std::fs::read(bench.folder.path().join("store")).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert!(!text.contains(secret.reveal()), "the secret is in the file");
}

#[tokio::test]
async fn a_store_is_of_one_wallet_one_chain_and_one_process() {
    let Bench { store, clock, folder } = Bench::new();
    let path = folder.path().join("store");
    let in_use = open(&path, &clock).unwrap_err();
    assert!(matches!(in_use, OpenError::InUse { .. }), "{in_use}");
    drop(store);
    let of = |wallet, chain: Option<&ChainIdentity>| {
        let clock: Arc<dyn Clock> = Arc::<TestClock>::clone(&clock);
        Store::open(&path, wallet, chain, clock).map(drop).map_err(|error| error.to_string())
    };
    let chain = |id: &str| ChainIdentity { chain_id: id.to_owned(), genesis_hash: Hash::ZERO };
    assert_eq!(Ok(()), of(WALLET, Some(&chain("a"))));
    assert!(of(WALLET, Some(&chain("b"))).unwrap_err().contains("expected wallet"));
    assert!(of(Address::new([8; 20]), None).is_err());
    assert_eq!(Ok(()), of(WALLET, None));
    assert_eq!(Ok(()), of(WALLET, Some(&chain("a"))));
}

#[tokio::test]
async fn the_client_on_standard_input_gets_no_new_budget_by_a_new_start() {
    let bench = Bench::new();
    let limits = budget(100, Period::Ever);
    let key = bench.store.process_key(limits.clone()).await.unwrap();
    let id = new(&bench.admit(wants(&key, "a", 80)).await);
    bench.store.advance(id, bill()).await.unwrap();
    let bench = bench.again();
    let same = bench.store.process_key(limits).await.unwrap();
    assert_eq!(key.id, same.id);
    let refused = bench.admit(wants(&same, "b", 80)).await;
    assert!(matches!(refused, Admission::Refused(Refused::Budget { .. })), "{refused:?}");
    let stricter = Limits { rpm: Some(1), ..Limits::default() };
    assert_eq!(stricter, bench.store.process_key(stricter.clone()).await.unwrap().limits);
    assert_eq!(1, bench.store.keys().unwrap().len());
}

#[tokio::test]
async fn a_run_is_taken_back_while_it_waits_and_at_no_other_time() {
    let (bench, key) = Bench::with_key().await;
    let id = new(&bench.admit(wants(&key, "a", 80)).await);
    assert_eq!(TakenBack::TooEarly, bench.store.take_back(id).await.unwrap());
    bench.store.advance(id, Phase::Sent { run: run(), since_ms: NOW_MS }).await.unwrap();
    assert_eq!(TakenBack::Marked(run()), bench.store.take_back(id).await.unwrap());
    assert_eq!(Phase::Sent { run: run(), since_ms: 0 }, bench.phase(id));
    bench.store.advance(id, Phase::Running { run: run() }).await.unwrap();
    assert_eq!(TakenBack::Claimed, bench.store.take_back(id).await.unwrap());
    assert_eq!(Phase::Running { run: run() }, bench.phase(id));
    bench.store.advance(id, unpaid()).await.unwrap();
    assert_eq!(TakenBack::Over, bench.store.take_back(id).await.unwrap());
}

#[tokio::test]
async fn a_repetition_is_found_without_being_priced() {
    let (bench, key) = Bench::with_key().await;
    let named = NewRequest { name: Some(hash_of("name")), ..wants(&key, "a", 500) };
    let identity = |name: &str, body: &str| Identity {
        key: key.id,
        body: hash_of(body),
        name: Some(hash_of(name)),
        is_retry: false,
    };
    let found = async |identity| bench.store.repeated(identity).await.unwrap();
    assert_eq!(None, found(identity("name", "a")).await);
    let id = new(&bench.admit(named).await);
    assert_eq!(Some(Admission::Known(Attached(id))), found(identity("name", "a")).await);
    assert_eq!(Some(Admission::NameReused), found(identity("name", "b")).await);
    assert_eq!(None, found(identity("other", "a")).await);
    let again = Identity { name: None, is_retry: true, ..identity("", "a") };
    assert_eq!(None, found(again).await, "its connection is not lost");
    bench.store.deliver(id, Delivery::Lost).await.unwrap();
    assert_eq!(Some(Admission::Known(Attached(id))), found(again).await);
}

#[tokio::test]
async fn a_key_finds_its_own_runs_only() {
    let (bench, key) = Bench::with_key().await;
    let id = new(&bench.admit(wants(&key, "a", 80)).await);
    bench.signed(id, 1).await;
    let found = bench.store.request_that_made(key.id, run()).unwrap();
    assert_eq!(Some(id), found.map(|record| record.id));
    let other = bench.store.process_key(Limits::default()).await.unwrap();
    assert_eq!(None, bench.store.request_that_made(other.id, run()).unwrap());
}

#[tokio::test]
async fn a_request_is_counted_when_it_is_claimed_and_when_it_ends_once_each() {
    let (bench, told) = Bench::counted();
    let key = bench.key(Limits::default()).await;
    let id = new(&bench.admit(wants(&key, "body", 300)).await);
    let slip = bench.signed(id, 0).await;
    bench.store.resolve(&slip, &Verdict::Included { inclusion_micro: 0 }).await.unwrap();
    assert_eq!(Vec::<Event>::new(), told.news());
    bench.clock.pass(400);
    bench.store.advance(id, Phase::Running { run: run() }).await.unwrap();
    assert_eq!(vec![Event::Claimed { after_ms: 400 }], told.news());
    // The claim lapses, and another miner comes.
    bench.clock.pass(100);
    bench.store.advance(id, Phase::Sent { run: run(), since_ms: 1 }).await.unwrap();
    bench.store.advance(id, Phase::Running { run: run() }).await.unwrap();
    assert_eq!(Vec::<Event>::new(), told.news());
    bench.clock.pass(200);
    bench.store.advance(id, bill()).await.unwrap();
    let (outcome, micro) = ("paid", 137);
    let paid = Event::Ended { outcome, micro, after_ms: 700, answer_ms: Some(300) };
    assert_eq!(vec![paid], told.news());
    bench.store.advance(id, bill()).await.unwrap();
    assert_eq!(Vec::<Event>::new(), told.news());
    let other = new(&bench.admit(wants(&key, "other", 300)).await);
    bench.store.advance(other, unpaid()).await.unwrap();
    let (outcome, micro) = ("no_miner", 5);
    let lost = Event::Ended { outcome, micro, after_ms: 0, answer_ms: None };
    assert_eq!(vec![lost], told.news());
}

#[tokio::test]
async fn a_refusal_is_counted_by_its_limit() {
    let (bench, told) = Bench::counted();
    let key = bench.key(budget(1_000, Period::Day)).await;
    new(&bench.admit(wants(&key, "body", 900)).await);
    bench.admit(wants(&key, "other", 300)).await;
    assert_eq!(vec![Event::Refused { limit: "budget" }], told.news());
    let poor = NewRequest { balance_micro: 950, ..wants(&key, "third", 100) };
    bench.admit(poor).await;
    assert_eq!(vec![Event::Refused { limit: "wallet" }], told.news());
}
