//! A validator that follows the chain like any other and proposes what no honest node takes: the
//! real engine with a real key, over a ledger that lies.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::breakpoint::lock;
use crate::net::{Net, Network};
use anyhow::Context as _;
use async_trait::async_trait;
use bytes::Bytes;
use consensus::{
    Archive, Candidate, Certificate, Clock, Config, Decided, Encoded, Equivocation, Identity,
    Ledger, LedgerFault, Pace, Proposed, Tip, Undecided, ValidatorSet, Verdict,
};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use types::block::{Block, Header, UncheckedBlock, merkle_root};
use types::sign_bytes::Domain;
use types::{Address, Amount, Hash, Params, Signature, SizeLimits};

/// How often it looks for a block to make.
const PACE: Duration = Duration::from_millis(150);
const BLOCK_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What is wrong with its blocks, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Lie {
    /// The state after the block is not what it says.
    StateRoot,
    /// It follows another block than the last.
    Parent,
    /// It is made in another's name.
    Proposer,
    /// It is made in the far future.
    Time,
    /// Its bytes are no block.
    Rubbish,
    /// Its bytes are another block than its hash says.
    OtherBytes,
}

const LIES: &[Lie] =
    &[Lie::StateRoot, Lie::Parent, Lie::Proposer, Lie::Time, Lie::Rubbish, Lie::OtherBytes];

#[derive(Default)]
struct Content {
    tip: Option<Header>,
    kept: BTreeMap<Hash, (Undecided, Bytes)>,
    decided: Vec<(Header, Decided)>,
    lies: Vec<(u64, u32, Proposed)>,
}

/// The lying ledger.
#[expect(missing_debug_implementations, reason = "nobody prints a liar")]
pub struct LyingLedger {
    chain_id: String,
    genesis: Hash,
    own: Address,
    validators: ValidatorSet,
    content: Mutex<Content>,
    /// How often others asked it for decided blocks.
    asked: AtomicU64,
}

impl LyingLedger {
    fn content(&self) -> MutexGuard<'_, Content> {
        lock(&self.content)
    }

    /// A block that would be good, as far as one can tell who executes nothing.
    fn header(&self, content: &Content, height: u64) -> Header {
        let parent = content.tip.as_ref();
        Header {
            chain_id: self.chain_id.clone(),
            index: height,
            previous_hash: parent.map_or(self.genesis, Header::hash),
            timestamp: parent.map_or(1_700_000_000_000, |it| it.timestamp + 50),
            proposer: self.own,
            tx_root: merkle_root(&[]),
            state_root: parent.map_or(self.genesis, |it| it.state_root),
            tokens_burned: Amount::ZERO,
            tx_count: 0,
            randomness: None,
        }
    }

    fn lie(&self, content: &Content, height: u64) -> Proposed {
        let which = LIES.get(content.lies.len() % LIES.len()).copied().unwrap_or(Lie::Rubbish);
        let mut header = self.header(content, height);
        match which {
            Lie::StateRoot => header.state_root = Hash::digest(b"another state"),
            Lie::Parent => header.previous_hash = Hash::digest(b"another block"),
            Lie::Proposer => header.proposer = Address::new([7; 20]),
            Lie::Time => header.timestamp += 86_400_000,
            Lie::Rubbish => {
                let bytes = Bytes::from(vec![0xff; 1_000]);
                return Proposed { hash: Hash::digest(&bytes), bytes };
            }
            Lie::OtherBytes => {
                let hash = Hash::digest(b"what is voted on");
                return Proposed { hash, bytes: encode(header) };
            }
        }
        Proposed { hash: header.hash(), bytes: encode(header) }
    }
}

fn encode(header: Header) -> Bytes {
    Bytes::from(Block { header, transactions: Vec::new() }.encode())
}

impl Ledger for LyingLedger {
    fn tip(&self) -> Result<Tip, LedgerFault> {
        let content = self.content();
        let (height, hash) =
            content.tip.as_ref().map_or((0, self.genesis), |it| (it.index, it.hash()));
        let (validators, next_validators) = (self.validators.clone(), self.validators.clone());
        Ok(Tip { height, hash, validators, next_validators })
    }

    fn propose(&self, height: u64, round: u32) -> Result<Proposed, LedgerFault> {
        let mut content = self.content();
        let told = content.lies.iter().find(|(at, turn, _)| (*at, *turn) == (height, round));
        if let Some((_, _, lie)) = told {
            return Ok(lie.clone());
        }
        let lie = self.lie(&content, height);
        content.lies.push((height, round, lie.clone()));
        let kept = Undecided { round, proposer: self.own, seal: None, hash: lie.hash };
        content.kept.insert(lie.hash, (kept, lie.bytes.clone()));
        Ok(lie)
    }

    fn validate(&self, candidate: Candidate) -> Result<Verdict, LedgerFault> {
        let Candidate { round, proposer, seal, content, .. } = candidate;
        // It has no pool to fill a compact block from.
        let Encoded::Whole(bytes) = content else { return Ok(Verdict::Incomplete { missing: 0 }) };
        let limits = SizeLimits::from(&Params::default());
        match UncheckedBlock::decode(&bytes, &limits) {
            Ok(block) => {
                let hash = block.header.hash();
                let kept = Undecided { round, proposer, seal, hash };
                self.content().kept.insert(hash, (kept, bytes));
                Ok(Verdict::Valid(hash))
            }
            Err(error) => Ok(Verdict::Undecodable { reason: error.to_string() }),
        }
    }

    fn commit(&self, _: u64, hash: Hash, certificate: Bytes) -> Result<(), LedgerFault> {
        let mut content = self.content();
        let (_, bytes) =
            content.kept.remove(&hash).ok_or_else(|| LedgerFault::new("a block is missing"))?;
        let limits = SizeLimits::from(&Params::default());
        let block = UncheckedBlock::decode(&bytes, &limits).map_err(LedgerFault::new)?;
        content.kept.clear();
        content.tip = Some(block.header.clone());
        content.decided.push((block.header, Decided { bytes, certificate }));
        Ok(())
    }

    /// The block as it was decided, with a certificate that nobody signed.
    fn decided(&self, height: u64) -> Result<Option<Decided>, LedgerFault> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let content = self.content();
        let found = content.decided.iter().find(|(header, _)| header.index == height);
        let Some((_, Decided { bytes, certificate })) = found else { return Ok(None) };
        let mut forged = Certificate::decode(certificate).map_err(LedgerFault::new)?;
        for entry in &mut forged.signatures {
            entry.signature = Signature::new([7; 64]);
        }
        Ok(Some(Decided { bytes: bytes.clone(), certificate: forged.encode().into() }))
    }
}

impl Archive for LyingLedger {
    fn compact_block(&self, _: &Hash) -> Result<Option<Bytes>, LedgerFault> {
        Ok(None)
    }

    fn undecided(&self, _: u64) -> Result<Vec<Undecided>, LedgerFault> {
        Ok(Vec::new())
    }

    fn body(&self, _: u64, hash: &Hash) -> Result<Option<Bytes>, LedgerFault> {
        Ok(self.content().kept.get(hash).map(|(_, bytes)| bytes.clone()))
    }

    fn earliest(&self) -> Result<u64, LedgerFault> {
        Ok(1)
    }

    fn keep_evidence(&self, _: &[Equivocation]) -> Result<(), LedgerFault> {
        Ok(())
    }
}

/// It takes whatever others propose, whenever it comes.
impl Clock for LyingLedger {
    fn now_ms(&self) -> u64 {
        0
    }
}

#[async_trait]
impl Pace for LyingLedger {
    async fn due(&self, _: u64) {
        // Its pace, as if blocks were due by the clock.
        tokio::time::sleep(PACE).await;
    }

    async fn earliest(&self, _: u64) {
        // Its pace, as if blocks were due by the clock.
        tokio::time::sleep(PACE).await;
    }
}

/// A running liar.
#[expect(missing_debug_implementations, reason = "nobody prints a liar")]
pub struct Liar {
    ledger: Arc<LyingLedger>,
    _engine: consensus::Handle,
    _runtime: Runtime,
}

impl Liar {
    /// Starts it in the place of a node that does not run.
    pub fn start(
        net: &Net,
        at: usize,
        validators: usize,
        directory: &Path,
    ) -> anyhow::Result<Self> {
        let member = net.members.get(at).context("no such node")?;
        let honest = net.running().next().context("no node runs")?;
        let (chain_id, genesis) = super::rogue::chain(honest)?;
        let genesis = Hash::parse(&genesis).ok().context("a genesis hash")?;
        let keys = net.members.iter().take(validators).map(crate::net::Member::validator_key);
        let keys = keys.collect::<anyhow::Result<Vec<_>>>()?;
        let set = ValidatorSet::new(keys.iter().map(|key| (key.public_key(), 1)))?;
        let own = member.validator_key()?;
        let file = std::fs::read(member.home().join("genesis.json"))?;
        let file: serde_json::Value = serde_json::from_slice(&file)?;
        let v7_from = file["forks"]["v7"].as_u64();
        let ledger = Arc::new(LyingLedger {
            chain_id: chain_id.clone(),
            genesis,
            own: own.address(),
            validators: set,
            content: Mutex::default(),
            asked: AtomicU64::new(0),
        });
        let others = net.running().map(|other| {
            let id = consensus::peer_id(&other.node_key()?)?;
            Ok(format!("{}/p2p/{id}", other.p2p_address(Network::Consensus)))
        });
        let config = Config {
            domain: Domain { chain_id: chain_id.into(), genesis_hash: genesis, v7_from }.into(),
            moniker: "liar".to_owned(),
            directory: directory.to_owned(),
            network: consensus::Network::Peers {
                listen: member.p2p_address(Network::Consensus),
                peers: others.collect::<anyhow::Result<_>>()?,
                open: false,
            },
            block_bytes_max: BLOCK_BYTES_MAX,
            timeouts: consensus::Timeouts::default(),
        };
        let identity = Identity { node_key: member.node_key()?, validator: Some(own) };
        let ports = consensus::Ports {
            ledger: ledger.clone(),
            archive: ledger.clone(),
            pace: ledger.clone(),
            clock: ledger.clone(),
            counters: consensus::Counters::default(),
        };
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let engine = runtime.block_on(consensus::start(
            config,
            identity,
            ports,
            CancellationToken::new(),
        ))?;
        Ok(Self { ledger, _engine: engine, _runtime: runtime })
    }

    /// The hashes of the blocks that it proposed.
    pub fn lies(&self) -> Vec<Hash> {
        self.ledger.content().lies.iter().map(|(_, _, lie)| lie.hash).collect()
    }

    /// The height that it has followed the chain to.
    pub fn height(&self) -> u64 {
        self.ledger.content().tip.as_ref().map_or(0, |tip| tip.index)
    }

    /// How often others asked it for decided blocks; each got a forged certificate with it.
    pub fn asked(&self) -> u64 {
        self.ledger.asked.load(Ordering::Relaxed)
    }

    /// How many ways to lie there are.
    pub const fn ways() -> usize {
        LIES.len()
    }
}
