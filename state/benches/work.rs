//! What a transaction of each kind takes, beside the units of work that the rules count for it: reading
//! and verifying it in a batch of its kind, executing it, and its share of the end of the block, over a
//! state in memory. The rows that it changes are counted, too: a database and the state's tree come on
//! top of what is measured here. Prints microseconds per transaction: of execution the median, of batches the
//! best of many, because the machine has other work, too.
//!
//! `cargo bench -p state --bench work`

#![expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]
#![expect(clippy::unwrap_used, reason = "a benchmark stops at the first surprise")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use state::{ChainRules, Forks, MemoryChain};
use types::build::{Envelope, Unsigned};
use types::check::{StaticRules, verify};
use types::tx::{
    AgentCancel, AgentClaim, AgentFinish, AgentRequest, AgentStep, Attachment, BlobChunk,
    BlobFinalize, BlobInit, ChatTurn, ForkVote, MinerRegister, ParamVote, Transfer, ValidatorVote,
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
        let from = key.address().to_string();
        Unsigned::build(body, &from, &key.public_key(), &envelope).sign(key)
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
        self.block("AGENT_REQUEST", WALLETS, move |it, who| request(id(it, who, 0), PROMPT));
        self.block("AGENT_CLAIM", WALLETS, move |it, who| {
            Body::AgentClaim(AgentClaim {
                agent_run_id: id(it, who, 1),
                miner_address: it.address(who).into(),
                model_info: "model".to_owned(),
                hardware_tier: "server".to_owned(),
            })
        });
        self.block("AGENT_STEP", WALLETS, move |it, who| step(id(it, who, 2), 0));
        self.block("AGENT_STEP, again", WALLETS, move |it, who| step(id(it, who, 3), 1));
        self.block("AGENT_FINISH", WALLETS, move |it, who| {
            Body::AgentFinish(AgentFinish {
                agent_run_id: id(it, who, 4),
                total_tokens_out: 1_250,
                status: "completed".to_owned(),
                miner_reward: Amount::new(1_250),
                user_refund: Amount::new(1_000_000 - 1_250 - 200),
                network_fee: Amount::new(200),
                final_answer_inline: Some("It is fine.".to_owned()),
                final_answer_blob_id: None,
            })
        });
        self.block("AGENT_REQUEST, again", WALLETS, move |it, who| request(id(it, who, 0), PROMPT));
        self.block("AGENT_CANCEL", WALLETS, move |it, who| {
            Body::AgentCancel(AgentCancel { agent_run_id: id(it, who, 1) })
        });
    }

    fn of_blobs(&mut self) {
        const FEW: usize = 16;
        self.block("SOCIAL_BLOB_INIT", WALLETS, |_, who| init(&blob(who), CHUNK));
        self.block("SOCIAL_BLOB_CHUNK", FEW, |_, who| chunk(&blob(who), 0, CHUNK));
        self.block("SOCIAL_BLOB_FINALIZE", FEW, |_, who| finalize(&blob(who)));
        self.block("CHAT_TURN, 16 blobs", WALLETS, |_, _| turn("See these.", FEW));
        self.unseen(&init(LARGE, CHUNK * CHUNKS));
        for index in 0..CHUNKS - 1 {
            self.unseen(&chunk(LARGE, index, CHUNK));
        }
        self.alone("last chunk of 16 MiB", &chunk(LARGE, CHUNKS - 1, CHUNK));
    }

    fn of_votes(&mut self) {
        self.block("FORK_VOTE", VALIDATORS, |_, _| {
            Body::ForkVote(ForkVote { fork: "v9".to_owned(), height: 500_000 })
        });
        self.block("PARAM_VOTE", VALIDATORS, |_, who| {
            let value = u64::try_from(who).unwrap() + 1;
            let name = "registerFee".to_owned();
            Body::ParamVote(ParamVote { name, value, height: 500_000 })
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
    Body::ChatTurn(ChatTurn {
        conversation_id: Hash::ZERO,
        role: "user".to_owned(),
        content: content.to_owned(),
        content_blob_id: None,
        parent_turn_hash: None,
        agent_run_id: None,
        attachments: (blobs > 0).then(|| attached.collect()),
    })
}

fn request(agent_run_id: Hash, prompt: &str) -> Body {
    Body::AgentRequest(AgentRequest {
        agent_run_id,
        conversation_id: agent_run_id,
        prompt: prompt.to_owned(),
        tools_whitelist: Vec::new(),
        max_fee: Amount::new(1_000_000),
        max_steps: 20,
        prompt_blob_id: None,
        model_hint: None,
        protection: types::Late::default(),
        agent: types::Late::default(),
    })
}

fn step(agent_run_id: Hash, step_index: u64) -> Body {
    Body::AgentStep(AgentStep {
        agent_run_id,
        step_index,
        output_tokens: 625,
        output_hash: Hash::ZERO,
        thought_blob_id: None,
        tool_calls: None,
        output_blob_id: None,
    })
}

fn init(id: &str, bytes: usize) -> Body {
    Body::BlobInit(BlobInit {
        blob_id: id.to_owned(),
        content_type: "text/plain".to_owned(),
        total_bytes: u64::try_from(bytes).unwrap().min(16 << 20),
        total_chunks: u64::try_from(bytes.div_ceil(CHUNK)).unwrap(),
        content_hash: Hash::digest(&vec![7; bytes.min(16 << 20)]),
    })
}

fn chunk(id: &str, index: usize, bytes: usize) -> Body {
    let bytes = if index + 1 == CHUNKS { (16 << 20) - index * CHUNK } else { bytes };
    Body::BlobChunk(BlobChunk {
        blob_id: id.to_owned(),
        chunk_index: u64::try_from(index).unwrap(),
        chunk_data: vec![7; bytes],
    })
}

fn finalize(id: &str) -> Body {
    Body::BlobFinalize(BlobFinalize { blob_id: id.to_owned() })
}

fn vote(candidate_key: types::PublicKey) -> Body {
    Body::ValidatorVote(ValidatorVote::new(candidate_key, 1, 1_000_000))
}
