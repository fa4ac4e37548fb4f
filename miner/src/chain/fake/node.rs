//! The fake node: the chain below it, its pool, and what it does wrong.

use std::collections::BTreeMap;
use std::sync::Arc;

use state::table::{Key, Table};
use state::tables::{
    Accounts, BlobChunks, Blobs, Bonds, FiguresOfSubmitters, Runs, Steps, Unbondings,
};
use state::view::{self, Range, Row};
use state::{BlockBuilder, ChainRules, Draft, Forks, Memory, MemoryChain, PushError, fees};
use types::build::{Envelope, build_tx};
use types::check::{StaticRules, verify_one};
use types::tx::{AgentFinish, AgentStep};
use types::{
    Account, Address, Amount, BlockFees, Body, CheckedTx, Code, Hash, Keypair, Params, Rejection,
    Run, SetMember, SizeLimits, Step, Transaction, TxLocation,
};

use super::CHAIN;
use crate::chain::{BlobView, Fate, Protection, RunView, Stake, StepView};

/// How far a nonce may be beyond the next one.
const WINDOW: u64 = 64;

/// The chain, the pool of the node, and what the node does wrong.
#[derive(Debug)]
pub(crate) struct State {
    blocks: MemoryChain,
    /// What is included, by its place.
    txs: BTreeMap<TxLocation, CheckedTx>,
    /// What each of them burned for its place.
    inclusion_micro: BTreeMap<Hash, u64>,
    /// The time of the next block, if the last one was earlier.
    pub(crate) now_ms: u64,
    pub(crate) rejections: Vec<String>,
    dropped: BTreeMap<Hash, Code>,
    pub(crate) pool: Vec<CheckedTx>,
    /// Codes of what was dropped when a block was made.
    pub(crate) lost: Vec<&'static str>,
    /// So many calls fail because the node is away.
    pub(crate) away: u32,
    /// So many accepted transactions are forgotten.
    pub(crate) forgets: u32,
    /// Claims that are included before those of the pool.
    pub(crate) rivals: Vec<(Hash, Keypair)>,
    /// The node says that it is catching up.
    pub(crate) is_syncing: bool,
    /// The node names a nonce so far below the next one, as if it had not seen the last blocks.
    pub(crate) nonces_behind: u64,
    /// While set, no block is made.
    pub(crate) is_halted: bool,
    /// The base fee that the node names from v7 on, whatever it is.
    pub(crate) told_base_fee: u64,
    /// So many steps are refused in their blocks.
    pub(crate) bad_steps: u32,
    /// So many settlements are refused in their blocks.
    pub(crate) bad_finishes: u32,
    /// The next sendings are refused with these codes.
    pub(crate) refuse: Vec<&'static str>,
    /// How often somebody asked for the fees.
    pub(crate) fees_read: u64,
    /// How often somebody asked for the newest block.
    pub(crate) heads_read: u64,
    /// How often somebody read the text of a blob.
    pub(crate) blobs_read: u64,
    /// How long that takes.
    pub(crate) blob_ms: u64,
    /// How often somebody asked for a miner's offers.
    pub(crate) offers_read: u64,
}

/// Who asks for the runs of [`super::FakeChain::add_run`].
pub(crate) fn submitter() -> Keypair {
    Keypair::from_seed(&[200; 32])
}

/// Who makes all blocks.
fn proposer() -> Keypair {
    Keypair::from_seed(&[1; 32])
}

/// What the miner of the tests has.
const MINER_MICRO: u64 = 100_000;

fn first(params: Params, forks: Forks) -> MemoryChain {
    // With one validator elections are held in the next block.
    let sole = SetMember { public_key: proposer().public_key(), power: 1 };
    let validators = if forks.v8.is_some() { vec![sole] } else { Vec::new() };
    let chain_id = CHAIN.to_owned();
    let rules =
        Arc::new(ChainRules { chain_id, genesis_hash: Hash::ZERO, params, forks, validators });
    let miner = Keypair::from_seed(&[9; 32]);
    let rich = Amount::new(1 << 60);
    let accounts =
        [(submitter().address(), rich), (miner.address(), Amount::new(MINER_MICRO))].into();
    MemoryChain::new(rules, Hash::ZERO, 1, &accounts).unwrap()
}

/// Every row of a table from one key to another.
pub(super) fn rows<T: Table>(memory: &Memory, from: &[u8], to: Option<&[u8]>) -> Vec<Row<T>> {
    view::scan::<T>(memory, Range { from, to, limit: usize::MAX }).unwrap()
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            blocks: first(Params::default(), Forks::default()),
            txs: BTreeMap::new(),
            inclusion_micro: BTreeMap::new(),
            now_ms: 1_000_000,
            rejections: Vec::new(),
            dropped: BTreeMap::new(),
            pool: Vec::new(),
            lost: Vec::new(),
            away: 0,
            forgets: 0,
            rivals: Vec::new(),
            is_syncing: false,
            nonces_behind: 0,
            is_halted: false,
            told_base_fee: 10,
            bad_steps: 0,
            bad_finishes: 0,
            refuse: Vec::new(),
            fees_read: 0,
            heads_read: 0,
            blobs_read: 0,
            blob_ms: 0,
            offers_read: 0,
        }
    }

    /// Another chain from its beginning.
    pub(super) fn change_params(&mut self, change: impl FnOnce(&mut Params)) {
        let mut params = self.params().clone();
        change(&mut params);
        self.blocks = first(params, self.blocks.rules().forks);
    }

    /// A chain with the rules of v7 from its beginning.
    pub(crate) fn begin_with_v7(&mut self) {
        let forks = Forks { v7: Some(0), ..Forks::default() };
        self.blocks = first(self.params().clone(), forks);
    }

    /// A chain with the rules of v8 from its beginning.
    pub(super) fn begin_with_v8(&mut self) {
        let forks = Forks { v6: 0, validator_vote: Some(0), v7: Some(0), v8: Some(0) };
        self.blocks = first(self.params().clone(), forks);
    }

    /// Whether the chain has the rules of v7.
    pub(super) fn is_v7(&self) -> bool {
        self.blocks.rules().forks.v7.is_some()
    }

    /// Whether the chain has the rules of v8.
    pub(super) fn is_v8(&self) -> bool {
        self.blocks.rules().forks.v8.is_some()
    }

    /// An included transaction.
    pub(super) fn included(&self, place: &TxLocation) -> Option<&CheckedTx> {
        self.txs.get(place)
    }

    /// What an account has at stake; none before v7.
    pub(crate) fn stake(&self, address: &Address) -> Option<Stake> {
        self.blocks.rules().forks.v7?;
        let bond = view::get::<Bonds>(self.memory(), address).unwrap().unwrap_or_default();
        let figures = view::get::<FiguresOfSubmitters>(self.memory(), address).unwrap();
        let figures = figures.unwrap_or_default();
        let (from, to) = ((*address, 0_u64).to_bytes(), (*address, u64::MAX).to_bytes());
        let unbonding = rows::<Unbondings>(self.memory(), &from, Some(&to));
        Some(Stake {
            bonded_micro: bond.bonded.get(),
            locked_micro: bond.locked.get(),
            unbonding_micro: unbonding.into_iter().map(|(_, amount)| amount.get()).sum(),
            rewards_held: figures.held,
            rewards_refused: figures.refused,
        })
    }

    pub(super) fn params(&self) -> &Params {
        &self.blocks.rules().params
    }

    pub(super) fn memory(&self) -> &Memory {
        self.blocks.state()
    }

    pub(crate) fn height(&self) -> u64 {
        self.blocks.tip().height
    }

    pub(super) fn block_ms(&self) -> u64 {
        self.blocks.tip().timestamp
    }

    pub(super) fn begin(&self) -> BlockBuilder {
        self.blocks.begin(&proposer(), self.now_ms).unwrap()
    }

    pub(super) fn append(&mut self, block: BlockBuilder) {
        let executed = block.finish().unwrap();
        self.blocks.append(&executed).unwrap();
        let height = self.height();
        if let Some(BlockFees { base_fee, .. }) = executed.events.fees() {
            let paid =
                |tx: &CheckedTx| fees::inclusion_fee(fees::charged_bytes(tx, || false), base_fee);
            let paid = executed.block.transactions.iter().map(|tx| (tx.hash(), paid(tx).get()));
            self.inclusion_micro.extend(paid);
        }
        let places = (0..).map(|position| TxLocation { height, position });
        self.txs.extend(places.zip(executed.block.transactions));
    }

    /// Puts a transaction of the pool into a block, if the block takes it.
    pub(super) fn try_in(&mut self, block: &mut BlockBuilder, tx: CheckedTx) -> bool {
        let code = match self.made_up_code(tx.body()) {
            Some(code) => code,
            None => match block.push(&tx) {
                Ok(()) => return true,
                Err(PushError::Rejected(rejection)) => rejection.code(),
                Err(PushError::Full { .. }) => Code::NonceTooHigh,
                Err(PushError::Storage(fault)) => panic!("{fault}"),
            },
        };
        if code == Code::NonceTooHigh {
            self.pool.push(tx);
        } else {
            self.lost.push(code.as_str());
            self.dropped.insert(tx.hash(), code);
        }
        false
    }

    /// The code with which a transaction is refused that the rules would take.
    fn made_up_code(&mut self, body: &Body) -> Option<Code> {
        let (left, code) = match body.type_name() {
            "AGENT_STEP" => (&mut self.bad_steps, Code::StepOutOfOrder),
            "AGENT_FINISH" => (&mut self.bad_finishes, Code::SettlementMismatch),
            _ => return None,
        };
        *left = left.checked_sub(1)?;
        Some(code)
    }

    pub(super) fn parse(&self, text: &str) -> Result<CheckedTx, Rejection> {
        let params = self.params();
        let tx = Transaction::parse(text.as_bytes(), &SizeLimits::from(params))?;
        let (forks, height) = (self.blocks.rules().forks, self.height() + 1);
        verify_one(tx, &StaticRules { chain_id: CHAIN, params, forks, height })
    }

    /// A transaction with the key's next nonce.
    pub(super) fn signed(&self, key: &Keypair, body: &Body) -> CheckedTx {
        let (nonce, chain_id) = (self.account(&key.address()).nonce, Some(CHAIN.to_owned()));
        let envelope = Envelope::new(nonce, self.now_ms, chain_id);
        self.parse(&build_tx(key, body, &envelope)).unwrap()
    }

    pub(crate) fn account(&self, address: &Address) -> Account {
        view::get::<Accounts>(self.memory(), address).unwrap().unwrap_or_default()
    }

    pub(crate) fn balance(&self, address: &Address) -> u64 {
        self.account(address).balance.get()
    }

    /// Gives an account this balance, without a transaction.
    pub(crate) fn set_balance(&self, address: &Address, micro: u64) {
        let state = self.blocks.state();
        let mut draft = Draft::new(Arc::<Memory>::clone(state));
        let account = Account { balance: Amount::new(micro), ..self.account(address) };
        draft.put::<Accounts>(address, &account);
        state.apply(&draft.into_changes());
    }

    /// The runs, newest request first.
    pub(crate) fn runs(&self) -> Vec<RunView> {
        let mut runs: Vec<Run> =
            rows::<Runs>(self.memory(), &[], None).into_iter().map(|(_, run)| run).collect();
        runs.sort_by_key(|run| std::cmp::Reverse(run.request));
        runs.into_iter().map(|run| self.view(run)).collect()
    }

    pub(crate) fn run(&self, id: &Hash) -> Option<RunView> {
        let run = view::get::<Runs>(self.memory(), id).unwrap();
        run.map(|run| self.view(run))
    }

    fn view(&self, run: Run) -> RunView {
        let Body::AgentRequest(request) = self.txs[&run.request].body() else {
            unreachable!("a run begins with its request")
        };
        let is_held = run.is_held();
        RunView {
            id: run.agent_run_id,
            conversation_id: run.conversation_id,
            submitter: run.submitter,
            prompt: request.prompt.clone(),
            prompt_blob_id: request.prompt_blob_id.clone(),
            tools: request.tools_whitelist.clone(),
            model_hint: request.model_hint.clone(),
            max_fee_micro: run.max_fee.get(),
            steps_max: run.max_steps,
            status: run.status,
            miner: run.miner,
            excluded: run.excluded_miners,
            steps: run.step_count,
            tokens: run.tokens_out,
            deadline_ms: run.deadline_at.filter(|_| !is_held),
            held_until_ms: run.deadline_at.filter(|_| is_held),
            reward_micro: run.settlement.map(|settlement| settlement.miner_reward.get()),
            protection: run.protection.map(|it| Protection {
                miners: it.miners,
                claim_bond_micro: it.claim_bond.get(),
                step_tokens_max: it.max_tokens_per_step,
                refuse_ms: it.refuse_ms,
            }),
            is_refused: run.is_refused,
            agent: run.agent.map(|it| format!("agent:{}@{}", it.agent_id, it.version)),
        }
    }

    pub(super) fn steps(&self, run: &Hash) -> Vec<StepView> {
        let (from, to) = ((*run, 0_u64).to_bytes(), (*run, u64::MAX).to_bytes());
        let view = |step: Step| {
            let Body::AgentStep(body) = self.txs[&step.tx].body() else {
                unreachable!("a step is of its transaction")
            };
            let calls = body.tool_calls.iter().flatten();
            StepView {
                index: step.step_index,
                output_tokens: step.output_tokens,
                output_hash: body.output_hash,
                calls: calls.map(|call| (call.args_hash, call.result_hash)).collect(),
            }
        };
        let steps = rows::<Steps>(self.memory(), &from, Some(&to));
        steps.into_iter().map(|(_, step)| view(step)).collect()
    }

    /// A blob's record and its bytes.
    pub(crate) fn blob(&self, id: &str) -> Option<(BlobView, Vec<u8>)> {
        let id = id.to_owned();
        let blob = view::get::<Blobs>(self.memory(), &id).unwrap()?;
        let (owner, received, is_final) = (blob.owner, blob.received, blob.is_final);
        let record = BlobView { owner, received, is_final, content_hash: blob.content_hash };
        let chunks = (0..).zip(0..blob.total_chunks).map_while(|(index, _)| {
            view::get::<BlobChunks>(self.memory(), &(index, id.clone())).unwrap()
        });
        Some((record, chunks.flatten().collect()))
    }

    /// Every included transaction: who sent it, its kind, its nonce.
    pub(crate) fn log(&self) -> impl Iterator<Item = (Address, &'static str, u64)> + '_ {
        self.txs.values().map(|tx| (tx.from(), tx.body().type_name(), tx.nonce()))
    }

    /// What the transactions about blobs burned for their places.
    pub(crate) fn blob_places_micro(&self) -> u64 {
        let of_blobs = self.txs.values().filter(|tx| tx.body().type_name().contains("BLOB"));
        of_blobs.filter_map(|tx| self.inclusion_micro.get(&tx.hash())).sum()
    }

    /// When the transactions of a sender say that they were signed.
    pub(crate) fn signed_ms(&self, from: &Address) -> Vec<u64> {
        self.txs.values().filter(|tx| tx.from() == *from).map(|tx| tx.timestamp()).collect()
    }

    fn bodies(&self) -> impl Iterator<Item = &Body> {
        self.txs.values().map(|tx| tx.body())
    }

    /// How a run was settled.
    pub(crate) fn answer(&self, run: &Hash) -> AgentFinish {
        let mut finishes = self.bodies().filter_map(|body| {
            let Body::AgentFinish(finish) = body else { return None };
            (finish.agent_run_id == *run).then_some(finish)
        });
        finishes.next().unwrap().clone()
    }

    pub(crate) fn step_bodies(&self) -> Vec<AgentStep> {
        let steps = self.bodies().filter_map(|body| {
            let Body::AgentStep(step) = body else { return None };
            Some(step.clone())
        });
        steps.collect()
    }

    /// Roles and texts of the turns.
    pub(crate) fn turns(&self) -> Vec<(String, String)> {
        let turns = self.bodies().filter_map(|body| {
            let Body::ChatTurn(turn) = body else { return None };
            Some((turn.role.clone(), turn.content.clone()))
        });
        turns.collect()
    }

    fn is_included(&self, hash: &Hash) -> bool {
        self.txs.values().any(|tx| tx.hash() == *hash)
    }

    pub(super) fn is_known(&self, hash: &Hash) -> bool {
        matches!(self.fate(hash), Fate::Included { .. } | Fate::Pending)
    }

    pub(super) fn fate(&self, hash: &Hash) -> Fate {
        if self.is_included(hash) {
            let inclusion_micro = self.inclusion_micro.get(hash).copied().unwrap_or_default();
            return Fate::Included { inclusion_micro };
        }
        if let Some(code) = self.dropped.get(hash) {
            return Fate::Dropped(code.as_str().to_owned());
        }
        let is_pooled = self.pool.iter().any(|pooled| pooled.hash() == *hash);
        if is_pooled { Fate::Pending } else { Fate::Unknown }
    }

    /// What is wrong with a nonce: one that is used up or pending, or far beyond the next one.
    pub(super) fn nonce_fault(&self, tx: &Transaction) -> Option<&'static str> {
        let (nonce, from) = (tx.nonce(), tx.from());
        let is_pooled = |other: &CheckedTx| (other.from(), other.nonce()) == (from, nonce);
        if nonce < self.account(&from).nonce {
            Some("NONCE_STALE")
        } else if self.pool.iter().any(is_pooled) {
            Some("NONCE_TAKEN")
        } else {
            (nonce >= self.next_nonce(&from) + WINDOW).then_some("NONCE_TOO_HIGH")
        }
    }

    /// The nonce after those that are in blocks or in the pool without a gap.
    pub(super) fn next_nonce(&self, address: &Address) -> u64 {
        let mut next = self.account(address).nonce;
        while self.pool.iter().any(|tx| (tx.from(), tx.nonce()) == (*address, next)) {
            next += 1;
        }
        next
    }
}

/// The claim of a run.
pub(crate) fn claim(run: Hash, miner: &Keypair) -> Body {
    fixtures::claim(miner.address(), run).into()
}
