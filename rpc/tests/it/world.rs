//! A small chain in memory: takes transactions, puts them into blocks when told to, and keeps
//! just enough state to answer with.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use rpc::ports::{
    Accounts, Admin, AdminError, Census, Certificate, Chain, ChainFacts, Check, Clock, Directory,
    DroppedTx, Effects, Equivocation, Escrows, Events, Fault, ForkCounts, ForkState, ForkVoter,
    ForkVotes, Group, Identity, IncludedTx, MinerEntry, Network, Peer, PeerChange, PendingAccount,
    Pool, PoolCount, PoolEvent, PoolTx, Ports, Projection, Proof, ProofTarget, Proofs, Readiness,
    RunFilter, Runs, SenderContent, SettlementNow, ShownBlock, Slice, Submit, SubmitError, Tip,
    Transactions, Validator, ValidatorVote,
};
use serde_json::value::RawValue;
use tokio::sync::{broadcast, watch};
use types::check::{self, StaticRules};
use types::tx::ChatTurn;
use types::{
    Account, Address, Amount, Blob, Block, BlockEvents, Body, CheckedTx, CommittedBlock, Event,
    Forks, Hash, Header, Keypair, Miner, MinerFigures, Params, Rejection, Run, RunStatus,
    SealedBlock, SealedTx, Settlement, SizeLimits, Step, Supply, Transaction, TxEvent, TxLocation,
    block,
};

pub const CHAIN_ID: &str = "test-chain";
pub const NOW: u64 = 1_700_000_000_000;
pub const POOL_EVENTS: usize = 16;
/// Every kind is valid from the beginning.
pub const FORKS: Forks = Forks { v6: 0, validator_vote: Some(0) };

/// Everything that the chain knows.
#[derive(Default)]
pub struct State {
    pub blocks: Vec<Arc<CommittedBlock>>,
    pub places: BTreeMap<Hash, TxLocation>,
    pub pending: Vec<CheckedTx>,
    pub queued: Vec<CheckedTx>,
    pub dropped: BTreeMap<Hash, Arc<DroppedTx>>,
    pub balances: BTreeMap<Address, Amount>,
    pub runs: BTreeMap<Hash, Run>,
    pub steps: BTreeMap<Hash, Vec<Step>>,
    pub miners: BTreeMap<Address, Miner>,
    pub blobs: BTreeMap<String, Blob>,
    pub blob_bytes: BTreeMap<String, Vec<u8>>,
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
}

pub struct World {
    state: Mutex<State>,
    heights: watch::Sender<u64>,
    pool: broadcast::Sender<PoolEvent>,
    dropped: broadcast::Sender<Arc<DroppedTx>>,
    lookups: AtomicUsize,
    block_reads: AtomicUsize,
    escrow_scans: AtomicUsize,
    pub params: Params,
}

pub fn key(seed: u8) -> Keypair {
    Keypair::from_seed(&[seed; 32])
}

/// What never changes.
pub fn facts() -> ChainFacts {
    ChainFacts {
        chain_id: CHAIN_ID.to_owned(),
        genesis_hash: Hash::digest(b"genesis"),
        genesis_time_ms: NOW,
        forks: FORKS,
        params: Params::default(),
        version: "0.0.0-test".to_owned(),
    }
}

impl World {
    pub fn new() -> Arc<Self> {
        let state = State {
            log_filter: "info".to_owned(),
            checks: vec![Check { name: "peers", is_ok: true, detail: "3 peers".to_owned() }],
            ..State::default()
        };
        Arc::new(Self {
            state: Mutex::new(state),
            heights: watch::Sender::new(0),
            pool: broadcast::Sender::new(POOL_EVENTS),
            dropped: broadcast::Sender::new(POOL_EVENTS),
            lookups: AtomicUsize::new(0),
            block_reads: AtomicUsize::new(0),
            escrow_scans: AtomicUsize::new(0),
            params: Params::default(),
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
            proofs: self.clone(),
            forks: self.clone(),
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
        StaticRules { chain_id: CHAIN_ID, params: &self.params, forks: FORKS, height }
    }

    /// Puts everything pending into a block; answers its index.
    pub fn commit(&self) -> u64 {
        let transactions = std::mem::take(&mut self.state().pending);
        self.commit_block(transactions, Vec::new())
    }

    /// Makes so many blocks.
    pub fn commit_many(&self, count: usize) {
        for _ in 0..count {
            self.commit();
        }
    }

    pub fn commit_block(&self, transactions: Vec<CheckedTx>, end: Vec<Event>) -> u64 {
        let mut state = self.state();
        let height = state.blocks.len() as u64 + 1;
        let hashes: Vec<Hash> = transactions.iter().map(|tx| tx.hash()).collect();
        let header = Header {
            chain_id: CHAIN_ID.to_owned(),
            index: height,
            previous_hash: state
                .blocks
                .last()
                .map_or_else(|| Hash::digest(b"genesis"), |last| last.hash),
            timestamp: NOW + height * 1_000,
            proposer: key(99).address(),
            tx_root: block::merkle_root(&hashes),
            state_root: Hash::digest(&height.to_be_bytes()),
            tokens_burned: Amount::ZERO,
            tx_count: hashes.len() as u64,
        };
        let mut events = BlockEvents { end, ..BlockEvents::default() };
        for (position, tx) in (0..).zip(&transactions) {
            let place = TxLocation { height, position };
            state.places.insert(tx.hash(), place);
            apply(&mut state, tx, place, header.timestamp);
            let event = event(&state, tx).expect("a kind that the world knows");
            events.transactions.push(TxEvent { position, event });
        }
        let hash = header.hash();
        let block = Block { header, transactions };
        let events = (height >= state.events_from).then_some(events);
        state.blocks.push(Arc::new(CommittedBlock { block, hash, events }));
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

    /// Takes a transaction in.
    pub fn accept(&self, text: &str) -> Hash {
        self.take_one(text).unwrap()
    }

    pub fn drop_tx(&self, hash: &Hash, reason: Rejection) {
        let mut state = self.state();
        let at = state.pending.iter().position(|tx| tx.hash() == *hash).unwrap();
        let tx = state.pending.remove(at);
        let dropped = Arc::new(DroppedTx { tx, reason, at: NOW });
        state.dropped.insert(*hash, Arc::clone(&dropped));
        drop(state);
        self.dropped.send(Arc::clone(&dropped)).ok();
        self.pool.send(PoolEvent::Dropped(dropped)).ok();
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

    fn fault(&self) -> Result<(), Fault> {
        let broken = std::io::Error::other("the disk is on fire");
        if self.state().has_fault { Err(Fault::new("reading", broken)) } else { Ok(()) }
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
            self.pool.send(PoolEvent::Accepted(tx)).ok();
        }
        Ok(hash)
    }
}

fn apply(state: &mut State, tx: &CheckedTx, place: TxLocation, timestamp: u64) {
    match tx.body() {
        Body::AgentRequest(body) => {
            let run = Run {
                agent_run_id: body.agent_run_id,
                conversation_id: body.conversation_id,
                submitter: tx.from(),
                max_fee: body.max_fee,
                max_steps: body.max_steps,
                status: RunStatus::Pending,
                miner: None,
                step_count: 0,
                last_step_index: None,
                tokens_out: 0,
                steps_digest: Hash::ZERO,
                settlement: None,
                submitted_at: timestamp,
                claimed_at: None,
                finished_at: None,
                deadline_at: Some(timestamp + 900_000),
                reopens: 0,
                excluded_miners: Vec::new(),
                request: place,
                claim: None,
                finish: None,
            };
            state.runs.insert(body.agent_run_id, run);
        }
        Body::AgentClaim(body) => {
            let run = state.runs.get_mut(&body.agent_run_id).unwrap();
            run.status = RunStatus::Claimed;
            run.miner = Some(tx.from());
            run.claim = Some(place);
            run.claimed_at = Some(timestamp);
        }
        Body::AgentStep(body) => {
            let run = state.runs.get_mut(&body.agent_run_id).unwrap();
            run.status = RunStatus::Running;
            run.step_count += 1;
            run.tokens_out += body.output_tokens;
            let step = Step {
                step_index: body.step_index,
                output_tokens: body.output_tokens,
                tx: place,
                timestamp,
            };
            state.steps.entry(body.agent_run_id).or_default().push(step);
        }
        Body::AgentFinish(body) => {
            let run = state.runs.get_mut(&body.agent_run_id).unwrap();
            run.status = RunStatus::parse(&body.status).unwrap();
            run.settlement = Some(Settlement {
                miner_reward: body.miner_reward,
                user_refund: body.user_refund,
                network_fee: body.network_fee,
            });
            run.finish = Some(place);
            run.finished_at = Some(timestamp);
            run.deadline_at = None;
        }
        Body::MinerRegister(body) => {
            let miner = Miner {
                miner_id: Hash::digest(tx.hash().to_string().as_bytes()),
                address: tx.from(),
                name: body.name.clone(),
                capabilities: body.capabilities.clone(),
                model_info: body.model_info.clone(),
                registered_at: timestamp,
            };
            state.miners.insert(tx.from(), miner);
        }
        _ => {}
    }
}

/// What a transaction did, as the ledger would say it.
fn event(state: &State, tx: &CheckedTx) -> Option<Event> {
    let from = tx.from();
    Some(match tx.body() {
        Body::ChatTurn(body) => Event::TurnAdded { conversation_id: body.conversation_id },
        Body::AgentRequest(body) => {
            let (agent_run_id, escrow) = (body.agent_run_id, body.max_fee);
            Event::RunRequested { agent_run_id, submitter: from, escrow }
        }
        Body::AgentClaim(body) => {
            Event::RunClaimed { agent_run_id: body.agent_run_id, miner: from }
        }
        Body::AgentStep(body) => Event::RunStepped {
            agent_run_id: body.agent_run_id,
            miner: from,
            step_index: body.step_index,
            output_tokens: body.output_tokens,
        },
        Body::AgentFinish(body) => {
            let run = &state.runs[&body.agent_run_id];
            Event::RunFinished {
                agent_run_id: run.agent_run_id,
                submitter: run.submitter,
                miner: from,
                status: run.status,
                settlement: run.settlement?,
            }
        }
        Body::Transfer(body) => {
            Event::Transferred { to: body.to, amount: body.amount, fee: body.fee }
        }
        Body::MinerRegister(_) => Event::MinerRegistered { miner_id: state.miners[&from].miner_id },
        _ => return None,
    })
}

fn slice<T, P>(mut items: Vec<T>, limit: usize, position: impl Fn(&T) -> P) -> Slice<T, P> {
    let next = (items.len() > limit).then(|| position(&items[limit - 1]));
    items.truncate(limit);
    Slice { items, next }
}

impl Chain for World {
    fn tip(&self) -> Tip {
        let earliest = self.state().earliest.max(1);
        let events_from = self.state().events_from.max(earliest);
        match self.state().blocks.last() {
            Some(last) => Tip {
                height: last.block.header.index,
                hash: last.hash,
                timestamp: last.block.header.timestamp,
                earliest,
                events_from,
            },
            None => Tip {
                height: 0,
                hash: Hash::digest(b"genesis"),
                timestamp: NOW,
                earliest,
                events_from,
            },
        }
    }

    fn block(&self, height: u64) -> Result<Option<Arc<CommittedBlock>>, Fault> {
        self.fault()?;
        self.block_reads.fetch_add(1, Ordering::SeqCst);
        let earliest = self.state().earliest;
        if height < earliest {
            return Err(Fault::history(earliest));
        }
        Ok(self.state().blocks.get(height as usize - 1).cloned())
    }

    fn height_of(&self, hash: &Hash) -> Result<Option<u64>, Fault> {
        let state = self.state();
        let found = state.blocks.iter().find(|committed| committed.hash == *hash);
        Ok(found.map(|committed| committed.block.header.index))
    }

    fn shown(&self, height: u64) -> Result<Option<ShownBlock>, Fault> {
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
        Ok(Some(ShownBlock { block, certificate: Some(certificate) }))
    }

    fn validators(&self, height: u64) -> Result<Option<Vec<Validator>>, Fault> {
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
                power: 10,
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
    fn forks(&self) -> Result<ForkVotes, Fault> {
        let voter = ForkVoter { address: key(99).address(), power: 10, height: 70, block_index: 5 };
        let fork = "v7".to_owned();
        let state = ForkState { fork, is_known: false, fixed: Some((70, 6)), votes: vec![voter] };
        Ok(ForkVotes { forks: vec![state], total_power: 10, missing: Some((1, 4)) })
    }
}

impl Transactions for World {
    fn by_hash(&self, hash: &Hash) -> Result<Option<IncludedTx>, Fault> {
        let place = self.state().places.get(hash).copied();
        Ok(place.map(|place| self.included(place)))
    }

    fn at(&self, locations: &[TxLocation]) -> Result<Vec<IncludedTx>, Fault> {
        Ok(locations.iter().map(|place| self.included(*place)).collect())
    }

    fn headers(&self, from: u64, limit: usize) -> Result<Vec<(Hash, Header)>, Fault> {
        let state = self.state();
        let below = state.blocks.iter().rev().filter(|block| block.block.header.index <= from);
        Ok(below.take(limit).map(|block| (block.hash, block.block.header.clone())).collect())
    }

    fn turns(
        &self,
        conversation_id: &Hash,
        after: Option<TxLocation>,
        limit: usize,
    ) -> Result<Slice<TxLocation, TxLocation>, Fault> {
        let is_turn = |tx: &CheckedTx| matches!(tx.body(), Body::ChatTurn(ChatTurn { conversation_id: id, .. }) if id == conversation_id);
        let mut places = self.all_places(is_turn);
        places.retain(|place| after.is_none_or(|after| *place > after));
        Ok(slice(places, limit, |place| *place))
    }
}

impl Accounts for World {
    fn account(&self, address: &Address) -> Result<Account, Fault> {
        self.fault()?;
        let balance = self.state().balances.get(address).copied().unwrap_or_default();
        let nonce = self.all_places(|tx| tx.from() == *address).len() as u64;
        Ok(Account { balance, nonce })
    }

    fn transactions(
        &self,
        address: &Address,
        before: Option<TxLocation>,
        limit: usize,
    ) -> Result<Slice<TxLocation, TxLocation>, Fault> {
        let concerns = |tx: &CheckedTx| {
            let to = if let Body::Transfer(body) = tx.body() { Some(body.to) } else { None };
            tx.from() == *address || to == Some(*address)
        };
        let mut places = self.all_places(concerns);
        places.reverse();
        places.retain(|place| before.is_none_or(|before| *place < before));
        Ok(slice(places, limit, |place| *place))
    }

    fn supply(&self) -> Result<Supply, Fault> {
        Ok(Supply {
            genesis: Amount::new(1_000),
            minted: Amount::new(10),
            burned: Amount::new(100),
            escrowed: Amount::new(200),
        })
    }

    fn census(&self, richest_max: usize) -> Result<Census, Fault> {
        self.fault()?;
        let state = self.state();
        let mut richest: Vec<_> = state.balances.iter().map(|(who, held)| (*who, *held)).collect();
        richest.sort_by_key(|(who, held)| (std::cmp::Reverse(*held), *who));
        let sum = |accounts: &dyn Fn(&Address) -> bool| {
            let of = || state.balances.iter().filter(|(who, _)| accounts(who));
            let amount = of().fold(0, |sum, (_, held)| sum + held.get());
            Group { accounts: of().count() as u64, amount: Amount::new(amount) }
        };
        let held_by_miners = sum(&|who| state.miners.contains_key(who));
        richest.truncate(richest_max);
        Ok(Census {
            height: state.blocks.len() as u64,
            accounts: state.balances.len() as u64,
            miners: state.miners.len() as u64,
            held: sum(&|_| true).amount,
            escrowed: Amount::new(200),
            held_by_validators: Group::default(),
            held_by_miners,
            richest,
        })
    }

    fn escrows(&self) -> Result<Escrows, Fault> {
        self.escrow_scans.fetch_add(1, Ordering::SeqCst);
        let state = self.state();
        let mut by_submitter: BTreeMap<Address, Amount> = BTreeMap::new();
        for run in state.runs.values().filter(|run| !run.status.is_terminal()) {
            let held = by_submitter.entry(run.submitter).or_default();
            *held = held.checked_add(run.max_fee).unwrap();
        }
        Ok(Escrows { height: state.blocks.len() as u64, by_submitter })
    }
}

impl Runs for World {
    fn run(&self, agent_run_id: &Hash) -> Result<Option<Run>, Fault> {
        Ok(self.state().runs.get(agent_run_id).cloned())
    }

    fn steps(
        &self,
        agent_run_id: &Hash,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Slice<Step, u64>, Fault> {
        let mut steps = self.state().steps.get(agent_run_id).cloned().unwrap_or_default();
        steps.retain(|step| after.is_none_or(|after| step.step_index > after));
        Ok(slice(steps, limit, |step| step.step_index))
    }

    fn list(
        &self,
        filter: &RunFilter,
        before: Option<TxLocation>,
        limit: usize,
    ) -> Result<Slice<Run, TxLocation>, Fault> {
        let mut runs: Vec<Run> = self.state().runs.values().cloned().collect();
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
    fn entry(miner: Miner) -> MinerEntry {
        let figures = MinerFigures { claimed: 2, tokens: 7, ..MinerFigures::default() };
        MinerEntry { miner, figures }
    }
}

impl Directory for World {
    fn miners(
        &self,
        after: Option<Address>,
        limit: usize,
    ) -> Result<Slice<MinerEntry, Address>, Fault> {
        let miners: Vec<MinerEntry> = self
            .state()
            .miners
            .values()
            .filter(|miner| after.is_none_or(|after| miner.address > after))
            .cloned()
            .map(Self::entry)
            .collect();
        Ok(slice(miners, limit, |entry| entry.miner.address))
    }

    fn miner(&self, address: &Address) -> Result<Option<MinerEntry>, Fault> {
        Ok(self.state().miners.get(address).cloned().map(Self::entry))
    }

    fn miner_by_id(&self, miner_id: &Hash) -> Result<Option<MinerEntry>, Fault> {
        let state = self.state();
        let found = state.miners.values().find(|miner| miner.miner_id == *miner_id);
        Ok(found.cloned().map(Self::entry))
    }

    fn blob(&self, blob_id: &str) -> Result<Option<Blob>, Fault> {
        Ok(self.state().blobs.get(blob_id).cloned())
    }

    fn blob_bytes(&self, blob_id: &str) -> Result<Option<Vec<u8>>, Fault> {
        Ok(self.state().blob_bytes.get(blob_id).cloned())
    }
}

impl Proofs for World {
    fn prove(&self, target: &ProofTarget) -> Result<Option<Proof>, Fault> {
        let Some(last) = self.state().blocks.last().cloned() else { return Ok(None) };
        let key = match target {
            ProofTarget::Account(address) => Hash::digest(address.as_bytes()),
            ProofTarget::AgentRun(id) => *id,
            ProofTarget::Validators => Hash::digest(b"v"),
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
    fn account(&self, address: &Address) -> Result<PendingAccount, Fault> {
        let Account { balance, nonce } = Accounts::account(self, address)?;
        let pending = self.state().pending.iter().filter(|tx| tx.from() == *address).count();
        Ok(PendingAccount { nonce: nonce + pending as u64, balance })
    }

    fn settlement(&self, agent_run_id: &Hash) -> Result<Option<SettlementNow>, Fault> {
        Ok(self.state().runs.get(agent_run_id).map(|run| {
            let fee = run.step_count * 100;
            let reward = run.tokens_out.min(run.max_fee.get() - fee);
            SettlementNow {
                total_tokens_out: run.tokens_out,
                step_count: run.step_count,
                fees: Settlement {
                    miner_reward: Amount::new(reward),
                    user_refund: Amount::new(run.max_fee.get() - fee - reward),
                    network_fee: Amount::new(fee),
                },
            }
        }))
    }

    fn simulate(&self, text: &RawValue) -> Result<Effects, SubmitError> {
        let limits = SizeLimits::from(&self.params);
        let tx = Transaction::parse_unsigned(text.get().as_bytes(), &limits)?;
        let tx = check::verify_unsigned(tx, &self.rules())?;
        let balances = vec![(tx.from(), Amount::new(10), Amount::new(3))];
        Ok(Effects { balances, run: None, burned: Amount::ZERO })
    }
}

impl Pool for World {
    fn find(&self, hash: &Hash) -> Option<PoolTx> {
        self.lookups.fetch_add(1, Ordering::SeqCst);
        let state = self.state();
        let waiting = state.pending.iter().find(|tx| tx.hash() == *hash);
        let dropped = || state.dropped.get(hash).cloned().map(PoolTx::Dropped);
        waiting.cloned().map(PoolTx::Waiting).or_else(dropped)
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
        SenderContent { sender: *sender, pending: of(&state.pending), queued: of(&state.queued) }
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

    fn pool(&self) -> broadcast::Receiver<PoolEvent> {
        self.pool.subscribe()
    }

    fn dropped(&self) -> broadcast::Receiver<Arc<DroppedTx>> {
        self.dropped.subscribe()
    }
}

impl Readiness for World {
    fn checks(&self) -> Vec<Check> {
        self.state().checks.clone()
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
