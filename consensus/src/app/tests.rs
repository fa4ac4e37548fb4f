//! What the loop answers about bodies that liars send.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use malachitebft_app::engine::host::SyncedValueOutcome;
use malachitebft_app::types::PeerId;
use malachitebft_app::types::streaming::StreamId;
use malachitebft_core_types::Validity;
use types::{Hash, Keypair};

use super::*;
use crate::engine::settings;
use crate::parts::{self, Head};
use crate::{
    Archive, Candidate, Decided, Equivocation, Ledger, Pace, Proposed, Timeouts, Undecided,
    ValidatorSet, Verdict,
};

const CHAIN: &str = "chain";
const TIP: u64 = 10;
/// The hash of the block that the good bytes are of, and all others claim to be.
const BLOCK: Hash = Hash::new([7; 32]);
const GOOD: &[u8] = b"good";

/// A ledger that knows one good body, and counts how often it was asked.
#[derive(Default)]
struct Judge(AtomicUsize);

impl Ledger for Judge {
    fn tip(&self) -> Result<Tip, LedgerFault> {
        Ok(tip())
    }

    fn propose(&self, _: u64, _: u32) -> Result<Proposed, LedgerFault> {
        Err(LedgerFault::new("proposes nothing"))
    }

    fn validate(&self, candidate: Candidate) -> Result<Verdict, LedgerFault> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(match &*candidate.bytes {
            GOOD => Verdict::Valid(BLOCK),
            _ => Verdict::Invalid { hash: BLOCK, reason: "a bad signature".to_owned() },
        })
    }

    fn commit(&self, _: u64, _: Hash, _: Bytes) -> Result<(), LedgerFault> {
        Err(LedgerFault::new("commits nothing"))
    }

    fn decided(&self, _: u64) -> Result<Option<Decided>, LedgerFault> {
        Ok(None)
    }
}

impl Archive for Judge {
    fn undecided(&self, _: u64) -> Result<Vec<Undecided>, LedgerFault> {
        Ok(Vec::new())
    }

    fn body(&self, _: u64, _: &Hash) -> Result<Option<Bytes>, LedgerFault> {
        Ok(None)
    }

    fn earliest(&self) -> Result<u64, LedgerFault> {
        Ok(1)
    }

    fn keep_evidence(&self, _: &[Equivocation]) -> Result<(), LedgerFault> {
        Ok(())
    }
}

#[async_trait]
impl Pace for Judge {
    async fn due(&self, _: u64) {}
    async fn earliest(&self, _: u64) {}
}

fn keys() -> Vec<Keypair> {
    (1..=4).map(|seed| Keypair::from_seed(&[seed; 32])).collect()
}

fn tip() -> Tip {
    let members = keys().into_iter().map(|key| (key.public_key(), 1));
    let validators = ValidatorSet::new(members).expect("a set");
    Tip { height: TIP, hash: Hash::ZERO, next_validators: validators.clone(), validators }
}

/// A follower's loop, and its ledger.
fn app() -> (App, Arc<Judge>) {
    let judge = Arc::<Judge>::default();
    let ports = Ports {
        ledger: judge.clone(),
        archive: judge.clone(),
        pace: judge.clone(),
        counters: Counters::default(),
    };
    let (network, _) = mpsc::channel(1);
    let app = App::new(Setup {
        ports,
        signer: None,
        verifier: Verifier::new(CHAIN.into(), Presence::default()),
        timeouts: settings::timeouts(&Timeouts::default()),
        presence: Presence::default(),
        publishes: false,
        network,
        counters: Counters::default(),
        block_bytes_max: 1024,
        tip: tip(),
    });
    (app, judge)
}

fn peer(byte: u8) -> PeerId {
    let mut bytes = [byte; 34];
    bytes[..2].copy_from_slice(&[0x12, 32]);
    PeerId::from_bytes(&bytes).expect("a peer id")
}

/// Sends a body of the open height's first round, sealed by its proposer; answers what the engine
/// is told.
async fn send_body(app: &mut App, publisher: u8, bytes: &[u8]) -> Option<Validity> {
    let turn = tip().validators.proposer(TIP + 1, 0).address;
    let key = keys().into_iter().find(|key| key.address() == turn).expect("a validator");
    let fields = parts::describe(TIP + 1, 0, turn, BLOCK, bytes).expect("a small body");
    let head = Head::new(&fields, &key.sign(&crate::sign_bytes::body(CHAIN, &fields)));
    let stream = StreamId::new(Bytes::copy_from_slice(&fields.digest.as_bytes()[..8]));
    let mut told = None;
    for message in parts::cut(&stream, head, &Bytes::copy_from_slice(bytes)) {
        told = app.on_part(peer(publisher), message).await.expect("no fault");
    }
    told.map(|value| value.validity)
}

async fn start_round(app: &mut App, round: u32) {
    app.on_started_round(Height(TIP + 1), Round::new(round)).await.expect("no fault");
}

#[tokio::test]
async fn a_good_body_counts_although_garbage_for_the_same_hash_came_first() {
    let (mut app, judge) = app();
    assert_eq!(send_body(&mut app, 1, b"garbage").await, Some(Validity::Invalid));
    assert_eq!(send_body(&mut app, 2, GOOD).await, Some(Validity::Valid));
    // From then on nothing is judged again, and garbage changes nothing.
    assert_eq!(send_body(&mut app, 3, GOOD).await, Some(Validity::Valid));
    assert_eq!(send_body(&mut app, 1, b"garbage").await, Some(Validity::Valid));
    assert_eq!(judge.0.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_liar_causes_little_work_and_every_round_is_a_new_chance() {
    let (mut app, judge) = app();
    for round in 0..3 {
        start_round(&mut app, round).await;
        for publisher in 0..8 {
            for garbage in 0..8 {
                send_body(&mut app, publisher, &[publisher, garbage]).await;
            }
        }
        assert_eq!(send_body(&mut app, 9, GOOD).await, None, "no more in this round");
    }
    assert_eq!(judge.0.load(Ordering::SeqCst), 3 * 4);
    start_round(&mut app, 3).await;
    assert_eq!(send_body(&mut app, 9, GOOD).await, Some(Validity::Valid));
}

#[tokio::test]
async fn synced_bytes_that_do_not_execute_are_the_fault_of_their_sender() {
    let (app, _) = app();
    let proposer = keys()[0].address().into();
    let sync = |bytes| app.on_synced(Height(TIP + 1), Round::new(0), proposer, bytes);
    let garbage = sync(Bytes::from_static(b"garbage")).await.expect("no fault");
    assert!(matches!(garbage, SyncedValueOutcome::PeerFault));
    let good = sync(Bytes::from_static(GOOD)).await.expect("no fault");
    let SyncedValueOutcome::Verdict(value) = good else { panic!("no verdict: {good:?}") };
    assert!(value.validity.is_valid());
}
