//! What the tests of this crate share: a chain of four validators, and a node's side of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use malachitebft_app::types::PeerId;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use types::sign_bytes::{Domain, SharedDomain};
use types::{Hash, Keypair};

use crate::admission::Admission;
use crate::app::Setup;
use crate::engine::settings;
use crate::engine::signing::Verifier;
use crate::presence::Presence;
use crate::{
    Archive, Candidate, Clock, Counters, Decided, Equivocation, Ledger, LedgerFault, Pace, Ports,
    Proposed, Timeouts, Tip, Undecided, ValidatorSet, Verdict,
};

/// The chain of most tests.
pub(crate) const CHAIN: &str = "chain";
/// The height of [`tip`].
pub(crate) const TIP: u64 = 10;

/// A chain without v7.
pub(crate) fn domain(chain_id: &str) -> Domain {
    Domain { chain_id: chain_id.into(), genesis_hash: Hash::ZERO, v7_from: None }
}

pub(crate) fn verifier(domain: impl Into<SharedDomain>) -> Verifier {
    Verifier::new(domain.into(), Presence::default())
}

pub(crate) fn key(seed: u8) -> Keypair {
    Keypair::from_seed(&[seed; 32])
}

/// The keys of [`set`].
pub(crate) fn keys() -> [Keypair; 4] {
    [1, 2, 3, 4].map(key)
}

/// Four equals.
pub(crate) fn set() -> ValidatorSet {
    set_of(1..=4)
}

/// Equals with the keys of these seeds.
pub(crate) fn set_of(seeds: impl IntoIterator<Item = u8>) -> ValidatorSet {
    let members = seeds.into_iter().map(|seed| (key(seed).public_key(), 1));
    ValidatorSet::new(members).expect("a set")
}

/// A tip whose next blocks [`set`] decides.
pub(crate) fn tip() -> Tip {
    tip_of(set())
}

pub(crate) fn tip_of(validators: ValidatorSet) -> Tip {
    Tip { height: TIP, hash: Hash::ZERO, next_validators: validators.clone(), validators }
}

/// The key whose turn it is.
pub(crate) fn on_turn(height: u64, round: u32) -> Keypair {
    let turn = set().proposer(height, round).address;
    keys().into_iter().find(|key| key.address() == turn).expect("a validator")
}

/// A peer id: a SHA-256 multihash of its key.
pub(crate) fn peer(byte: u8) -> PeerId {
    let mut bytes = [byte; 34];
    bytes[..2].copy_from_slice(&[0x12, 32]);
    PeerId::from_bytes(&bytes).expect("a peer id")
}

/// Undecided blocks with their heights.
#[derive(Default)]
pub(crate) struct Kept(pub(crate) Mutex<Vec<(u64, Undecided)>>);

impl Archive for Kept {
    fn undecided(&self, height: u64) -> Result<Vec<Undecided>, LedgerFault> {
        let kept = self.0.lock();
        let of_height = kept.iter().filter(|(other, _)| *other == height);
        Ok(of_height.map(|(_, block)| block.clone()).collect())
    }

    fn body(&self, _: u64, _: &Hash) -> Result<Option<Bytes>, LedgerFault> {
        Ok(None)
    }

    fn compact_block(&self, _: &Hash) -> Result<Option<Bytes>, LedgerFault> {
        Ok(None)
    }

    fn earliest(&self) -> Result<u64, LedgerFault> {
        Ok(1)
    }

    fn keep_evidence(&self, _: &[Equivocation]) -> Result<(), LedgerFault> {
        Ok(())
    }
}

/// What a ledger makes of a body.
type Judge = fn(&Candidate) -> Result<Verdict, LedgerFault>;

/// A node's side of a chain that stays at [`tip`]: it proposes and commits nothing and keeps what is valid,
/// a block is always due, and tests set its clock.
pub(crate) struct NodeSide {
    judge: Judge,
    asked: AtomicUsize,
    pub(crate) kept: Arc<Kept>,
    pub(crate) now_ms: AtomicU64,
}

impl NodeSide {
    pub(crate) fn new(judge: Judge, kept: Arc<Kept>) -> Arc<Self> {
        Arc::new(Self { judge, asked: AtomicUsize::new(0), kept, now_ms: AtomicU64::new(0) })
    }

    /// How many bodies the ledger has judged.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// What a loop needs that neither signs nor publishes.
    pub(crate) fn setup(self: &Arc<Self>, domain: Domain) -> Setup {
        let ports = Ports {
            ledger: self.clone(),
            archive: self.kept.clone(),
            pace: self.clone(),
            clock: self.clone(),
            counters: Counters::default(),
        };
        Setup {
            ports,
            signer: None,
            follows: None,
            unheard_max: None,
            verifier: verifier(domain),
            admission: Admission::default(),
            timeouts: settings::timeouts(&Timeouts::default()),
            presence: Presence::default(),
            publishes: false,
            network: mpsc::channel(64).0,
            peers: mpsc::channel(1).0,
            counters: Counters::default(),
            block_bytes_max: 1024,
            tip: tip(),
        }
    }
}

impl Ledger for NodeSide {
    fn tip(&self) -> Result<Tip, LedgerFault> {
        Ok(tip())
    }

    fn propose(&self, _: u64, _: u32) -> Result<Proposed, LedgerFault> {
        Err(LedgerFault::new("proposes nothing"))
    }

    fn validate(&self, candidate: Candidate) -> Result<Verdict, LedgerFault> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let verdict = (self.judge)(&candidate)?;
        if let Verdict::Valid(hash) = verdict {
            let Candidate { height, round, proposer, seal, .. } = candidate;
            let block = Undecided { round, proposer, seal, hash };
            self.kept.0.lock().push((height, block));
        }
        Ok(verdict)
    }

    fn commit(&self, _: u64, _: Hash, _: Bytes) -> Result<(), LedgerFault> {
        Err(LedgerFault::new("commits nothing"))
    }

    fn decided(&self, _: u64) -> Result<Option<Decided>, LedgerFault> {
        Ok(None)
    }
}

impl Clock for NodeSide {
    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Pace for NodeSide {
    async fn due(&self, _: u64) {}
    async fn earliest(&self, _: u64) {}
}
