//! A node for tests: the ledger's own rules on a state in memory, one block per waiting call.
//!
//! With a file it survives the process: included transactions are appended and executed again.

pub(crate) mod market;
mod node;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::Notify;
use types::tx::AgentRequest;
use types::{Address, Body, CheckedTx, Hash, Keypair, Params, RunStatus, Transaction};

use super::{
    BlobFees, BlobView, ChainError, Fate, Funds, Head, Held, Ledger, Notice, RunView, Runs, Stake,
    StepView, Watch,
};

pub(crate) use node::{State, claim, submitter};

pub(crate) const CHAIN: &str = "fake";

#[derive(Debug)]
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
        let state = Mutex::new(State::new());
        Self { state, files: None, is_lazy: false, moved: Notify::new() }
    }

    /// The same chain with other parameters. Nothing has happened on it.
    pub(crate) fn change_params(&self, change: impl FnOnce(&mut Params)) {
        self.state.lock().change_params(change);
    }

    /// Executes what the file holds, and appends to it from now on; what is refused goes into a
    /// second file.
    pub(crate) fn with_file(mut self, path: &Path) -> Self {
        if let Ok(text) = std::fs::read_to_string(path) {
            let is_v8 = self.state.lock().is_v8();
            let mut together = Vec::new();
            for line in text.lines() {
                if let Ok(now_ms) = line.parse() {
                    self.repeat(now_ms, &std::mem::take(&mut together));
                    continue;
                }
                let tx = self.state.lock().parse(line).unwrap();
                if is_v8 {
                    together.push(tx);
                } else {
                    self.include(&tx);
                }
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

    /// Somebody asks for a run, in a block of its own.
    pub(crate) fn add_run(&self, prompt: &str, max_fee_micro: u64, steps_max: u64) -> Hash {
        self.add_run_with(prompt, max_fee_micro, steps_max, |_| ())
    }

    pub(crate) fn add_run_with(
        &self,
        prompt: &str,
        max_fee_micro: u64,
        steps_max: u64,
        change: impl FnOnce(&mut AgentRequest),
    ) -> Hash {
        let from = submitter().address();
        let nonce = self.state.lock().account(&from).nonce;
        let mut request = fixtures::request(from, nonce, prompt, max_fee_micro, steps_max);
        let agent_run_id = request.agent_run_id;
        change(&mut request);
        self.act(&submitter(), &Body::AgentRequest(request));
        agent_run_id
    }

    /// A finalised blob of the submitter.
    pub(crate) fn add_blob(&self, id: &str, bytes: &[u8]) {
        fixtures::blob(id, bytes).iter().for_each(|body| self.submit(body));
    }

    /// What the submitter of the runs does.
    pub(crate) fn submit(&self, body: &Body) {
        self.act(&submitter(), body);
    }

    /// Somebody's transaction, in a block of its own.
    pub(crate) fn act(&self, key: &Keypair, body: &Body) {
        let tx = self.state.lock().signed(key, body);
        self.include(&tx);
        self.moved.notify_waiters();
    }

    /// Makes a block of one transaction.
    fn include(&self, tx: &CheckedTx) {
        let mut state = self.state.lock();
        let mut block = state.begin();
        block.push(tx).unwrap();
        state.append(block);
        if state.is_v8() {
            self.keep(tx);
        }
        self.seal(&state);
    }

    /// Makes a block that was made before.
    fn repeat(&self, now_ms: u64, txs: &[CheckedTx]) {
        let mut state = self.state.lock();
        state.now_ms = now_ms;
        let mut block = state.begin();
        for tx in txs {
            block.push(tx).unwrap();
        }
        state.append(block);
    }

    /// Ends a block in the file. Where calls have phases it matters which blocks there are.
    fn seal(&self, state: &State) {
        if let Some(files) = self.files.as_ref().filter(|_| state.is_v8()) {
            files.lock().0.write_all(format!("{}\n", state.now_ms).as_bytes()).unwrap();
        }
    }

    /// Lets time pass, and makes a block of nothing that was sent.
    pub(crate) fn pass(&self, ms: u64) {
        let mut state = self.state.lock();
        state.now_ms += ms;
        let block = state.begin();
        state.append(block);
        self.seal(&state);
        drop(state);
        self.moved.notify_waiters();
    }

    pub(crate) fn run_of(&self, id: &Hash) -> RunView {
        self.state.lock().run(id).unwrap()
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
        let state = self.state.lock();
        let told = || (state.log().collect::<Vec<_>>(), &state.lost, &state.rejections);
        assert!(outcome.is_ok(), "the chain did not get there: {:#?}", told());
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
        let mut block = state.begin();
        for (run, rival) in std::mem::take(&mut state.rivals) {
            let tx = state.signed(&rival, &claim(run, &rival));
            if block.push(&tx).is_ok() {
                self.keep(&tx);
            }
        }
        let mut pool = std::mem::take(&mut state.pool);
        pool.sort_by_key(|tx| tx.nonce());
        for tx in pool {
            if state.try_in(&mut block, tx.clone()) {
                self.keep(&tx);
            }
        }
        state.append(block);
        self.seal(&state);
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

#[async_trait]
impl Runs for FakeChain {
    async fn run(&self, id: &Hash) -> Answer<Option<RunView>> {
        self.reach().await?;
        Ok(self.state.lock().run(id))
    }

    async fn pending(&self) -> Answer<Vec<RunView>> {
        self.reach().await?;
        let mut runs = self.state.lock().runs();
        runs.retain(|run| run.status == RunStatus::Pending);
        Ok(runs)
    }

    async fn of_miner(&self, miner: &Address) -> Answer<Vec<RunView>> {
        self.reach().await?;
        let mut runs = self.state.lock().runs();
        runs.retain(|run| run.miner == Some(*miner));
        Ok(runs)
    }

    async fn open_of_miner(&self, miner: &Address) -> Answer<Vec<RunView>> {
        let mut runs = self.of_miner(miner).await?;
        runs.retain(|run| matches!(run.status, RunStatus::Claimed | RunStatus::Running));
        Ok(runs)
    }

    async fn steps(&self, id: &Hash) -> Answer<Vec<StepView>> {
        Ok(self.state.lock().steps(id))
    }

    async fn blob_text(&self, id: &str, bytes_max: usize) -> Answer<Option<String>> {
        let blob_ms = self.state.lock().blob_ms;
        tokio::time::sleep(Duration::from_millis(blob_ms)).await;
        self.state.lock().blobs_read += 1;
        let blob = self.state.lock().blob(id);
        let text = blob.filter(|(blob, bytes)| blob.is_final && bytes.len() <= bytes_max);
        Ok(text.and_then(|(_, bytes)| String::from_utf8(bytes).ok()))
    }
}

#[async_trait]
impl Ledger for FakeChain {
    async fn head(&self) -> Answer<Head> {
        let mut state = self.state.lock();
        state.heads_read += 1;
        let params = state.params();
        Ok(Head {
            chain_id: CHAIN.into(),
            genesis: Hash::ZERO,
            height: state.height(),
            syncing: state.is_syncing,
            step_tokens_max: params.max_output_tokens_per_step,
            block_ms: state.block_ms(),
        })
    }

    async fn funds(&self, address: &Address) -> Answer<Funds> {
        self.reach().await?;
        let state = self.state.lock();
        let balance_micro = state.balance(address);
        let next = state.next_nonce(address);
        let nonce = next.saturating_sub(state.nonces_behind);
        Ok(Funds { balance_micro, nonce })
    }

    async fn blob_fees(&self) -> Answer<BlobFees> {
        let mut state = self.state.lock();
        state.fees_read += 1;
        let params = state.params();
        let init_micro = if state.is_v7() { params.blob_init_fee.get() } else { 0 };
        let base_fee = state.is_v7().then_some(state.told_base_fee);
        Ok(BlobFees { init_micro, chunk_micro: params.blob_fee_per_chunk.get(), base_fee })
    }

    async fn send(&self, text: &str) -> Answer<()> {
        crate::testing::crash_point();
        self.reach().await?;
        let outcome = self.accept(text);
        if let (Err(ChainError::Rejected { code, .. }), Some(files)) = (&outcome, &self.files) {
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

    async fn stake(&self, address: &Address) -> Answer<Option<Stake>> {
        self.reach().await?;
        Ok(self.state.lock().stake(address))
    }

    async fn held(&self, miner: &Address) -> Answer<Held> {
        Ok(Held::of(&self.of_miner(miner).await?))
    }

    async fn blob(&self, id: &str) -> Answer<Option<BlobView>> {
        Ok(self.state.lock().blob(id).map(|(blob, _)| blob))
    }
}

impl FakeChain {
    fn accept(&self, text: &str) -> Answer<()> {
        let mut state = self.state.lock();
        let tx = state.parse(text).map_err(|rejection| ChainError::Rejected {
            code: rejection.code().as_str().into(),
            message: rejection.to_string(),
        })?;
        if state.is_known(&tx.hash()) {
            return Ok(());
        }
        let rejection = state.refuse.pop().or_else(|| state.nonce_fault(&tx));
        if let Some(code) = rejection {
            state.rejections.push(code.to_owned());
            return Err(ChainError::Rejected { code: code.into(), message: "refused".into() });
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
