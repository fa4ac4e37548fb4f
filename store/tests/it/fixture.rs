//! A small chain in a temporary folder: wallets, transactions of every kind, blocks.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use state::{BlockBuilder, ChainRules, Changes, Executed, Forks};
use store::tools::EncodedBlock;
use store::{CommitBlock, GenesisState, Options, Store, Tip};
use tempfile::TempDir;
use types::build::{Envelope, build_tx};
use types::tx::{
    AgentClaim, AgentFinish, AgentRequest, AgentStep, ChatTurn, MinerRegister, Protection,
    ToolCall, Transfer,
};
use types::{Address, Amount, Body, CheckedTx, Fork, Hash, Keypair, Params, PublicKey, SetMember};

/// What every wallet has at the beginning.
pub(crate) const BALANCE: u64 = 1_000_000_000_000;
/// What the chain is called.
pub(crate) const CHAIN_ID: &str = "store-test";
/// The genesis time.
pub(crate) const TIME: u64 = 1_790_000_000_000;
/// The time between blocks.
pub(crate) const BLOCK_MS: u64 = 250;
/// The certificate of every block.
pub(crate) const CERTIFICATE: &[u8] = b"a certificate is only bytes here";

/// A key and the nonce that it uses next.
pub(crate) struct Wallet {
    pub(crate) key: Keypair,
    pub(crate) nonce: u64,
    seal: Seal,
}

/// Whether transactions get a signature, which takes longer to make than all the rest.
enum Seal {
    Signed,
    Missing,
}

impl Wallet {
    /// The wallet of a number.
    pub(crate) fn new(number: u64) -> Self {
        let seed = Hash::digest(&number.to_be_bytes());
        Self { key: Keypair::from_seed(seed.as_bytes()), nonce: 0, seal: Seal::Signed }
    }

    /// The same, whose transactions have no signature: for what never looks at one.
    pub(crate) fn unsigned(number: u64) -> Self {
        Self { seal: Seal::Missing, ..Self::new(number) }
    }

    pub(crate) fn address(&self) -> Address {
        self.key.address()
    }

    /// Signs the next transaction. Taken as checked: signatures are not the subject here.
    pub(crate) fn tx(&mut self, body: &Body) -> CheckedTx {
        // Kinds of v8 have to name the chain.
        let chain_id = (body.fork() == Some(Fork::V8)).then(|| CHAIN_ID.to_owned());
        let envelope = Envelope::new(self.nonce, TIME, chain_id);
        self.nonce += 1;
        CheckedTx::trust(match self.seal {
            Seal::Signed => fixtures::parsed(&build_tx(&self.key, body, &envelope)),
            Seal::Missing => fixtures::unsigned(&self.key, body, &envelope),
        })
    }

    pub(crate) fn transfer(&mut self, to: Address, amount: u64) -> CheckedTx {
        self.tx(&Body::Transfer(Transfer::new(to, Amount::new(amount), Amount::new(1))))
    }

    pub(crate) fn turn(&mut self, conversation_id: Hash, content: &str) -> CheckedTx {
        self.tx(&ChatTurn { conversation_id, ..fixtures::turn(content) }.into())
    }

    pub(crate) fn register(&mut self, name: &str) -> CheckedTx {
        self.tx(&Body::MinerRegister(MinerRegister {
            name: name.into(),
            capabilities: vec!["search".into()],
            model_info: "qwen2.5-coder-32b".into(),
        }))
    }

    /// AGENT_REQUEST and the id of its run.
    pub(crate) fn request(&mut self, conversation_id: Hash, prompt: &str) -> (CheckedTx, Hash) {
        self.request_with(conversation_id, prompt, Protection::default())
    }

    /// The same for a run that is protected so.
    pub(crate) fn request_with(
        &mut self,
        conversation_id: Hash,
        prompt: &str,
        protection: Protection,
    ) -> (CheckedTx, Hash) {
        let request = AgentRequest {
            conversation_id,
            tools_whitelist: vec!["web_search".into(), "read_file".into()],
            protection: protection.into(),
            ..fixtures::request(self.address(), self.nonce, prompt, 1_000_000, 20)
        };
        let run = request.agent_run_id;
        (self.tx(&request.into()), run)
    }

    pub(crate) fn cancel(&mut self, run: Hash) -> CheckedTx {
        self.tx(&fixtures::cancel(run))
    }

    pub(crate) fn claim(&mut self, run: Hash) -> CheckedTx {
        let claim = AgentClaim {
            model_info: "qwen2.5-coder-32b-q4".into(),
            hardware_tier: "workstation".into(),
            ..fixtures::claim(self.address(), run)
        };
        self.tx(&claim.into())
    }

    pub(crate) fn step(&mut self, run: Hash, step_index: u64) -> CheckedTx {
        let digest = |what: &str| Hash::digest(format!("{run}{step_index}{what}").as_bytes());
        let call = ToolCall {
            args_hash: digest("args"),
            result_hash: digest("result"),
            duration_ms: 120 + step_index,
            ..fixtures::tool_call("web_search")
        };
        self.tx(&Body::AgentStep(AgentStep {
            output_hash: digest("output"),
            tool_calls: Some(if step_index.is_multiple_of(2) { vec![call] } else { Vec::new() }),
            ..fixtures::plain_step(run, step_index, 625)
        }))
    }

    /// AGENT_FINISH of a run of `request` with so many of [`Wallet::step`].
    pub(crate) fn finish(&mut self, run: Hash, steps: u64) -> CheckedTx {
        let (tokens, fee) = (steps * 625, steps * 100);
        self.tx(&Body::AgentFinish(AgentFinish {
            final_answer_inline: Some(format!("The answer to run {run} is forty-two.")),
            ..fixtures::finish(run, tokens, [tokens, 1_000_000 - tokens - fee, fee])
        }))
    }

    /// The transactions of a blob: INIT, chunks, FINALIZE.
    pub(crate) fn blob(&mut self, blob_id: &str, bytes: &[u8]) -> Vec<CheckedTx> {
        fixtures::blob(blob_id, bytes).iter().map(|body| self.tx(body)).collect()
    }
}

/// The eleven transactions of a whole run with eight steps.
pub(crate) fn whole_run(
    number: u64,
    user: &mut Wallet,
    miner: &mut Wallet,
) -> (Hash, Vec<CheckedTx>) {
    let conversation = Hash::digest(&(number % 1_000).to_be_bytes());
    let prompt = format!(
        "Question {number}: compare the storage engines of five databases, name the trade-offs, \
         and recommend one for a workload of small synced batches."
    );
    let (request, run) = user.request(conversation, &prompt);
    let mut txs = vec![request, miner.claim(run)];
    txs.extend((0..8).map(|index| miner.step(run, index)));
    txs.push(miner.finish(run, 8));
    (run, txs)
}

/// A request for each of these numbers, and the runs.
pub(crate) fn requests(
    user: &mut Wallet,
    numbers: impl Iterator<Item: Display>,
) -> (Vec<CheckedTx>, Vec<Hash>) {
    numbers.map(|number| user.request(Hash::ZERO, &format!("question {number}"))).unzip()
}

/// Commits a block of what a wallet does with each of some runs.
pub(crate) fn each(
    chain: &mut TestChain,
    wallet: usize,
    runs: &[Hash],
    tx: fn(&mut Wallet, Hash) -> CheckedTx,
) {
    let wallet = &mut chain.wallets[wallet];
    let txs: Vec<_> = runs.iter().map(|run| tx(wallet, *run)).collect();
    chain.block(&txs);
}

/// The rows of height 0: so many wallets, all rich.
pub(crate) fn genesis_changes(wallets: &[Wallet]) -> Changes {
    first_state(&rules(), wallets)
}

/// The same on a chain with these rules.
pub(crate) fn first_state(chain: &ChainRules, wallets: &[Wallet]) -> Changes {
    let accounts = wallets.iter().map(|wallet| (wallet.address(), Amount::new(BALANCE)));
    chain.first_state(&accounts.collect()).expect("few wallets")
}

/// A chain on a store.
pub(crate) struct TestChain {
    pub(crate) store: Store,
    pub(crate) chain: Arc<ChainRules>,
    pub(crate) wallets: Vec<Wallet>,
}

/// The folder of the database of [`TestChain::fresh`] and [`chain_of`].
pub(crate) fn data(dir: &TempDir) -> PathBuf {
    dir.path().join("data")
}

/// The database in a folder.
pub(crate) fn open(path: &Path) -> Store {
    Store::open(path, Options::default()).expect("opens")
}

/// A new database in a folder, whose genesis has these rows.
pub(crate) fn begun(path: &Path, changes: &Changes) -> Store {
    let store = open(path);
    store.init(&genesis(changes)).expect("an empty database");
    store
}

/// The genesis with these rows.
pub(crate) fn genesis(changes: &Changes) -> GenesisState<'_> {
    GenesisState { hash: genesis_hash(), timestamp: TIME, changes }
}

/// A chain of so many wallets with these rules in a folder of its own, and the rows of its height 0.
pub(crate) fn chain_of(wallets: u64, chain: Arc<ChainRules>) -> (TempDir, TestChain, Changes) {
    let dir = tempfile::tempdir().expect("a folder");
    let wallets: Vec<Wallet> = (0..wallets).map(Wallet::new).collect();
    let changes = first_state(&chain, &wallets);
    let store = begun(&data(&dir), &changes);
    (dir, TestChain { store, chain, wallets }, changes)
}

/// What a block commits.
pub(crate) fn input(executed: &Executed) -> CommitBlock<'_> {
    let Executed { block, changes, events } = executed;
    CommitBlock { block, changes, events, missed: &[] }
}

/// Blocks of a database, as a peer sends them.
pub(crate) fn encoded(store: &Store, heights: RangeInclusive<u64>) -> Vec<EncodedBlock> {
    let snapshot = store.snapshot();
    let block = |height| EncodedBlock {
        height,
        bytes: snapshot.block_bytes(height).expect("reads").expect("a block"),
        certificate: snapshot.certificate(height).expect("reads").expect("a certificate"),
        stated_hash: None,
    };
    heights.map(block).collect()
}

impl TestChain {
    /// A new chain in a folder of its own, with so many wallets.
    pub(crate) fn fresh(wallets: u64) -> (TempDir, Self) {
        let dir = tempfile::tempdir().expect("a folder");
        let chain = Self::new(&data(&dir), wallets);
        (dir, chain)
    }

    /// A new chain in a folder, with so many wallets.
    pub(crate) fn new(path: &Path, wallets: u64) -> Self {
        Self::with(open(path), wallets)
    }

    pub(crate) fn with(store: Store, wallets: u64) -> Self {
        let wallets: Vec<Wallet> = (0..wallets).map(Wallet::new).collect();
        store.init(&genesis(&genesis_changes(&wallets))).expect("an empty database");
        Self { store, chain: rules(), wallets }
    }

    pub(crate) fn tip(&self) -> Tip {
        self.store.tip().expect("initialised")
    }

    /// Executes transactions as the next block, all of which must be valid.
    pub(crate) fn execute(&self, txs: &[CheckedTx]) -> Executed {
        self.execute_after(BLOCK_MS, txs)
    }

    /// The same, so many milliseconds after the last block.
    pub(crate) fn execute_after(&self, wait_ms: u64, txs: &[CheckedTx]) -> Executed {
        let parent = self.store.parent().expect("initialised");
        let now = parent.timestamp + wait_ms;
        let (chain, base) = (Arc::clone(&self.chain), self.store.latest());
        let mut builder =
            BlockBuilder::new(chain, base, parent, &proposing(), now).expect("a state");
        for tx in txs {
            builder.push(tx).expect("a valid transaction");
        }
        builder.finish().expect("a consistent state")
    }

    /// Executes and commits.
    pub(crate) fn block(&self, txs: &[CheckedTx]) -> Tip {
        let executed = self.execute(txs);
        self.commit(&executed)
    }

    pub(crate) fn commit(&self, executed: &Executed) -> Tip {
        self.store.commit_block(&input(executed), CERTIFICATE).expect("commits")
    }

    /// The same after a restart.
    pub(crate) fn reopened(self, path: &Path) -> Self {
        let Self { store, chain, wallets } = self;
        drop(store);
        Self { store: open(path), chain, wallets }
    }

    /// From this height on by the rules of v7.
    pub(crate) fn begin_v7(&mut self, height: u64) {
        let forks = Forks { v7: Some(height), ..self.chain.forks };
        self.chain = Arc::new(ChainRules { forks, ..ChainRules::clone(&self.chain) });
    }

    /// So many blocks without transactions.
    pub(crate) fn empty_blocks(&self, count: u64) {
        for _ in 0..count {
            self.block(&[]);
        }
    }

    /// A transfer from one wallet to another.
    pub(crate) fn transfer(&mut self, from: usize, to: usize, amount: u64) -> CheckedTx {
        let to = self.wallets[to].address();
        self.wallets[from].transfer(to, amount)
    }

    /// The transactions of a whole run of the first two wallets.
    pub(crate) fn whole_run(&mut self, number: u64) -> Vec<CheckedTx> {
        let (user, miner) = self.pair(0, 1);
        whole_run(number, user, miner).1
    }

    /// Two wallets at once.
    pub(crate) fn pair(&mut self, one: usize, other: usize) -> (&mut Wallet, &mut Wallet) {
        let [one, other] = self.wallets.get_disjoint_mut([one, other]).expect("two wallets");
        (one, other)
    }
}

pub(crate) fn rules() -> Arc<ChainRules> {
    let params = Params { max_block_bytes: 64 << 20, ..Params::default() };
    let (forks, validators) = (Forks::default(), Vec::new());
    Arc::new(ChainRules {
        chain_id: CHAIN_ID.into(),
        genesis_hash: Hash::ZERO,
        params,
        forks,
        validators,
    })
}

/// The same with these forks and first validators, each with its power.
pub(crate) fn rules_with(forks: Forks, validators: &[(PublicKey, u64)]) -> Arc<ChainRules> {
    let members = validators.iter().copied();
    let members = members.map(|(public_key, power)| SetMember { public_key, power });
    let mut validators: Vec<SetMember> = members.collect();
    validators.sort_by_key(|member| member.public_key.address());
    Arc::new(ChainRules { forks, validators, ..ChainRules::clone(&rules()) })
}

pub(crate) fn genesis_hash() -> Hash {
    Hash::digest(b"the genesis of the tests")
}

/// The key that makes the blocks.
pub(crate) fn proposing() -> Keypair {
    Keypair::from_seed(&[7; 32])
}

pub(crate) fn proposer() -> Address {
    proposing().address()
}
