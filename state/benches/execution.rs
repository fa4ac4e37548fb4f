//! What executing costs, over a state in memory: whole agent runs (request, claim, eight steps,
//! finish) of many wallets, and transfers. Prints microseconds per transaction, the median and the
//! best block of many, and how many rows a transaction changes.
//!
//! `./run cargo bench -p state --bench execution`

#![expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]
#![expect(clippy::unwrap_used, reason = "a benchmark stops at the first surprise")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use state::{ChainRules, Forks, MemoryChain, PendingState};
use types::build::Envelope;
use types::tx::{AgentFinish, Transfer};
use types::{Address, Amount, Body, CheckedTx, Hash, Keypair, Params};

const RUNS_PER_BLOCK: usize = 200;
const STEPS: u64 = 8;
const BLOCKS: usize = 24;
/// Wallets that exist; the first ones act.
const WALLETS: usize = 20_000;

fn main() {
    println!("W2, {RUNS_PER_BLOCK} runs of 11 transactions a block:");
    measure(&mut Wallets::new(2 * RUNS_PER_BLOCK), Wallets::runs);
    println!("W1, transfers:");
    measure(&mut Wallets::new(2_200), Wallets::transfers);
}

fn measure(wallets: &mut Wallets, block: fn(&mut Wallets) -> Vec<CheckedTx>) {
    let chain = Arc::new(ChainRules {
        chain_id: "bench".to_owned(),
        genesis_hash: Hash::ZERO,
        params: Params::default(),
        forks: Forks::default(),
        validators: Vec::new(),
    });
    let mut blocks =
        MemoryChain::new(Arc::clone(&chain), Hash::ZERO, 1, &accounts(wallets)).unwrap();
    let mut pending = PendingState::new(blocks.base(), chain).expect("a state in memory");
    let proposer = Keypair::from_seed(&[0xff; 32]);
    let (mut executing, mut finishing, mut admitting) = (Vec::new(), Vec::new(), Vec::new());
    let mut rows = 0;
    for _ in 0..BLOCKS {
        let txs = block(wallets);
        let count = u32::try_from(txs.len()).unwrap();
        let started = Instant::now();
        for tx in &txs {
            pending.admit(tx).unwrap();
        }
        admitting.push(started.elapsed() / count);
        let started = Instant::now();
        let now = blocks.tip().timestamp + 50;
        let mut builder = blocks.begin(&proposer, now).unwrap();
        for tx in &txs {
            builder.push(tx).unwrap();
        }
        executing.push(started.elapsed() / count);
        let started = Instant::now();
        let executed = builder.finish().unwrap();
        finishing.push(started.elapsed() / count);
        rows = executed.changes.values().map(BTreeMap::len).sum::<usize>();
        blocks.append(&executed).unwrap();
        pending.advance(blocks.base(), &txs, &BTreeMap::new(), &BTreeMap::new()).unwrap();
        assert!(pending.is_empty());
    }
    report("execute in a block", executing);
    report("sweep, roots and header", finishing);
    report("admit to the pool's draft", admitting);
    println!("  {:44} {rows:>8} rows in the last block", "changed");
}

fn report(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let median = times[times.len() / 2].as_nanos();
    let best = times[0].as_nanos();
    println!("  {name:44} {median:>8} ns per transaction, best {best} ns");
}

fn accounts(wallets: &Wallets) -> BTreeMap<Address, Amount> {
    let others = (0..WALLETS).map(|number| {
        let digest = Hash::digest(&number.to_be_bytes());
        Address::new(*digest.as_bytes().first_chunk::<20>().unwrap())
    });
    let own = wallets.list.iter().map(|wallet| wallet.key.address());
    own.chain(others).map(|address| (address, Amount::new(1_000_000_000))).collect()
}

struct Wallet {
    key: Keypair,
    nonce: u64,
}

struct Wallets {
    list: Vec<Wallet>,
}

impl Wallets {
    fn new(count: usize) -> Self {
        let seed = |number: usize| *Hash::digest(&number.to_le_bytes()).as_bytes();
        let wallet = |number| Wallet { key: Keypair::from_seed(&seed(number)), nonce: 0 };
        Self { list: (0..count).map(wallet).collect() }
    }

    fn tx(&mut self, who: usize, body: &Body) -> CheckedTx {
        let Wallet { key, nonce } = &mut self.list[who];
        let envelope = Envelope::new(*nonce, 1, None);
        *nonce += 1;
        CheckedTx::trust(fixtures::unsigned(key, body, &envelope))
    }

    /// Every wallet pays the next one.
    fn transfers(&mut self) -> Vec<CheckedTx> {
        let count = self.list.len();
        let pay = |who: usize| {
            let to = self.list[(who + 1) % count].key.address();
            self.tx(who, &Body::Transfer(Transfer::new(to, Amount::new(5), Amount::new(1))))
        };
        (0..count).map(pay).collect()
    }

    /// The first half requests, the second half mines: first all requests, then run by run.
    fn runs(&mut self) -> Vec<CheckedTx> {
        let mut txs = Vec::new();
        let mut ids = Vec::new();
        for who in 0..RUNS_PER_BLOCK {
            let Wallet { key, nonce } = &self.list[who];
            let prompt = "Summarise the attached report in three sentences.";
            let request = fixtures::request(key.address(), *nonce, prompt, 1_000_000, 20);
            ids.push(request.agent_run_id);
            txs.push(self.tx(who, &request.into()));
        }
        for (number, id) in ids.into_iter().enumerate() {
            let who = RUNS_PER_BLOCK + number;
            let miner = self.list[who].key.address();
            txs.push(self.tx(who, &fixtures::claim(miner, id).into()));
            for index in 0..STEPS {
                txs.push(self.tx(who, &fixtures::step(id, index, 625)));
            }
            txs.push(self.tx(who, &finish(id)));
        }
        txs
    }
}

fn finish(agent_run_id: Hash) -> Body {
    Body::AgentFinish(AgentFinish {
        final_answer_inline: Some("It is fine.".to_owned()),
        ..fixtures::finish(agent_run_id, 5_000, [5_000, 994_200, 800])
    })
}
