//! A small ledger in memory that outlives its node, a pace that tests control, and nodes made of
//! them.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use consensus::{
    Archive, Candidate, Certificate, CertificateError, Clock, Config, ConsensusFault, Counters,
    Decided, Direction, Encoded, Equivocation, Handle, Identity, Ledger, LedgerFault, Network,
    Origin, Pace, Ports, Proposed, Seen, StartError, Timeouts, Tip, Undecided, ValidatorSet,
    Verdict, verify_certificate,
};
use state::timely::{self, Untimely, check_timely};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use types::sign_bytes::Domain;
use types::{Address, Hash, Keypair, Params};

const CHAIN: &str = "ombra-consensus-test";

/// The first height with the rules of fork v7.
pub(crate) const V7_FROM: u64 = 3;

/// From the third height on validators sign the second version, and judge the time of proposals.
pub(crate) fn domain(genesis_hash: Hash) -> Domain {
    Domain { chain_id: CHAIN.into(), genesis_hash, v7_from: Some(V7_FROM) }
}

/// How long anything may take before a test fails. Generous: machines may be busy.
const DEADLINE: Duration = Duration::from_secs(120);

/// How long something is watched that must not happen.
const WHILE: Duration = Duration::from_secs(2);

#[derive(Clone, BorshSerialize, BorshDeserialize)]
struct TestBlock {
    height: u64,
    round: u32,
    timestamp: u64,
    previous: [u8; 32],
    proposer: [u8; 20],
    filling: Vec<u8>,
}

/// What a node's disk holds. Clones are copies: a backup.
#[derive(Clone, Default)]
pub(crate) struct Content {
    undecided: BTreeMap<u64, Vec<(Undecided, Bytes)>>,
    decided: BTreeMap<u64, (Hash, Decided)>,
}

/// A ledger. It stays when its node stops.
pub(crate) struct Disk {
    content: Mutex<Content>,
    tip: watch::Sender<u64>,
    /// Each set by the first height that it decides.
    validators: BTreeMap<u64, ValidatorSet>,
    own: Address,
    /// Bytes that make each block large.
    filling: usize,
    faults: Mutex<Faults>,
}

/// What is wrong with a ledger.
#[derive(Default)]
pub(crate) struct Faults {
    /// From this height on, commits fail.
    pub(crate) broken_from: Option<u64>,
    /// Whether it proposes blocks that no honest ledger takes.
    pub(crate) lies: bool,
    /// Whether it cannot make blocks of their compact blocks, since it does not know what these name.
    pub(crate) lacks: bool,
    /// How many milliseconds its clock is ahead of the others', or behind them.
    pub(crate) ahead_ms: i64,
}

impl Disk {
    pub(crate) fn new(
        validators: BTreeMap<u64, ValidatorSet>,
        own: Address,
        filling: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            content: Mutex::default(),
            tip: watch::Sender::new(0),
            validators,
            own,
            filling,
            faults: Mutex::default(),
        })
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().expect("no test thread panicked")
    }

    pub(crate) fn backup(&self) -> Content {
        self.content().clone()
    }

    pub(crate) fn restore(&self, backup: Content) {
        let height = backup.decided.keys().next_back().copied().unwrap_or(0);
        *self.content() = backup;
        self.tip.send_replace(height);
    }

    pub(crate) fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().expect("no test thread panicked")
    }

    /// The block of a compact block: its filling is known.
    fn fill(&self, compact_block: &[u8], size: usize, digest: Hash) -> Option<Bytes> {
        let block = borsh::from_slice::<TestBlock>(compact_block).ok()?;
        let bytes = borsh::to_vec(&TestBlock { filling: vec![7; self.filling], ..block }).ok()?;
        assert_eq!((bytes.len(), Hash::digest(&bytes)), (size, digest));
        (!self.faults().lacks).then(|| bytes.into())
    }

    pub(crate) fn height(&self) -> u64 {
        *self.tip.borrow()
    }

    /// Waits until the chain has this height.
    pub(crate) async fn reaches(&self, height: u64) {
        let mut tip = self.tip.subscribe();
        let wait = tip.wait_for(|tip| *tip >= height);
        let reached = tokio::time::timeout(DEADLINE, wait).await;
        assert!(reached.is_ok(), "the chain stays at height {}, not {height}", self.height());
    }

    /// Whether the chain still is at this height after a while.
    pub(crate) async fn stays_at(&self, height: u64) -> bool {
        let mut tip = self.tip.subscribe();
        let wait = tip.wait_for(|tip| *tip > height);
        tokio::time::timeout(WHILE, wait).await.is_err()
    }

    pub(crate) fn block(&self, height: u64) -> (Hash, Decided) {
        self.content().decided.get(&height).cloned().expect("a decided block")
    }

    fn test_block(&self, height: u64) -> TestBlock {
        borsh::from_slice(&self.block(height).1.bytes).expect("a block")
    }

    pub(crate) fn proposer(&self, height: u64) -> Address {
        Address::new(self.test_block(height).proposer)
    }

    pub(crate) fn timestamp(&self, height: u64) -> u64 {
        self.test_block(height).timestamp
    }

    /// The set that decides a height.
    pub(crate) fn set_of(&self, height: u64) -> ValidatorSet {
        let (_, set) =
            self.validators.range(..=height).next_back().expect("a set from height 1 on");
        set.clone()
    }

    /// The certificate of a decided block.
    pub(crate) fn certificate(&self, height: u64) -> Certificate {
        Certificate::decode(&self.block(height).1.certificate).expect("a certificate")
    }

    /// What the certificate of a decided block proves with a set of validators.
    pub(crate) fn verified(
        &self,
        height: u64,
        set: &ValidatorSet,
    ) -> Result<Certificate, CertificateError> {
        let (hash, decided) = self.block(height);
        verify_certificate(&domain(Hash::ZERO), set, height, &hash, &decided.certificate)
    }

    fn previous(content: &Content) -> Hash {
        content.decided.values().next_back().map_or(Hash::ZERO, |(hash, _)| *hash)
    }
}

impl Ledger for Disk {
    fn tip(&self) -> Result<Tip, LedgerFault> {
        let hash = Self::previous(&self.content());
        let height = self.height();
        let (validators, next_validators) = (self.set_of(height + 1), self.set_of(height + 2));
        Ok(Tip { height, hash, validators, next_validators })
    }

    fn propose(&self, height: u64, round: u32) -> Result<Proposed, LedgerFault> {
        assert_eq!(height, self.height() + 1);
        let mut content = self.content();
        let kept = content.undecided.entry(height).or_default();
        let known =
            kept.iter().find(|(block, _)| block.round == round && block.proposer == self.own);
        if let Some((block, bytes)) = known {
            return Ok(Proposed { hash: block.hash, bytes: bytes.clone() });
        }
        let lie = [0xbb; 32];
        let block = TestBlock {
            height,
            round,
            timestamp: self.now_ms(),
            previous: if self.faults().lies { lie } else { *Self::previous(&content).as_bytes() },
            proposer: *self.own.as_bytes(),
            filling: vec![7; self.filling],
        };
        let bytes = Bytes::from(borsh::to_vec(&block).map_err(LedgerFault::new)?);
        let hash = Hash::digest(&bytes);
        let undecided = Undecided { round, proposer: self.own, seal: None, hash };
        content.undecided.entry(height).or_default().push((undecided, bytes.clone()));
        Ok(Proposed { hash, bytes })
    }

    fn validate(&self, candidate: Candidate) -> Result<Verdict, LedgerFault> {
        assert_eq!(candidate.height, self.height() + 1);
        assert_eq!(candidate.seal.is_some(), candidate.origin != Origin::Synced);
        let mut content = self.content();
        let Candidate { height, round, proposer, seal, content: encoded, origin } = candidate;
        let bytes = match encoded {
            Encoded::Whole(bytes) => bytes,
            Encoded::CompactBlock { bytes, size, digest } => {
                let Some(whole) = self.fill(&bytes, size, digest) else {
                    return Ok(Verdict::Incomplete { missing: 1 });
                };
                whole
            }
        };
        let Ok(block) = borsh::from_slice::<TestBlock>(&bytes) else {
            return Ok(Verdict::Undecodable { reason: "borsh".to_owned() });
        };
        let hash = Hash::digest(&bytes);
        if block.previous != *Self::previous(&content).as_bytes() {
            return Ok(Verdict::Invalid { hash, reason: "previous hash".to_owned() });
        }
        if let Origin::Live(Seen { came_ms, open_ms }) = origin
            && height >= V7_FROM
        {
            let seen = timely::Seen { came_ms, open_ms };
            let missed = check_timely(block.timestamp, round, seen, &Params::default()).err();
            if let Some(missed) = missed {
                let direction = match missed {
                    Untimely::Ahead { .. } => Direction::Ahead,
                    Untimely::Behind { .. } => Direction::Behind,
                };
                return Ok(Verdict::Untimely { hash, direction, reason: missed.to_string() });
            }
        }
        let undecided = Undecided { round, proposer, seal, hash };
        content.undecided.entry(height).or_default().push((undecided, bytes));
        Ok(Verdict::Valid(hash))
    }

    fn commit(&self, height: u64, hash: Hash, certificate: Bytes) -> Result<(), LedgerFault> {
        if height <= self.height() {
            return Ok(());
        }
        if self.faults().broken_from.is_some_and(|broken_from| height >= broken_from) {
            return Err(LedgerFault::new("the disk is full"));
        }
        let mut content = self.content();
        let kept = content.undecided.remove(&height).unwrap_or_default();
        let (_, bytes) = kept
            .into_iter()
            .find(|(block, _)| block.hash == hash)
            .ok_or_else(|| LedgerFault::new("a decided block was not kept"))?;
        content.decided.insert(height, (hash, Decided { bytes, certificate }));
        drop(content);
        self.tip.send_replace(height);
        Ok(())
    }

    fn decided(&self, height: u64) -> Result<Option<Decided>, LedgerFault> {
        Ok(self.content().decided.get(&height).map(|(_, decided)| decided.clone()))
    }
}

impl Clock for Disk {
    #[expect(clippy::disallowed_methods, reason = "nodes of a test have the machine's clock")]
    fn now_ms(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
        let now = i64::try_from(now).expect("not so late");
        u64::try_from(now + self.faults().ahead_ms).expect("after 1970")
    }
}

impl Archive for Disk {
    /// It only names its filling.
    fn compact_block(&self, hash: &Hash) -> Result<Option<Bytes>, LedgerFault> {
        let content = self.content();
        let mut open = content.undecided.values().flatten();
        let Some((_, bytes)) = open.find(|(kept, _)| kept.hash == *hash) else { return Ok(None) };
        let block: TestBlock = borsh::from_slice(bytes).map_err(LedgerFault::new)?;
        let named = TestBlock { filling: Vec::new(), ..block };
        Ok(Some(borsh::to_vec(&named).map_err(LedgerFault::new)?.into()))
    }

    fn undecided(&self, height: u64) -> Result<Vec<Undecided>, LedgerFault> {
        let content = self.content();
        let kept = content.undecided.get(&height).into_iter().flatten();
        Ok(kept.map(|(block, _)| block.clone()).collect())
    }

    fn body(&self, height: u64, hash: &Hash) -> Result<Option<Bytes>, LedgerFault> {
        let content = self.content();
        let mut kept = content.undecided.get(&height).into_iter().flatten();
        Ok(kept.find(|(block, _)| block.hash == *hash).map(|(_, bytes)| bytes.clone()))
    }

    fn earliest(&self) -> Result<u64, LedgerFault> {
        Ok(1)
    }

    fn keep_evidence(&self, _: &[Equivocation]) -> Result<(), LedgerFault> {
        Ok(())
    }
}

/// Waits until the condition holds, of which nobody tells.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let wait = async {
        while !condition() {
            // The pause of the loop; the deadline is below.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(DEADLINE, wait).await;
    assert!(waited.is_ok(), "waited {DEADLINE:?} until {what}");
}

/// Blocks are due up to a height that the test sets.
pub(crate) struct Goal {
    due: watch::Sender<u64>,
    /// The height up to which the minimum interval is over.
    ripe: watch::Sender<u64>,
}

impl Goal {
    pub(crate) fn new(height: u64) -> Arc<Self> {
        let (due, ripe) = (watch::Sender::new(height), watch::Sender::new(u64::MAX));
        Arc::new(Self { due, ripe })
    }

    pub(crate) fn set(&self, height: u64) {
        self.due.send_replace(height);
    }

    /// Lets the minimum interval be over for blocks up to this one, and not for later ones.
    pub(crate) fn ripen(&self, height: u64) {
        self.ripe.send_replace(height);
    }
}

async fn at_least(watched: &watch::Sender<u64>, height: u64) {
    let mut watched = watched.subscribe();
    watched.wait_for(|reached| *reached >= height).await.expect("the goal outlives its waiters");
}

#[async_trait]
impl Pace for Goal {
    async fn due(&self, height: u64) {
        at_least(&self.due, height).await;
        at_least(&self.ripe, height).await;
    }

    async fn earliest(&self, height: u64) {
        at_least(&self.ripe, height).await;
    }
}

/// What a node is made of, but for its directory.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) name: String,
    pub(crate) seed: u8,
    pub(crate) votes: bool,
    pub(crate) network: Network,
    pub(crate) genesis: Hash,
    pub(crate) disk: Arc<Disk>,
    pub(crate) goal: Arc<Goal>,
    /// Until this is cancelled it does not sign.
    pub(crate) may_sign: CancellationToken,
}

/// A token that was cancelled.
pub(crate) fn at_once() -> CancellationToken {
    let token = CancellationToken::new();
    token.cancel();
    token
}

/// A running node.
pub(crate) struct Node {
    pub(crate) handle: Handle,
    pub(crate) counters: Counters,
    stop: CancellationToken,
}

impl Node {
    pub(crate) async fn start(plan: &Plan, directory: &Path) -> Self {
        Self::try_start(plan, directory).await.expect("consensus starts")
    }

    /// Why it does not start.
    pub(crate) async fn refused(plan: &Plan, directory: &Path) -> StartError {
        Self::try_start(plan, directory).await.map(drop).expect_err("it is refused")
    }

    async fn try_start(plan: &Plan, directory: &Path) -> Result<Self, StartError> {
        let stop = CancellationToken::new();
        let config = Config {
            domain: domain(plan.genesis).into(),
            moniker: plan.name.clone(),
            directory: directory.join(&plan.name),
            network: plan.network.clone(),
            block_bytes_max: 1024 * 1024,
            timeouts: Timeouts::default(),
        };
        let identity = Identity {
            node_key: node_key(plan.seed),
            validator: plan.votes.then(|| key(plan.seed)),
        };
        let ledger: Arc<dyn Ledger> = plan.disk.clone();
        let archive: Arc<dyn Archive> = plan.disk.clone();
        let counters = Counters::default();
        let pace = plan.goal.clone();
        let clock: Arc<dyn Clock> = plan.disk.clone();
        let ports = Ports { ledger, archive, pace, clock, counters: counters.clone() };
        let may_sign = plan.may_sign.clone();
        let handle =
            consensus::start_following(config, identity, ports, may_sign, stop.clone()).await?;
        Ok(Self { handle, counters, stop })
    }

    /// Stops it in order.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        let finished = tokio::time::timeout(DEADLINE, self.handle.finished()).await;
        finished.expect("it stops in time").expect("it stops without a fault");
    }

    /// Waits for its fault.
    pub(crate) async fn fault(mut self) -> ConsensusFault {
        let finished = tokio::time::timeout(DEADLINE, self.handle.finished()).await;
        finished.expect("it ends in time").expect_err("it ends with a fault")
    }
}

pub(crate) fn key(seed: u8) -> Keypair {
    Keypair::from_seed(&[seed; 32])
}

pub(crate) fn node_key(seed: u8) -> [u8; 32] {
    [seed ^ 0xff; 32]
}

pub(crate) fn set(seeds: impl IntoIterator<Item = u8>) -> ValidatorSet {
    ValidatorSet::new(seeds.into_iter().map(|seed| (key(seed).public_key(), 10))).expect("a set")
}

/// An address on loopback that nobody uses, for libp2p. It is not on 127.0.0.1, where connections take
/// any free port before the engine listens.
pub(crate) fn free_address() -> String {
    let listener = TcpListener::bind("127.1.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    format!("/ip4/127.1.0.1/tcp/{port}")
}
