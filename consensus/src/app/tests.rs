//! What the loop answers about bodies that liars send.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use malachitebft_app::engine::host::SyncedValueOutcome;
use malachitebft_app::types::PeerId;
use malachitebft_core_types::Validity;
use types::sign_bytes::Domain;
use types::{Hash, Keypair};

use super::*;
use crate::engine::settings;
use crate::parts::{self, Form, Head, Part};
use crate::{
    Archive, Candidate, Clock, Decided, Encoded, Equivocation, Ledger, LedgerFault, Pace, Proposed,
    Timeouts, Undecided, ValidatorSet, Verdict,
};

const CHAIN: &str = "chain";

fn domain(chain_id: &str) -> Domain {
    Domain { chain_id: chain_id.into(), genesis_hash: Hash::ZERO, v7_from: None }
}
const TIP: u64 = 10;
/// The hash of the block that the good bytes are of, and all others claim to be.
const BLOCK: Hash = Hash::new([7; 32]);
const GOOD: &[u8] = b"good";
/// What is not even a compact block.
const SPOILT: &[u8] = b"spoilt";

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
        let is_compact_block = matches!(candidate.content, Encoded::CompactBlock { .. });
        let (Encoded::Whole(bytes) | Encoded::CompactBlock { bytes, .. }) = candidate.content;
        Ok(match &*bytes {
            bytes if bytes.chunks(GOOD.len()).all(|chunk| chunk == GOOD) => Verdict::Valid(BLOCK),
            SPOILT => Verdict::Undecodable { reason: "no compact block".to_owned() },
            _ if is_compact_block => Verdict::Incomplete { missing: 1 },
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
    fn compact_block(&self, _: &Hash) -> Result<Option<Bytes>, LedgerFault> {
        Ok(None)
    }

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

impl Clock for Judge {
    fn now_ms(&self) -> u64 {
        0
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
    let (app, judge, _) = app_with_network();
    (app, judge)
}

/// The same, and what it sends.
fn app_with_network() -> (App, Arc<Judge>, mpsc::Receiver<NetworkMsg<Ctx>>) {
    let judge = Arc::<Judge>::default();
    let ports = Ports {
        ledger: judge.clone(),
        archive: judge.clone(),
        pace: judge.clone(),
        clock: judge.clone(),
        counters: Counters::default(),
    };
    let (network, sent) = mpsc::channel(64);
    let app = App::new(Setup {
        ports,
        signer: None,
        follows: None,
        unheard_max: None,
        verifier: Verifier::new(domain(CHAIN).into(), Presence::default()),
        timeouts: settings::timeouts(&Timeouts::default()),
        presence: Presence::default(),
        publishes: true,
        network,
        peers: mpsc::channel(1).0,
        counters: Counters::default(),
        block_bytes_max: 1024,
        tip: tip(),
    });
    (app, judge, sent)
}

/// What the loop has sent until now.
fn sent(network: &mut mpsc::Receiver<NetworkMsg<Ctx>>) -> Vec<Part> {
    let messages = std::iter::from_fn(|| network.try_recv().ok());
    let parts =
        messages.filter_map(|NetworkMsg::PublishProposalPart(part)| part.content.into_data());
    parts.collect()
}

fn peer(byte: u8) -> PeerId {
    let mut bytes = [byte; 34];
    bytes[..2].copy_from_slice(&[0x12, 32]);
    PeerId::from_bytes(&bytes).expect("a peer id")
}

/// Sends a body of the open height's first round, sealed by its proposer; answers what the engine
/// is told.
async fn send_body(app: &mut App, publisher: u8, bytes: &[u8]) -> Option<Validity> {
    send(app, publisher, bytes, None).await
}

/// Sends a compact block of a body.
async fn send_compact_block(
    app: &mut App,
    publisher: u8,
    bytes: &[u8],
    compact_block: &[u8],
) -> Option<Validity> {
    send(app, publisher, bytes, Some(compact_block)).await
}

async fn send(
    app: &mut App,
    publisher: u8,
    bytes: &[u8],
    compact_block: Option<&[u8]>,
) -> Option<Validity> {
    let turn = tip().validators.proposer(TIP + 1, 0).address;
    let key = keys().into_iter().find(|key| key.address() == turn).expect("a validator");
    let fields = parts::describe(TIP + 1, 0, turn, BLOCK, bytes).expect("a small body");
    let form = compact_block
        .map_or(Form::Whole, |it| Form::CompactBlock(it.len().try_into().expect("short")));
    let head = Head::new(&fields, form, &key.sign(&domain(CHAIN).body(&fields)));
    let stream = parts::body_stream(&fields.digest, form, 0);
    let mut told = None;
    let bytes = Bytes::copy_from_slice(compact_block.unwrap_or(bytes));
    for message in parts::cut(&stream, head, &bytes) {
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
async fn a_body_whose_compact_block_is_not_enough_is_asked_for_once_and_judged_when_it_comes() {
    let (mut app, judge, mut network) = app_with_network();
    for publisher in 1..4 {
        assert_eq!(send_compact_block(&mut app, publisher, GOOD, b"?").await, None);
    }
    assert_eq!(sent(&mut network), [Part::Want(*Hash::digest(GOOD).as_bytes())]);
    assert_eq!(judge.0.load(Ordering::SeqCst), 1);
    assert_eq!(send_body(&mut app, 1, GOOD).await, Some(Validity::Valid));
    // The next round is a new chance, but a valid block needs none.
    start_round(&mut app, 1).await;
    assert_eq!(send_compact_block(&mut app, 1, GOOD, b"?").await, Some(Validity::Valid));
    assert_eq!((sent(&mut network), judge.0.load(Ordering::SeqCst)), (Vec::new(), 2));
}

#[tokio::test]
async fn a_compact_block_that_somebody_spoilt_says_nothing_about_the_block() {
    let (mut app, judge, mut network) = app_with_network();
    // Anybody can put other bytes behind a head that the proposer has sealed.
    let long_good = [GOOD; 9].concat();
    for publisher in 1..9 {
        assert_eq!(send_compact_block(&mut app, publisher, &long_good, SPOILT).await, None);
    }
    assert_eq!(sent(&mut network), [Part::Want(*Hash::digest(&long_good).as_bytes())]);
    assert_eq!(judge.0.load(Ordering::SeqCst), 1);
    assert_eq!(send_body(&mut app, 9, &long_good).await, Some(Validity::Valid));
}

#[tokio::test]
async fn compact_blocks_of_a_liar_cause_little_work_and_do_not_use_up_the_room_of_whole_bodies() {
    let (mut app, judge, mut network) = app_with_network();
    for (publisher, garbage) in (1..9).flat_map(|by| (0..9).map(move |garbage| (by, garbage))) {
        send_compact_block(&mut app, publisher, &[garbage; 9], b"?").await;
    }
    assert_eq!((sent(&mut network).len(), judge.0.load(Ordering::SeqCst)), (4, 4));
    assert_eq!(send_body(&mut app, 9, GOOD).await, Some(Validity::Valid));
}

#[tokio::test]
async fn a_compact_block_that_is_enough_is_as_good_as_the_body() {
    let (mut app, _, mut network) = app_with_network();
    assert_eq!(send_compact_block(&mut app, 1, GOOD, GOOD).await, Some(Validity::Valid));
    assert!(sent(&mut network).is_empty());
}

#[tokio::test]
async fn synced_bytes_that_do_not_execute_are_the_fault_of_their_sender() {
    let (app, _) = app();
    let proposer = keys()[0].address().into();
    let sync =
        |bytes| app.sync.on_synced(Height(TIP + 1), Round::new(0), (proposer, bytes), &app.chain);
    let garbage = sync(Bytes::from_static(b"garbage")).await.expect("no fault");
    assert!(matches!(garbage, SyncedValueOutcome::PeerFault));
    let good = sync(Bytes::from_static(GOOD)).await.expect("no fault");
    let SyncedValueOutcome::Verdict(value) = good else { panic!("no verdict: {good:?}") };
    assert!(value.validity.is_valid());
}
