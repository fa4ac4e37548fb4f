//! What a transaction of each kind takes, beside the units of work that the rules count for it: reading
//! and verifying it in a batch of its kind, executing it, and its share of the end of the block, over a
//! state in memory. The rows that it changes are counted, too: a database and the state's tree come on
//! top of what is measured here. Prints microseconds per transaction: of execution the median, of batches the
//! best of many, because the machine has other work, too.
//!
//! `./run cargo bench -p state --bench work`

#![expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]
#![expect(clippy::unwrap_used, reason = "a benchmark stops at the first surprise")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fixtures::{
    blob_chunk, blob_finalize, blob_init, cancel, claim, finish, fork_vote, param_vote, step,
};
use state::{ChainRules, Forks, MemoryChain};
use types::build::{Envelope, build_tx};
use types::check::{StaticRules, verify};
use types::tx::{
    AgentClaim, AgentFinish, Attachment, ChatTurn, MinerRegister, Transfer, ValidatorVote,
};
use types::{
    Address, Amount, Body, Hash, Keypair, Params, SetMember, SizeLimits, Transaction, ids,
};

/// Wallets of which each sends one transaction of a kind; so many are validators, too.
const WALLETS: usize = 256;
const VALIDATORS: usize = 63;
const ROUNDS: usize = 9;
/// Transactions that are verified together.
const BATCH: usize = 64;
const CHUNK: usize = 400_000;
const CHUNKS: usize = 42;
const LARGE: &str = "large";

/// Microseconds of one transaction, what it changed, and what was counted for it.
#[derive(Clone, Copy)]
struct Measured {
    verify: Duration,
    execute: Duration,
    finish: Duration,
    bytes: usize,
    rows: usize,
    units: u64,
}

struct Bench {
    blocks: MemoryChain,
    keys: Vec<Keypair>,
    nonces: Vec<u64>,
    results: Vec<(&'static str, Measured)>,
}

fn main() {
    let rounds: Vec<Vec<(&'static str, Measured)>> = (0..ROUNDS).map(|_| round()).collect();
    println!(
        "{WALLETS} transactions of a kind in a block, microseconds of each, best of {ROUNDS}:"
    );
    println!("  kind                       bytes   verify  execute   finish     rows    units");
    let first = rounds.first().unwrap();
    for (nth, (name, measured)) in first.iter().enumerate() {
        let best = |part: fn(&Measured) -> Duration| {
            let all = rounds.iter().map(|round| part(&round[nth].1));
            all.min().unwrap().as_secs_f64() * 1e6
        };
        let (verify, execute) = (best(|it| it.verify), best(|it| it.execute));
        let finish = best(|it| it.finish);
        let Measured { bytes, rows, units, .. } = measured;
        println!(
            "  {name:24} {bytes:>7} {verify:>8.1} {execute:>8.1} {finish:>8.1} {rows:>8} {units:>8}"
        );
    }
}

fn round() -> Vec<(&'static str, Measured)> {
    let mut bench = Bench::new();
    bench.of_wallets();
    bench.of_runs();
    bench.of_blobs();
    bench.of_votes();
    bench.results
}

impl Bench {
    fn new() -> Self {
        let seed = |number: usize| *Hash::digest(&number.to_le_bytes()).as_bytes();
        let keys: Vec<Keypair> =
            (0..WALLETS).map(|number| Keypair::from_seed(&seed(number))).collect();
        let params =
            Params { max_block_bytes: u32::MAX, max_block_work: u64::MAX, ..Params::default() };
        let member = |key: &Keypair| SetMember { public_key: key.public_key(), power: 1 };
        let validators = keys.iter().take(VALIDATORS).map(member).collect();
        let forks = Forks { v6: 0, validator_vote: Some(0), v7: Some(0), v8: None };
        let chain_id = "bench".to_owned();
        let chain =
            Arc::new(ChainRules { chain_id, genesis_hash: Hash::ZERO, params, forks, validators });
        let accounts: BTreeMap<Address, Amount> =
            keys.iter().map(|key| (key.address(), Amount::new(1_000_000_000_000))).collect();
        let blocks = MemoryChain::new(chain, Hash::ZERO, 1, &accounts).unwrap();
        Self { blocks, keys, nonces: vec![0; WALLETS], results: Vec::new() }
    }

    fn text(&mut self, who: usize, body: &Body) -> String {
        let key = &self.keys[who];
        let envelope = Envelope::new(self.nonces[who], 1, None);
        self.nonces[who] += 1;
        build_tx(key, body, &envelope)
    }

    fn address(&self, who: usize) -> Address {
        self.keys[who].address()
    }

    /// One block with a transaction of each of the first wallets.
    fn block(&mut self, name: &'static str, wallets: usize, body: impl Fn(&Self, usize) -> Body) {
        let bodies: Vec<Body> = (0..wallets).map(|who| body(self, who)).collect();
        let texts: Vec<String> =
            bodies.iter().enumerate().map(|(who, body)| self.text(who, body)).collect();
        self.measure(name, &texts);
    }

    fn measure(&mut self, name: &'static str, texts: &[String]) {
        let count = u32::try_from(texts.len()).unwrap();
        let rules = Arc::clone(self.blocks.rules());
        let limits = SizeLimits::from(&rules.params);
        let height = self.blocks.tip().height + 1;
        let (chain_id, params, forks) = (rules.chain_id.as_str(), &rules.params, rules.forks);
        let rules_of_block = StaticRules { chain_id, params, forks, height };
        let (mut checked, mut verifying) = (Vec::new(), Vec::new());
        for batch in texts.chunks(BATCH) {
            let started = Instant::now();
            let parse = |text: &String| Transaction::parse(text.as_bytes(), &limits).unwrap();
            let answers = verify(batch.iter().map(parse).collect(), &rules_of_block);
            verifying.push(started.elapsed() / u32::try_from(batch.len()).unwrap());
            checked.extend(answers.into_iter().map(Result::unwrap));
        }
        let verify = verifying.into_iter().min().unwrap();
        let now = self.blocks.tip().timestamp + 50;
        let mut builder = self.blocks.begin(&Keypair::from_seed(&[0xff; 32]), now).unwrap();
        let room = builder.work_room();
        let mut executing: Vec<Duration> = Vec::new();
        for tx in &checked {
            let started = Instant::now();
            builder.push(tx).unwrap();
            executing.push(started.elapsed());
        }
        executing.sort_unstable();
        let execute = executing[executing.len() / 2];
        let units = (room - builder.work_room()) / u64::from(count);
        let started = Instant::now();
        let executed = builder.finish().unwrap();
        let finish = started.elapsed() / count;
        let rows = executed.changes.values().map(BTreeMap::len).sum::<usize>() / texts.len();
        self.blocks.append(&executed).unwrap();
        let bytes = texts.first().unwrap().len();
        let measured = Measured { verify, execute, finish, bytes, rows, units };
        self.results.push((name, measured));
    }

    /// One transaction in a block of its own.
    fn alone(&mut self, name: &'static str, body: &Body) {
        let text = self.text(0, body);
        self.measure(name, &[text]);
    }

    /// What is only there for others to be measured.
    fn unseen(&mut self, body: &Body) {
        self.alone("", body);
        self.results.pop();
    }

    fn of_wallets(&mut self) {
        self.block("TRANSFER", WALLETS, |it, who| {
            let to = it.address((who + 1) % WALLETS);
            Body::Transfer(Transfer::new(to, Amount::new(5), Amount::new(1)))
        });
        self.block("MINER_REGISTER", WALLETS, |_, who| {
            Body::MinerRegister(MinerRegister {
                name: format!("miner {who}"),
                capabilities: vec!["chat".to_owned()],
                model_info: "model".to_owned(),
            })
        });
        self.block("MINER_REGISTER, largest", WALLETS, |_, _| {
            Body::MinerRegister(MinerRegister {
                name: "n".repeat(64),
                capabilities: (0..64).map(|number| format!("{number:064}")).collect(),
                model_info: "m".repeat(256),
            })
        });
        self.block("CHAT_TURN", WALLETS, |_, _| turn("What is it?", 0));
        self.block("CHAT_TURN, largest", WALLETS, |_, _| turn(&"x".repeat(16_384), 0));
    }

    fn of_runs(&mut self) {
        let id = |it: &Self, who: usize, ago: u64| {
            let from = it.address(who).to_string();
            ids::compute_agent_run_id(&from, it.nonces[who] - ago, PROMPT)
        };
        self.block("AGENT_REQUEST", WALLETS, request);
        self.block("AGENT_CLAIM", WALLETS, move |it, who| {
            let hardware_tier = "server".to_owned();
            AgentClaim { hardware_tier, ..claim(it.address(who), id(it, who, 1)) }.into()
        });
        self.block("AGENT_STEP", WALLETS, move |it, who| step(id(it, who, 2), 0, 625));
        self.block("AGENT_STEP, again", WALLETS, move |it, who| step(id(it, who, 3), 1, 625));
        self.block("AGENT_FINISH", WALLETS, move |it, who| {
            Body::AgentFinish(AgentFinish {
                final_answer_inline: Some("It is fine.".to_owned()),
                ..finish(id(it, who, 4), 1_250, [1_250, 1_000_000 - 1_250 - 200, 200])
            })
        });
        self.block("AGENT_REQUEST, again", WALLETS, request);
        self.block("AGENT_CANCEL", WALLETS, move |it, who| cancel(id(it, who, 1)));
    }

    fn of_blobs(&mut self) {
        const FEW: usize = 16;
        self.block("SOCIAL_BLOB_INIT", WALLETS, |_, who| init(&blob(who), CHUNK));
        self.block("SOCIAL_BLOB_CHUNK", FEW, |_, who| chunk(&blob(who), 0, CHUNK));
        self.block("SOCIAL_BLOB_FINALIZE", FEW, |_, who| blob_finalize(&blob(who)));
        self.block("CHAT_TURN, 16 blobs", WALLETS, |_, _| turn("See these.", FEW));
        self.unseen(&init(LARGE, CHUNK * CHUNKS));
        for index in 0..CHUNKS - 1 {
            self.unseen(&chunk(LARGE, index, CHUNK));
        }
        self.alone("last chunk of 16 MiB", &chunk(LARGE, CHUNKS - 1, CHUNK));
    }

    fn of_votes(&mut self) {
        self.block("FORK_VOTE", VALIDATORS, |_, _| fork_vote("v9", 500_000));
        self.block("PARAM_VOTE", VALIDATORS, |_, who| {
            param_vote("registerFee", u64::try_from(who).unwrap() + 1, 500_000)
        });
        for nth in 0..VALIDATORS {
            let vote = vote(self.keys[100 + nth].public_key());
            let texts: Vec<String> = (0..2).map(|who| self.text(who, &vote)).collect();
            self.measure("", &texts);
            self.results.pop();
        }
        let last = vote(self.keys[99].public_key());
        let texts: Vec<String> = (0..2).map(|who| self.text(who, &last)).collect();
        self.measure("VALIDATOR_VOTE, the 64th", &texts);
    }
}

const PROMPT: &str = "Summarise the attached report in three sentences.";

fn blob(who: usize) -> String {
    format!("blob-{who}")
}

fn turn(content: &str, blobs: usize) -> Body {
    let attached =
        (0..blobs).map(|who| Attachment { kind: "image".to_owned(), blob_id: blob(who) });
    let attachments = (blobs > 0).then(|| attached.collect());
    ChatTurn { attachments, ..fixtures::turn(content) }.into()
}

fn request(bench: &Bench, who: usize) -> Body {
    fixtures::request(bench.address(who), bench.nonces[who], PROMPT, 1_000_000, 20).into()
}

fn init(id: &str, bytes: usize) -> Body {
    blob_init(id, &vec![7; bytes.min(16 << 20)]).into()
}

fn chunk(id: &str, index: usize, bytes: usize) -> Body {
    let bytes = if index + 1 == CHUNKS { (16 << 20) - index * CHUNK } else { bytes };
    blob_chunk(id, u64::try_from(index).unwrap(), &vec![7; bytes])
}

fn vote(candidate_key: types::PublicKey) -> Body {
    Body::ValidatorVote(ValidatorVote::new(candidate_key, 1, 1_000_000))
}
