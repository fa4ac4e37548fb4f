//! A chain in memory, for tests: the rules that a miner meets, one block per waiting call.
//!
//! With a file it survives the process: included transactions are appended and executed again.

mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::Notify;
use types::check::{StaticRules, verify_one};
use types::tx::{AgentFinish, AgentStep};
use types::{Address, Forks, Hash, Keypair, Params, RunStatus, SizeLimits, Transaction};

use super::{
    BlobView, ChainError, Fate, Funds, Head, Ledger, Notice, RunView, Runs, StepView, Watch,
};

pub(crate) const CHAIN: &str = "fake";
const LIMITS: SizeLimits = SizeLimits { tx_bytes: 131_072, chunk_tx_bytes: 786_432 };

/// A transaction that was included: who sent it, its kind, its nonce.
pub(crate) type Included = (Address, &'static str, u64);

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) now_ms: u64,
    pub(crate) height: u64,
    pub(crate) runs: BTreeMap<Hash, RunView>,
    pub(crate) steps: BTreeMap<Hash, Vec<StepView>>,
    pub(crate) answers: BTreeMap<Hash, AgentFinish>,
    pub(crate) step_bodies: Vec<AgentStep>,
    pub(crate) turns: Vec<(String, String)>,
    pub(crate) nonces: BTreeMap<Address, u64>,
    pub(crate) balances: BTreeMap<Address, u64>,
    pub(crate) blobs: BTreeMap<String, (BlobView, u64, Vec<u8>)>,
    pub(crate) log: Vec<Included>,
    pub(crate) refusals: Vec<String>,
    included: BTreeSet<Hash>,
    dropped: BTreeMap<Hash, String>,
    pub(crate) pool: Vec<Transaction>,
    /// Codes of what was dropped when a block was made.
    pub(crate) lost: Vec<String>,
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
    /// So many steps are refused in their blocks.
    pub(crate) bad_steps: u32,
    /// The most tokens of a step, where it is another number than usual.
    pub(crate) step_tokens_max: Option<u64>,
    /// The next sendings are refused with these codes.
    pub(crate) refuse: Vec<&'static str>,
}

#[derive(Debug, Default)]
pub(crate) struct FakeChain {
    pub(crate) state: Mutex<State>,
    files: Option<Mutex<(File, File)>>,
    /// Blocks are made only when somebody waits for one.
    is_lazy: bool,
    moved: Notify,
}

type Answer<T> = Result<T, ChainError>;

impl FakeChain {
    pub(crate) fn new() -> Self {
        let chain = Self::default();
        chain.state.lock().now_ms = 1_000_000;
        chain
    }

    /// Executes what the file holds, and appends to it from now on; what is refused goes into a
    /// second file.
    pub(crate) fn with_file(mut self, path: &Path) -> Self {
        if let Ok(text) = std::fs::read_to_string(path) {
            for line in text.lines() {
                let tx = parse(line).unwrap();
                self.state.lock().execute(&tx).unwrap();
            }
        }
        let append = |path: &Path| OpenOptions::new().create(true).append(true).open(path).unwrap();
        self.files = Some(Mutex::new((append(path), append(&path.with_extension("refused")))));
        self
    }

    /// The same, but what is sent waits in the pool, and is forgotten with the process, until
    /// somebody waits for a block.
    pub(crate) fn with_blocks_on_demand(self) -> Self {
        Self { is_lazy: true, ..self }
    }

    pub(crate) fn add_run(&self, prompt: &str, max_fee_micro: u64, steps_max: u64) -> Hash {
        let mut state = self.state.lock();
        let id = Hash::digest(prompt.as_bytes());
        let deadline_ms = Some(state.now_ms + 900_000);
        let run = RunView {
            id,
            conversation_id: Hash::digest(b"conversation"),
            submitter: Keypair::from_seed(&[200; 32]).address(),
            prompt: prompt.to_owned(),
            prompt_blob_id: None,
            tools: vec![],
            model_hint: None,
            max_fee_micro,
            steps_max,
            status: RunStatus::Pending,
            miner: None,
            excluded: vec![],
            steps: 0,
            tokens: 0,
            deadline_ms,
            reward_micro: None,
        };
        state.runs.insert(id, run);
        id
    }

    pub(crate) fn run_of(&self, id: &Hash) -> RunView {
        self.state.lock().runs[id].clone()
    }

    /// Waits until a condition holds; whatever changes the chain wakes it.
    pub(crate) async fn until(&self, holds: impl Fn(&State) -> bool) {
        let wait = async {
            loop {
                let moved = self.moved.notified();
                if holds(&self.state.lock()) {
                    return;
                }
                moved.await;
            }
        };
        let outcome = tokio::time::timeout(Duration::from_secs(30), wait).await;
        assert!(outcome.is_ok(), "the chain did not get there: {:#?}", self.state.lock());
    }

    /// Every call gives way to others, as one over a network does.
    async fn reach(&self) -> Answer<()> {
        tokio::task::yield_now().await;
        let mut state = self.state.lock();
        match state.away.checked_sub(1) {
            None => Ok(()),
            Some(left) => {
                state.away = left;
                Err(ChainError::Away("the fake is away".into()))
            }
        }
    }

    /// Makes a block of what is in the pool, unless none is to be made.
    fn mine(&self) {
        if !self.state.lock().is_halted {
            self.make_block();
        }
    }

    /// Makes a block: rivals' claims, then what is in the pool and has its sender's next nonce. What
    /// is refused is dropped, and what has a later nonce stays.
    pub(crate) fn make_block(&self) {
        let mut state = self.state.lock();
        state.height += 1;
        for (run, rival) in std::mem::take(&mut state.rivals) {
            let tx = state.rival_claim(run, &rival);
            if state.execute(&tx).is_ok() {
                self.keep(&tx);
            }
        }
        let mut pool = std::mem::take(&mut state.pool);
        pool.sort_by_key(Transaction::nonce);
        let mut lost = Vec::new();
        for tx in pool {
            match state.execute(&tx) {
                Ok(()) => self.keep(&tx),
                Err("NONCE_TOO_HIGH") => state.pool.push(tx),
                Err(code) => {
                    lost.push(code.to_owned());
                    state.dropped.insert(tx.hash(), code.to_owned());
                }
            }
        }
        state.lost.extend(lost);
        drop(state);
        self.moved.notify_waiters();
    }

    /// Makes blocks at a pace, until it is dropped.
    pub(crate) async fn make_blocks(&self, every: Duration) {
        loop {
            tokio::time::sleep(every).await;
            self.make_block();
        }
    }

    fn keep(&self, tx: &Transaction) {
        if let Some(files) = &self.files {
            files.lock().0.write_all(format!("{}\n", tx.to_json()).as_bytes()).unwrap();
        }
    }
}

fn parse(text: &str) -> Result<Transaction, ChainError> {
    let refused = |rejection: types::Rejection| ChainError::Refused {
        code: rejection.code().as_str().into(),
        message: rejection.to_string(),
    };
    let tx = Transaction::parse(text.as_bytes(), &LIMITS).map_err(refused)?;
    let params = Params::default();
    let forks = Forks::default();
    let rules = StaticRules { chain_id: CHAIN, params: &params, forks, height: 1 };
    verify_one(tx.clone(), &rules).map_err(refused)?;
    Ok(tx)
}

#[async_trait]
impl Runs for FakeChain {
    async fn run(&self, id: &Hash) -> Answer<Option<RunView>> {
        self.reach().await?;
        Ok(self.state.lock().runs.get(id).cloned())
    }

    async fn pending(&self) -> Answer<Vec<RunView>> {
        self.reach().await?;
        let state = self.state.lock();
        Ok(state.runs.values().filter(|run| run.status == RunStatus::Pending).cloned().collect())
    }

    async fn of_miner(&self, miner: &Address) -> Answer<Vec<RunView>> {
        self.reach().await?;
        let state = self.state.lock();
        Ok(state.runs.values().filter(|run| run.miner == Some(*miner)).cloned().collect())
    }

    async fn steps(&self, id: &Hash) -> Answer<Vec<StepView>> {
        Ok(self.state.lock().steps.get(id).cloned().unwrap_or_default())
    }

    async fn blob_text(&self, id: &str, bytes_max: usize) -> Answer<Option<String>> {
        let state = self.state.lock();
        let blob = state.blobs.get(id).filter(|blob| blob.2.len() <= bytes_max);
        Ok(blob.and_then(|blob| String::from_utf8(blob.2.clone()).ok()))
    }
}

#[async_trait]
impl Ledger for FakeChain {
    async fn head(&self) -> Answer<Head> {
        let state = self.state.lock();
        let (height, syncing, block_ms) = (state.height, state.is_syncing, state.now_ms);
        Ok(Head {
            chain_id: CHAIN.into(),
            genesis: Hash::ZERO,
            height,
            syncing,
            blob_chunk_fee_micro: 100,
            step_tokens_max: state.step_tokens_limit(),
            block_ms,
        })
    }

    async fn funds(&self, address: &Address) -> Answer<Funds> {
        self.reach().await?;
        let state = self.state.lock();
        let balance_micro = state.balances.get(address).copied().unwrap_or_default();
        let next = state.next_nonce(address);
        let nonce = next.saturating_sub(state.nonces_behind);
        Ok(Funds { balance_micro, nonce })
    }

    async fn send(&self, text: &str) -> Answer<()> {
        crate::testing::crash_point();
        self.reach().await?;
        let outcome = self.accept(text);
        if let (Err(ChainError::Refused { code, .. }), Some(files)) = (&outcome, &self.files) {
            files.lock().1.write_all(format!("{code}\n").as_bytes()).unwrap();
        }
        if self.files.is_some() && !self.is_lazy {
            // The node lives on when the miner dies.
            self.mine();
        }
        crate::testing::crash_point();
        outcome
    }

    async fn wait(&self, tx: &Hash, _: Duration) -> Answer<Fate> {
        self.reach().await?;
        let moved = self.moved.notified();
        self.mine();
        let fate = self.state.lock().fate(tx);
        let is_halted = self.state.lock().is_halted;
        if is_halted && fate == Fate::Pending {
            moved.await;
            return Ok(self.state.lock().fate(tx));
        }
        Ok(fate)
    }

    async fn blob(&self, id: &str) -> Answer<Option<BlobView>> {
        Ok(self.state.lock().blobs.get(id).map(|blob| blob.0.clone()))
    }
}

impl FakeChain {
    fn accept(&self, text: &str) -> Answer<()> {
        let tx = parse(text)?;
        let mut state = self.state.lock();
        let is_pooled = state.pool.iter().any(|pooled| pooled.hash() == tx.hash());
        if state.included.contains(&tx.hash()) || is_pooled {
            return Ok(());
        }
        let refusal = state.refuse.pop().or_else(|| state.nonce_fault(&tx));
        if let Some(code) = refusal {
            state.refusals.push(code.to_owned());
            return Err(ChainError::Refused { code: code.into(), message: "refused".into() });
        }
        match state.forgets.checked_sub(1) {
            Some(left) => state.forgets = left,
            None => state.pool.push(tx),
        }
        drop(state);
        self.moved.notify_waiters();
        Ok(())
    }
}

/// Notices that a test sends.
#[derive(Debug)]
pub(crate) struct FakeWatch(pub(crate) tokio::sync::mpsc::Receiver<Notice>);

#[async_trait]
impl Watch for FakeWatch {
    async fn begin(&mut self, _: u64) -> Answer<()> {
        Ok(())
    }

    async fn next(&mut self) -> Answer<Notice> {
        match self.0.recv().await {
            Some(notice) => Ok(notice),
            None => std::future::pending().await,
        }
    }
}
