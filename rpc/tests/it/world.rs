//! A chain in memory by the ledger's own rules: takes transactions, puts them into blocks when told
//! to, and answers from the state. Everything else of a node is made up.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};

use async_trait::async_trait;
use rpc::ports::{
    Accounts, Admin, AdminError, AgentEntry, AgentFilter, Agents, CallEntry, CallEstimate,
    CallFilter, CallWish, Calls, Census, Certificate, ChainFacts, ChainQueries, Check, Clock,
    Directory, DroppedTx, Effects, Equivocation, Escrows, Events, Feed, FeedBounds, Feeder,
    ForkCounts, ForkState, ForkVoter, ForkVotes, HeldElection, Identity, IncludedTx, Keys, Market,
    MinerEntry, Network, NextRules, NextValue, OfferEntry, OfferFilter, OfferPlace, Offers,
    ParamState, ParamVoter, ParamVotes, Peer, PeerChange, PendingAccount, Pool, PoolCount,
    PoolEvent, PoolStanding, PoolTx, PortFault, Ports, Projection, Proof, ProofTarget, Proofs,
    PunishedKey, Readiness, Rules, RunFilter, Runs, SenderContent, SettlementNow, ShownBlock,
    Slice, Stake, Submit, SubmitError, Tip, Transactions, Validator, ValidatorVote,
};
use serde_json::value::RawValue;
use state::agents;
use state::market::{calls, estimate, list};
use state::rule_votes::Subject;
use state::table::Table;
use state::view::{Range, Row};
use state::{
    Executed, Memory, MemoryChain, Parent, PendingState, PushError, StorageError, TxError,
    settlement, tables, view,
};
use tokio::sync::watch;
use types::build::{Envelope, build_tx};
use types::call::Call;
use types::check::{self, StaticRules};
use types::tx::{BlobInit, ChatTurn};
use types::{
    Account, Address, AgentVersion, Amount, Blob, BlockEvents, BlockFees, Body, CheckedTx,
    CommittedBlock, Forks, Hash, Header, Keypair, Miner, Params, PublicKey, Rejection, Run,
    SealedBlock, SealedTx, SetMember, SizeLimits, Step, Supply, Transaction, TxLocation,
};

pub const CHAIN_ID: &str = "test-chain";
pub const NOW: u64 = 1_700_000_000_000;
pub const POOL_EVENTS: usize = 16;
const POOL_BOUNDS: FeedBounds = FeedBounds { events_max: POOL_EVENTS, bytes_max: 1024 * 1024 };
/// Every kind is valid from the beginning.
pub const FORKS: Forks = Forks { v6: 0, validator_vote: Some(0), v7: None, v8: None };
/// The rules of v7 hold in every block.
pub const V7: Forks = Forks { v7: Some(0), ..FORKS };
/// The rules of v8, too.
pub const V8: Forks = Forks { v8: Some(0), ..V7 };

/// What each of the keys 1 to [`FUNDED`] has at the beginning.
pub const FUNDS: u64 = 1_500_000_000;
pub const FUNDED: u8 = 60;
/// The power of the one validator, which makes every block.
const POWER: u64 = 10;

/// Everything that the node knows.
pub struct State {
    chain: MemoryChain,
    pub blocks: Vec<Arc<CommittedBlock>>,
    pub places: BTreeMap<Hash, TxLocation>,
    pub pending: Vec<CheckedTx>,
    /// What waits for the base fee to fall.
    pub waiting: Vec<CheckedTx>,
    pub queued: Vec<CheckedTx>,
    pub dropped: BTreeMap<Hash, Arc<DroppedTx>>,
    pub peers: Vec<Peer>,
    pub checks: Vec<Check>,
    pub log_filter: String,
    pub refuse: Option<SubmitError>,
    pub submissions: Vec<Vec<String>>,
    pub is_syncing: bool,
    pub has_fault: bool,
    /// The first block that the node has; 0 and 1 are the first of the chain.
    pub earliest: u64,
    /// The first block whose events the node has, if that is a later one.
    pub events_from: u64,
    /// What the pool says of any account, as long as it has not followed the latest block.
    pub outdated: Option<PendingAccount>,
    /// Who looks through the runs waits here, until the other end is dropped.
    pub escrow_gate: Option<mpsc::Receiver<()>>,
}

pub struct World {
    state: Mutex<State>,
    heights: watch::Sender<u64>,
    pool: Feeder<PoolEvent>,
    dropped: Feeder<Arc<DroppedTx>>,
    lookups: AtomicUsize,
    block_reads: AtomicUsize,
    escrow_scans: AtomicUsize,
    pub params: Params,
    forks: Forks,
}

pub fn key(seed: u8) -> Keypair {
    Keypair::from_seed(&[seed; 32])
}

fn new_chain(forks: Forks) -> MemoryChain {
    let (chain_id, params) = (CHAIN_ID.to_owned(), Params::default());
    let validators = vec![SetMember { public_key: key(99).public_key(), power: POWER }];
    let rules = Arc::new(state::ChainRules {
        chain_id,
        genesis_hash: Hash::ZERO,
        params,
        forks,
        validators,
    });
    let accounts = (1..=FUNDED).map(|seed| (key(seed).address(), Amount::new(FUNDS))).collect();
    MemoryChain::new(rules, Hash::digest(b"genesis"), NOW, &accounts).unwrap()
}

/// What never changes on a chain with these forks.
pub fn facts(forks: Forks) -> ChainFacts {
    ChainFacts {
        chain_id: CHAIN_ID.to_owned(),
        genesis_hash: Hash::digest(b"genesis"),
        genesis_time_ms: NOW,
        forks,
        params: Params::default(),
        version: "0.0.0-test".to_owned(),
    }
}

impl State {
    /// Puts what is pending into a block that comes so much later.
    fn commit_after(&mut self, ms: u64) {
        let now = self.chain.tip().timestamp + ms;
        let mut block = self.chain.begin(&key(99), now).unwrap();
        let mut fits = |tx: &CheckedTx| match block.push(tx) {
            Ok(()) => true,
            Err(PushError::Full { .. }) => false,
            Err(error) => unreachable!("tests commit what is valid: {error}"),
        };
        let taken = self.pending.iter().take_while(|tx| fits(tx)).count();
        self.pending.drain(..taken);
        let executed = block.finish().unwrap();
        self.chain.append(&executed).unwrap();
        let Parent { height, hash, .. } = self.chain.tip();
        let Executed { block, events, .. } = executed;
        for (position, tx) in (0..).zip(&block.transactions) {
            self.places.insert(tx.hash(), TxLocation { height, position });
        }
        let events = (height >= self.events_from).then_some(events);
        self.blocks.push(Arc::new(CommittedBlock { block, hash, events }));
    }
}

impl World {
    pub fn new(forks: Forks) -> Arc<Self> {
        let state = State {
            chain: new_chain(forks),
            blocks: Vec::new(),
            places: BTreeMap::new(),
            pending: Vec::new(),
            waiting: Vec::new(),
            queued: Vec::new(),
            dropped: BTreeMap::new(),
            peers: Vec::new(),
            checks: vec![Check { name: "peers", is_ok: true, detail: "3 peers".to_owned() }],
            log_filter: "info".to_owned(),
            refuse: None,
            submissions: Vec::new(),
            is_syncing: false,
            has_fault: false,
            earliest: 0,
            events_from: 0,
            outdated: None,
            escrow_gate: None,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            heights: watch::Sender::new(0),
            pool: Feeder::new(POOL_BOUNDS),
            dropped: Feeder::new(POOL_BOUNDS),
            lookups: AtomicUsize::new(0),
            block_reads: AtomicUsize::new(0),
            escrow_scans: AtomicUsize::new(0),
            params: Params::default(),
            forks,
        })
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub fn ports(self: &Arc<Self>) -> Ports {
        Ports {
            chain: self.clone(),
            transactions: self.clone(),
            accounts: self.clone(),
            runs: self.clone(),
            directory: self.clone(),
            agents: self.clone(),
            calls: self.clone(),
            offers: self.clone(),
            market: self.clone(),
            proofs: self.clone(),
            forks: self.clone(),
            rules: self.clone(),
            keys: self.clone(),
            submit: self.clone(),
            projection: self.clone(),
            pool: self.clone(),
            network: self.clone(),
            events: self.clone(),
            readiness: self.clone(),
            admin: self.clone(),
            clock: self.clone(),
        }
    }

    pub fn rules(&self) -> StaticRules<'_> {
        let height = self.state().blocks.len() as u64 + 1;
        StaticRules { chain_id: CHAIN_ID, params: &self.params, forks: self.forks, height }
    }

    /// Puts what is pending into a block, a second after the last one; answers its index.
    pub fn commit(&self) -> u64 {
        self.commit_after(1_000)
    }

    /// A finalised blob of the last funded key, in as many blocks as it takes.
    pub fn add_blob(&self, id: &str, content_type: &str, bytes: &[u8]) {
        let owner = key(FUNDED);
        let mut bodies = fixtures::blob(id, bytes);
        let content_type = content_type.to_owned();
        bodies[0] = BlobInit { content_type, ..fixtures::blob_init(id, bytes) }.into();
        let first = Projection::account(self, &owner.address()).unwrap().nonce;
        for (nonce, body) in (first..).zip(&bodies) {
            let envelope = Envelope::new(nonce, NOW, None);
            self.accept(&build_tx(&owner, body, &envelope));
        }
        while !self.state().pending.is_empty() {
            self.commit();
        }
    }

    /// The state after the last block.
    fn memory(&self) -> Arc<Memory> {
        Arc::clone(self.state().chain.state())
    }

    fn row<T: Table>(&self, key: &T::Key) -> Option<T::Value> {
        view::get::<T>(&*self.memory(), key).unwrap()
    }

    /// The rows of a table in the order of their keys, whose bytes begin so.
    fn rows<T: Table>(&self, begin: &[u8]) -> Vec<Row<T>> {
        let to = [begin, &[0xff; 64]].concat();
        let range = Range { from: begin, to: Some(&to), limit: usize::MAX };
        view::scan::<T>(&*self.memory(), range).unwrap()
    }

    fn values<T: Table>(&self, begin: &[u8]) -> Vec<T::Value> {
        self.rows::<T>(begin).into_iter().map(|(_, value)| value).collect()
    }

    /// The state with what is pending.
    fn projected(&self) -> PendingState {
        let state = self.state();
        let rules = Arc::clone(state.chain.rules());
        let mut projected = PendingState::new(state.chain.base(), rules).unwrap();
        for tx in &state.pending {
            // This node's pool takes what no block would.
            projected.admit(tx).ok();
        }
        projected
    }

    /// Makes so many blocks.
    pub fn commit_many(&self, count: usize) {
        for _ in 0..count {
            self.commit();
        }
    }

    /// Puts what is pending into a block that comes so much later; answers its index. What has no room
    /// stays pending.
    pub fn commit_after(&self, ms: u64) -> u64 {
        self.commit_at_once(1, ms)
    }

    /// The same for so many blocks, which everybody sees together.
    pub fn commit_at_once(&self, count: usize, ms: u64) -> u64 {
        let mut state = self.state();
        (0..count).for_each(|_| state.commit_after(ms));
        let height = state.chain.tip().height;
        drop(state);
        self.heights.send_replace(height);
        height
    }

    /// How often the pool was asked for a transaction.
    pub fn lookups(&self) -> usize {
        self.lookups.load(Ordering::SeqCst)
    }

    /// How often a block was read.
    pub fn block_reads(&self) -> usize {
        self.block_reads.load(Ordering::SeqCst)
    }

    /// How often all open runs were looked through.
    pub fn escrow_scans(&self) -> usize {
        self.escrow_scans.load(Ordering::SeqCst)
    }

    /// How many subscriptions and other listeners there are.
    pub fn listeners(&self) -> usize {
        self.heights.receiver_count()
    }

    /// How many of them wait for each event of the pool.
    pub fn pool_listeners(&self) -> usize {
        self.pool.listeners()
    }

    /// Something has happened in the pool.
    fn tell(&self, event: PoolEvent) {
        if let PoolEvent::Dropped(dropped) = &event {
            self.dropped.push(event.memory_bytes(), Arc::clone(dropped));
            self.dropped.tell();
        }
        self.pool.push(event.memory_bytes(), event);
        self.pool.tell();
    }

    /// Takes a transaction in.
    pub fn accept(&self, text: &str) -> Hash {
        self.take_one(text).unwrap()
    }

    /// Takes a transaction in that waits for an earlier one.
    pub fn queue(&self, text: &str) {
        let tx = self.check(text).unwrap();
        self.state().queued.push(tx.clone());
        self.tell(PoolEvent::Accepted { tx, standing: PoolStanding::Queued });
    }

    pub fn drop_tx(&self, hash: &Hash, reason: Rejection) {
        let mut state = self.state();
        let at = state.pending.iter().position(|tx| tx.hash() == *hash).unwrap();
        let tx = state.pending.remove(at);
        let dropped = Arc::new(DroppedTx { tx, reason, at: NOW });
        state.dropped.insert(*hash, Arc::clone(&dropped));
        drop(state);
        self.tell(PoolEvent::Dropped(dropped));
    }

    fn included(&self, place: TxLocation) -> IncludedTx {
        let state = self.state();
        let committed = &state.blocks[place.height as usize - 1];
        IncludedTx {
            tx: committed.block.transactions[place.position as usize].clone(),
            location: place,
            block_hash: committed.hash,
            timestamp: committed.block.header.timestamp,
        }
    }

    fn all_places(&self, wanted: impl Fn(&CheckedTx) -> bool) -> Vec<TxLocation> {
        let blocks = self.state().blocks.clone();
        let mut places = Vec::new();
        for committed in blocks {
            for (position, tx) in (0..).zip(&committed.block.transactions) {
                if wanted(tx) {
                    places.push(TxLocation { height: committed.block.header.index, position });
                }
            }
        }
        places
    }

    fn check(&self, text: &str) -> Result<CheckedTx, Rejection> {
        let limits = SizeLimits::from(&self.params);
        let tx = Transaction::parse(text.as_bytes(), &limits)?;
        check::verify_one(tx, &self.rules())
    }

    fn fault(&self) -> Result<(), PortFault> {
        let broken = std::io::Error::other("the disk is on fire");
        if self.state().has_fault { Err(PortFault::new("reading", broken)) } else { Ok(()) }
    }

    fn take_one(&self, text: &str) -> Result<Hash, SubmitError> {
        if let Some(error) = self.state().refuse.clone() {
            return Err(error);
        }
        let tx = self.check(text)?;
        let hash = tx.hash();
        let mut state = self.state();
        let is_known = state.places.contains_key(&hash)
            || state.pending.iter().any(|pending| pending.hash() == hash);
        if !is_known {
            state.pending.push(tx.clone());
            drop(state);
            self.tell(PoolEvent::Accepted { tx, standing: PoolStanding::Pending });
        }
        Ok(hash)
    }
}

/// What was read of the state, which is in memory.
fn read<T>(found: Result<T, StorageError>) -> Result<T, PortFault> {
    found.map_err(|fault| PortFault::new("reading the state", fault))
}

fn slice<T, P>(mut items: Vec<T>, limit: usize, position: impl Fn(&T) -> P) -> Slice<T, P> {
    let next = (items.len() > limit).then(|| position(&items[limit - 1]));
    items.truncate(limit);
    Slice { items, next }
}

impl ChainQueries for World {
    fn tip(&self) -> Tip {
        let earliest = self.state().earliest.max(1);
        let events_from = self.state().events_from.max(earliest);
        let Parent { height, hash, timestamp, .. } = self.state().chain.tip();
        Tip { height, hash, timestamp, earliest, events_from }
    }

    fn block(&self, height: u64) -> Result<Option<Arc<CommittedBlock>>, PortFault> {
        self.fault()?;
        self.block_reads.fetch_add(1, Ordering::SeqCst);
        let earliest = self.state().earliest;
        if height < earliest {
            return Err(PortFault::history(earliest));
        }
        Ok(self.state().blocks.get(height as usize - 1).cloned())
    }

    fn height_of(&self, hash: &Hash) -> Result<Option<u64>, PortFault> {
        let state = self.state();
        let found = state.blocks.iter().find(|committed| committed.hash == *hash);
        Ok(found.map(|committed| committed.block.header.index))
    }

    fn shown(&self, height: u64) -> Result<Option<ShownBlock>, PortFault> {
        let Some(committed) = self.block(height)? else { return Ok(None) };
        let CommittedBlock { block, hash, .. } = &*committed;
        let transactions = block.transactions.iter().map(|tx| SealedTx::from(&**tx)).collect();
        let block = SealedBlock { header: block.header.clone(), hash: *hash, transactions };
        let signature = key(99).sign(b"precommit");
        let certificate = Certificate {
            height,
            round: 0,
            block_hash: committed.hash,
            signatures: vec![(key(99).address(), signature)],
        };
        let fees = committed.events.as_ref().and_then(BlockEvents::fees);
        Ok(Some(ShownBlock { block, certificate: Some(certificate), fees }))
    }

    fn validators(&self, height: u64) -> Result<Option<Vec<Validator>>, PortFault> {
        let is_known = height <= self.state().blocks.len() as u64 + 1;
        let candidate_key = key(98).public_key();
        let vote = ValidatorVote { candidate_key, power: 3, expires_at: NOW };
        let signature = key(99).sign(b"x");
        let messages = [(Some(Hash::ZERO), -1, signature), (None, -1, signature)];
        let pair = Equivocation { height: 7, round: 1, kind: "precommit", messages };
        Ok(is_known.then(|| {
            vec![Validator {
                address: key(99).address(),
                public_key: key(99).public_key(),
                power: POWER,
                proposed: 1,
                missed: 0,
                votes: vec![vote],
                equivocations: 5,
                evidence: vec![pair],
            }]
        }))
    }
}

impl ForkCounts for World {
    fn forks(&self) -> Result<ForkVotes, PortFault> {
        let voter = ForkVoter { address: key(99).address(), power: 10, height: 70, block_index: 5 };
        let fork = "v7".to_owned();
        let state = ForkState { fork, is_known: false, fixed: Some((70, 6)), votes: vec![voter] };
        Ok(ForkVotes { forks: vec![state], total_power: 10, missing: Some((1, 4)) })
    }
}

impl Keys for World {
    fn punished(
        &self,
        after: Option<PublicKey>,
        limit: usize,
    ) -> Result<Slice<PunishedKey, PublicKey>, PortFault> {
        let mut keys = [96, 97, 98].map(|seed| key(seed).public_key()).to_vec();
        keys.sort_unstable();
        let keys =
            keys.into_iter().zip(5_u64..).map(|(key, at)| PunishedKey { key, punished_at: at });
        let keys = keys.filter(|it| after.is_none_or(|after| it.key > after)).collect();
        Ok(slice(keys, limit, |it: &PunishedKey| it.key))
    }
}

impl Rules for World {
    fn stake(&self, address: &Address, _: usize) -> Result<Stake, PortFault> {
        let bond = self.row::<tables::Bonds>(address).unwrap_or_default();
        let submitter = self.row::<tables::FiguresOfSubmitters>(address).unwrap_or_default();
        Ok(Stake { bond, unbonding: Vec::new(), submitter })
    }

    fn next_rules(&self) -> Result<NextRules, PortFault> {
        let state = self.state();
        let (chain, height) = (state.chain.rules(), state.blocks.len() as u64 + 1);
        let rules = read(state::Rules::at(chain, &**state.chain.state(), height))?;
        let base_fee = rules.price.map(|price| price.base_fee);
        let Forks { v7: v7_from, v8: v8_from, .. } = rules.forks;
        Ok(NextRules { height, v7_from, v8_from, params: rules.params, base_fee })
    }

    fn params(&self) -> Result<ParamVotes, PortFault> {
        let params = self.next_rules()?.params;
        let cast = read(state::rule_votes::votes(&*self.memory()))?;
        let of_v7 = state::params::CHANGEABLE.iter().filter(|param| param.fork == types::Fork::V7);
        let states = of_v7.map(|param| {
            let subject = Subject::Param(param.name.to_owned()).text();
            let votes = cast.iter().filter(|((_, text), _)| *text == subject);
            let votes = votes.map(|((voter, _), vote)| ParamVoter {
                address: *voter,
                power: POWER,
                value: vote.value,
                height: vote.height,
                block_index: vote.at,
            });
            let row = self.row::<tables::ParamRows>(&param.name.to_owned());
            let next = row.and_then(|row| row.next);
            ParamState {
                name: param.name,
                value: param.get(&params),
                min: param.min,
                max: param.max,
                next: next.map(|next| NextValue { value: next.value, height: next.height }),
                votes: votes.collect(),
            }
        });
        Ok(ParamVotes { params: states.collect(), total_power: u128::from(POWER) })
    }

    fn inclusion_fee(&self, bytes: u64, base_fee: u64) -> Amount {
        state::fees::inclusion_fee(bytes, base_fee)
    }

    fn paid(&self, included: &IncludedTx) -> Result<Option<Amount>, PortFault> {
        let TxLocation { height, position } = included.location;
        let committed = self.state().blocks[height as usize - 1].clone();
        let fees = committed.events.as_ref().and_then(BlockEvents::fees);
        let before = &committed.block.transactions[..position as usize];
        let is_earlier_vote =
            |other: &CheckedTx| other.from() == included.tx.from() && state::fees::is_vote(other);
        let charged =
            state::fees::charged_bytes(&included.tx, || before.iter().any(is_earlier_vote));
        let floor = self.state().chain.rules().params.base_fee_floor;
        let is_at_floor = state::fees::is_at_floor(&included.tx);
        let per_kib = |fees: BlockFees| if is_at_floor { floor } else { fees.base_fee };
        Ok(fees.map(|fees| state::fees::inclusion_fee(charged, per_kib(fees))))
    }
}

impl Transactions for World {
    fn by_hash(&self, hash: &Hash) -> Result<Option<IncludedTx>, PortFault> {
        let place = self.state().places.get(hash).copied();
        Ok(place.map(|place| self.included(place)))
    }

    fn at(&self, locations: &[TxLocation]) -> Result<Vec<IncludedTx>, PortFault> {
        Ok(locations.iter().map(|place| self.included(*place)).collect())
    }

    fn headers(&self, from: u64, limit: usize) -> Result<Vec<(Hash, Header)>, PortFault> {
        let state = self.state();
        let below = state.blocks.iter().rev().filter(|block| block.block.header.index <= from);
        Ok(below.take(limit).map(|block| (block.hash, block.block.header.clone())).collect())
    }

    fn turns(
        &self,
        conversation_id: &Hash,
        after: Option<TxLocation>,
        limit: usize,
    ) -> Result<Slice<TxLocation, TxLocation>, PortFault> {
        let is_turn = |tx: &CheckedTx| matches!(tx.body(), Body::ChatTurn(ChatTurn { conversation_id: id, .. }) if id == conversation_id);
        let mut places = self.all_places(is_turn);
        places.retain(|place| after.is_none_or(|after| *place > after));
        Ok(slice(places, limit, |place| *place))
    }
}

impl Accounts for World {
    fn account(&self, address: &Address) -> Result<Account, PortFault> {
        self.fault()?;
        Ok(self.row::<tables::Accounts>(address).unwrap_or_default())
    }

    fn transactions(
        &self,
        address: &Address,
        before: Option<TxLocation>,
        limit: usize,
    ) -> Result<Slice<TxLocation, TxLocation>, PortFault> {
        let concerns = |tx: &CheckedTx| {
            let to =
                if let Body::Transfer(body) = tx.body() { Some(body.to.address) } else { None };
            tx.from() == *address || to == Some(*address)
        };
        let mut places = self.all_places(concerns);
        places.reverse();
        places.retain(|place| before.is_none_or(|before| *place < before));
        Ok(slice(places, limit, |place| *place))
    }

    fn supply(&self) -> Result<Supply, PortFault> {
        Ok(self.row::<tables::Supplies>(&()).unwrap())
    }

    fn census(&self, _: usize) -> Result<Census, PortFault> {
        unreachable!("only REST asks for it, and tests/sdk/rest.py asks a whole node")
    }

    fn escrows(&self) -> Result<Escrows, PortFault> {
        self.escrow_scans.fetch_add(1, Ordering::SeqCst);
        let gate = self.state().escrow_gate.take();
        if let Some(gate) = gate {
            gate.recv().ok();
        }
        let mut by_submitter: BTreeMap<Address, Amount> = BTreeMap::new();
        for run in self.values::<tables::Runs>(&[]) {
            if !run.status.is_terminal() {
                let held = by_submitter.entry(run.submitter).or_default();
                *held = held.checked_add(run.max_fee).unwrap();
            }
        }
        Ok(Escrows { height: self.state().blocks.len() as u64, by_submitter })
    }
}

impl Runs for World {
    fn run(&self, agent_run_id: &Hash) -> Result<Option<Run>, PortFault> {
        Ok(self.row::<tables::Runs>(agent_run_id))
    }

    fn steps(
        &self,
        agent_run_id: &Hash,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Slice<Step, u64>, PortFault> {
        let mut steps = self.values::<tables::Steps>(agent_run_id.as_bytes());
        steps.retain(|step| after.is_none_or(|after| step.step_index > after));
        Ok(slice(steps, limit, |step| step.step_index))
    }

    fn list(
        &self,
        filter: &RunFilter,
        before: Option<TxLocation>,
        limit: usize,
    ) -> Result<Slice<Run, TxLocation>, PortFault> {
        let mut runs = self.values::<tables::Runs>(&[]);
        runs.sort_by_key(|run| std::cmp::Reverse(run.request));
        runs.retain(|run| {
            before.is_none_or(|before| run.request < before)
                && filter.status.is_none_or(|status| run.status == status)
                && filter.submitter.is_none_or(|submitter| run.submitter == submitter)
                && filter.miner.is_none_or(|miner| run.miner == Some(miner))
                && filter.conversation_id.is_none_or(|id| run.conversation_id == id)
        });
        Ok(slice(runs, limit, |run| run.request))
    }
}

impl World {
    fn entry(&self, miner: Miner) -> MinerEntry {
        let figures = self.row::<tables::Figures>(&miner.address).unwrap_or_default();
        MinerEntry { miner, figures }
    }
}

impl Directory for World {
    fn miners(
        &self,
        after: Option<Address>,
        limit: usize,
    ) -> Result<Slice<MinerEntry, Address>, PortFault> {
        let mut miners = self.values::<tables::Miners>(&[]);
        miners.retain(|miner| after.is_none_or(|after| miner.address > after));
        let miners = miners.into_iter().map(|miner| self.entry(miner)).collect();
        Ok(slice(miners, limit, |entry: &MinerEntry| entry.miner.address))
    }

    fn miner(&self, address: &Address) -> Result<Option<MinerEntry>, PortFault> {
        Ok(self.row::<tables::Miners>(address).map(|miner| self.entry(miner)))
    }

    fn miner_by_id(&self, miner_id: &Hash) -> Result<Option<MinerEntry>, PortFault> {
        let Some(address) = self.row::<tables::MinerIds>(miner_id) else { return Ok(None) };
        Directory::miner(self, &address)
    }

    fn blob(&self, blob_id: &str) -> Result<Option<Blob>, PortFault> {
        Ok(self.row::<tables::Blobs>(&blob_id.to_owned()))
    }

    fn blob_bytes(&self, blob_id: &str) -> Result<Option<Vec<u8>>, PortFault> {
        let Some(blob) = Directory::blob(self, blob_id)? else { return Ok(None) };
        let chunk = |index| self.row::<tables::BlobChunks>(&(index, blob_id.to_owned())).unwrap();
        Ok(Some((0..blob.total_chunks as u32).flat_map(chunk).collect()))
    }
}

impl Offers for World {
    fn list(
        &self,
        filter: &OfferFilter,
        after: Option<OfferPlace>,
        limit: usize,
    ) -> Result<Slice<OfferEntry, OfferPlace>, PortFault> {
        let params = self.next_rules()?.params;
        let OfferFilter { executor, miner } = *filter;
        let after = after.map(|OfferPlace { miner, executor, bonded }| list::OfferCursor {
            miner,
            executor,
            bonded,
        });
        let filter = list::Filter { executor, miner };
        let listed = list::list(&*self.memory(), &params, &filter, after.as_ref(), limit + 1);
        let entry = |it: list::Listed| {
            let list::Listed { miner, executor, offer, bond, open, counts } = it;
            OfferEntry { miner, executor, offer, bond, open, counts }
        };
        let entries = read(listed)?.into_iter().map(entry).collect();
        let place = |it: &OfferEntry| {
            let OfferEntry { miner, executor, bond, .. } = *it;
            OfferPlace { miner, executor, bonded: bond.bonded }
        };
        Ok(slice(entries, limit, place))
    }
}

impl Calls for World {
    fn call(&self, id: &Hash) -> Result<Option<CallEntry>, PortFault> {
        let Some(call) = self.row::<tables::Calls>(id) else { return Ok(None) };
        let state = self.memory();
        let members = if call.is_settled() {
            calls::settled_members(&*state, id)
        } else {
            calls::members(&*state, id)
        };
        Ok(Some(CallEntry { call, members: read(members)? }))
    }

    fn record(&self, id: &Hash) -> Result<Option<Call>, PortFault> {
        self.lookups.fetch_add(1, Ordering::SeqCst);
        Ok(self.row::<tables::Calls>(id))
    }

    fn list(
        &self,
        filter: &CallFilter,
        before: Option<TxLocation>,
        limit: usize,
    ) -> Result<Slice<Call, TxLocation>, PortFault> {
        let mut all = self.values::<tables::Calls>(&[]);
        all.sort_by_key(|call| std::cmp::Reverse(call.request));
        let is_of = |call: &Call, member: Address| {
            let TxLocation { height, position } = call.request;
            self.row::<tables::CallsByMember>(&(member, height, position)).is_some()
        };
        all.retain(|call| {
            before.is_none_or(|before| call.request < before)
                && filter.status.is_none_or(|status| call.status == status)
                && filter.agent_id.is_none_or(|id| call.agent_id == id)
                && filter.requester.is_none_or(|requester| call.requester == requester)
                && filter.member.is_none_or(|member| is_of(call, member))
        });
        Ok(slice(all, limit, |call| call.request))
    }
}

fn entry_of(found: agents::Found) -> AgentEntry {
    let agents::Found { agent, version, text } = found;
    AgentEntry { agent, version, metadata: text }
}

impl Agents for World {
    fn agent(&self, id: &Hash, version: Option<&str>) -> Result<Option<AgentEntry>, PortFault> {
        Ok(read(agents::find(&*self.memory(), id, version))?.map(entry_of))
    }

    fn versions(
        &self,
        id: &Hash,
        from: Option<&str>,
        limit: usize,
    ) -> Result<Option<Slice<AgentVersion, String>>, PortFault> {
        let versions = read(agents::versions(&*self.memory(), id, from, limit + 1))?;
        let before = |it: &AgentVersion| it.previous.clone().unwrap();
        Ok(versions.map(|versions| slice(versions, limit, before)))
    }

    fn list(
        &self,
        filter: &AgentFilter,
        after: Option<Hash>,
        limit: usize,
    ) -> Result<Slice<AgentEntry, Hash>, PortFault> {
        let AgentFilter { owner, tag, executor, text, is_deterministic } = filter.clone();
        let filter = agents::Filter { owner, tag, executor, text, is_deterministic };
        let listed = read(agents::list(&*self.memory(), &filter, after.as_ref(), limit))?;
        Ok(Slice { items: listed.agents.into_iter().map(entry_of).collect(), next: listed.next })
    }
}

impl Proofs for World {
    fn prove(&self, target: &ProofTarget) -> Result<Option<Proof>, PortFault> {
        let Some(last) = self.state().blocks.last().cloned() else { return Ok(None) };
        let key = match target {
            ProofTarget::Account(address) => Hash::digest(address.as_bytes()),
            ProofTarget::AgentRun(id) => *id,
            ProofTarget::Validators => Hash::digest(b"v"),
            ProofTarget::Bond(address) => {
                Hash::digest(&[address.as_bytes().as_slice(), b"d"].concat())
            }
            ProofTarget::Offer(miner, executor) => {
                Hash::digest(format!("{miner} {executor}").as_bytes())
            }
            ProofTarget::Agent(id) | ProofTarget::Call(id) => *id,
        };
        Ok(Some(Proof {
            key,
            value: Some(vec![0, 1, 255]),
            leaf: Some((key, Hash::digest(&[0, 1, 255]))),
            siblings: vec![Hash::ZERO],
            state_root: last.block.header.state_root,
            header: last.block.header.clone(),
            certificate: self.shown(last.block.header.index)?.unwrap().certificate.unwrap(),
        }))
    }
}

#[async_trait]
impl Submit for World {
    async fn submit(&self, texts: Vec<Box<RawValue>>) -> Vec<Result<Hash, SubmitError>> {
        let texts: Vec<String> = texts.iter().map(|text| text.get().to_owned()).collect();
        self.state().submissions.push(texts.clone());
        texts.iter().map(|text| self.take_one(text)).collect()
    }
}

impl Projection for World {
    fn account(&self, address: &Address) -> Result<PendingAccount, PortFault> {
        if let Some(outdated) = self.state().outdated {
            return Ok(outdated);
        }
        let Account { balance, nonce } = read(self.projected().account(*address))?;
        Ok(PendingAccount { nonce, balance })
    }

    fn settlement(&self, agent_run_id: &Hash) -> Result<Option<SettlementNow>, PortFault> {
        Ok(read(self.projected().run(agent_run_id))?.map(|run| {
            let fees = run.settlement.unwrap_or_else(|| settlement(&run).unwrap().settlement);
            SettlementNow { total_tokens_out: run.tokens_out, step_count: run.step_count, fees }
        }))
    }

    fn simulate(&self, text: &RawValue) -> Result<Effects, SubmitError> {
        let limits = SizeLimits::from(&self.params);
        let tx = Transaction::parse_unsigned(text.get().as_bytes(), &limits)?;
        let rules = self.rules();
        let tx = check::verify_unsigned(tx, &rules)?;
        let simulated = self.projected().simulate(&tx, rules.height, NOW);
        let effects = simulated.map_err(|error| match error {
            TxError::Rejected(reason) => SubmitError::Rejected(*reason),
            TxError::Storage(fault) => SubmitError::Fault(PortFault::new("simulating", fault)),
        })?;
        let balances = effects.balances.into_iter();
        Ok(Effects {
            balances: balances.map(|(address, (before, after))| (address, before, after)).collect(),
            run: effects.run,
            burned: effects.burned,
        })
    }
}

impl Pool for World {
    fn find(&self, hash: &Hash) -> Option<PoolTx> {
        self.lookups.fetch_add(1, Ordering::SeqCst);
        let state = self.state();
        let waiting = state.pending.iter().find(|tx| tx.hash() == *hash);
        let dropped = || state.dropped.get(hash).cloned().map(PoolTx::Dropped);
        waiting.cloned().map(PoolTx::Pending).or_else(dropped)
    }

    fn counts(&self) -> Vec<(&'static str, PoolCount)> {
        let mut counts: BTreeMap<&'static str, PoolCount> = BTreeMap::new();
        for tx in &self.state().pending {
            let count = counts.entry(tx.body().type_name()).or_default();
            count.pending += 1;
            count.bytes += tx.encoded_bytes() as u64;
        }
        for tx in &self.state().queued {
            counts.entry(tx.body().type_name()).or_default().queued += 1;
        }
        counts.into_iter().collect()
    }

    fn content(&self, after: Option<Address>, limit: usize) -> Slice<SenderContent, Address> {
        let mut senders: Vec<Address> = {
            let state = self.state();
            state.pending.iter().chain(&state.queued).map(|tx| tx.from()).collect()
        };
        senders.sort_unstable();
        senders.dedup();
        senders.retain(|sender| after.is_none_or(|after| *sender > after));
        let contents = senders.iter().map(|sender| self.content_from(sender)).collect();
        slice(contents, limit, |content: &SenderContent| content.sender)
    }

    fn content_from(&self, sender: &Address) -> SenderContent {
        let state = self.state();
        let of =
            |txs: &[CheckedTx]| txs.iter().filter(|tx| tx.from() == *sender).cloned().collect();
        let [pending, waiting, queued] =
            [&state.pending, &state.waiting, &state.queued].map(|it| of(it));
        SenderContent { sender: *sender, pending, waiting, queued }
    }

    fn pending(&self, limit: usize) -> Vec<CheckedTx> {
        self.state().pending.iter().take(limit).cloned().collect()
    }
}

impl Network for World {
    fn identity(&self) -> Identity {
        Identity { peer_id: "12D3".to_owned(), listen_addresses: vec!["/ip4/1.2.3.4".to_owned()] }
    }

    fn peers(&self) -> Vec<Peer> {
        self.state().peers.clone()
    }

    fn is_syncing(&self) -> bool {
        self.state().is_syncing
    }
}

impl Events for World {
    fn committed(&self) -> watch::Receiver<u64> {
        self.heights.subscribe()
    }

    fn pool(&self) -> Feed<PoolEvent> {
        self.pool.listen()
    }

    fn dropped(&self) -> Feed<Arc<DroppedTx>> {
        self.dropped.listen()
    }
}

impl Readiness for World {
    fn checks(&self) -> Vec<Check> {
        self.state().checks.clone()
    }

    fn clock(&self) -> Option<Check> {
        Some(Check { name: "clock", is_ok: false, detail: "it is wrong".to_owned() })
    }
}

#[async_trait]
impl Admin for World {
    fn log_filter(&self) -> String {
        self.state().log_filter.clone()
    }

    fn set_log_filter(&self, filter: &str) -> Result<(), AdminError> {
        if filter.contains('!') {
            let expected = "directives like info,rpc=debug".to_owned();
            let got = filter.to_owned();
            return Err(AdminError::Invalid { field: "filter", got, expected });
        }
        filter.clone_into(&mut self.state().log_filter);
        Ok(())
    }

    fn flush_pool(&self) -> Result<u64, AdminError> {
        Ok(std::mem::take(&mut self.state().pending).len() as u64)
    }

    async fn change_peer(&self, change: PeerChange) -> Result<(), AdminError> {
        let mut state = self.state();
        match change {
            PeerChange::Add(address) | PeerChange::AddGossip(address) => state.peers.push(Peer {
                peer_id: "12D4".to_owned(),
                address,
                height: None,
                latency_ms: Some(3),
                score: None,
                is_inbound: false,
            }),
            PeerChange::Remove(peer_id) | PeerChange::Ban { peer_id, .. } => {
                state.peers.retain(|peer| peer.peer_id != peer_id);
            }
            PeerChange::Unban(_) => {}
        }
        Ok(())
    }
}

impl Clock for World {
    fn now_ms(&self) -> u64 {
        NOW
    }
}

impl Market for World {
    fn estimate(
        &self,
        agent: &AgentVersion,
        wish: &CallWish,
    ) -> Result<Option<CallEstimate>, PortFault> {
        let params = self.next_rules()?.params;
        let CallWish { committee_size, consensus, is_appealable, limits, prices } = *wish;
        let wish = estimate::Wish { committee_size, consensus, is_appealable, limits };
        let (memory, unknown) = (self.memory(), &mut estimate::Known::default());
        let state: (&dyn view::Read, _) = (&*memory, unknown);
        let found = match prices {
            Some(prices) => estimate::at_prices(state, &params, agent, (&wish, &prices)),
            None => estimate::estimate(state, &params, agent, &wish).map(Some),
        };
        Ok(read(found)?.map(|it| CallEstimate {
            prices: it.prices,
            budget: it.budget,
            floor: it.floor,
            max_fee: it.floor,
            lock: it.lock,
            needed: it.needed,
            eligible: it.eligible,
            full: it.full,
            offering: it.offering,
        }))
    }

    fn election(&self, call_id: &Hash, round: u8) -> Result<Option<HeldElection>, PortFault> {
        let Some(call) = self.row::<tables::Calls>(call_id) else { return Ok(None) };
        let Some(held) = call.rounds.get(usize::from(round)) else { return Ok(None) };
        let candidates =
            self.row::<tables::CallCandidates>(&tables::CallCandidates::key(&call, round));
        Ok(candidates.map(|candidates| HeldElection { height: held.elected_in, candidates }))
    }
}
