//! What a transaction costs before it touches any state: parsing, the static checks with
//! signatures in batches, building and signing. Prints the median and the best of many rounds.
//!
//! `./run cargo bench -p types [-- PART_OF_A_NAME]`

#![expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]
#![expect(clippy::unwrap_used, reason = "a benchmark stops at the first surprise")]

use std::hint::black_box;

use fixtures::times;
use types::build::{Envelope, build_tx};
use types::check::{StaticRules, verify};
use types::tx::{AgentClaim, AgentFinish, AgentRequest, AgentStep};
use types::{Address, Body, Forks, Hash, Keypair, Params, SizeLimits, Transaction};

/// Steps of one run; with the request, the claim and the finish a run has 11 transactions.
const STEPS: u64 = 8;
const ROUNDS: usize = 101;
const BATCH: usize = 256;

fn main() {
    let params = Params::default();
    let limits = SizeLimits::from(&params);
    let runs: Vec<String> = (0..64).flat_map(run).collect();
    let step = runs.iter().find(|text| text.contains("AGENT_STEP")).unwrap();
    let request = runs.first().unwrap();
    println!("AGENT_STEP: {} bytes; AGENT_REQUEST: {} bytes", step.len(), request.len());

    report("parse AGENT_STEP", 100, || {
        for _ in 0..100 {
            black_box(Transaction::parse(black_box(step.as_bytes()), &limits).unwrap());
        }
    });
    let mut encoded = Vec::new();
    Transaction::parse(step.as_bytes(), &limits).unwrap().encode(&mut encoded);
    report("decode AGENT_STEP", 100, || {
        for _ in 0..100 {
            black_box(Transaction::decode(black_box(&encoded), &limits).unwrap());
        }
    });

    let batch = runs.get(..BATCH).unwrap();
    report("parse, runs", BATCH, || {
        for text in batch {
            black_box(Transaction::parse(text.as_bytes(), &limits).unwrap());
        }
    });
    let rules =
        StaticRules { chain_id: "bench", params: &params, forks: Forks::default(), height: 1 };
    let parse = |text: &String| Transaction::parse(text.as_bytes(), &limits).unwrap();
    for size in [1, 16, 64, BATCH] {
        let some = batch.get(..size).unwrap();
        report(&format!("parse and verify, runs, batch {size}"), size, || {
            let checked = verify(some.iter().map(parse).collect(), &rules);
            assert!(checked.iter().all(Result::is_ok));
        });
    }
    report("verify with one bad signature, batch 256", BATCH, || {
        let mut texts: Vec<String> = batch.to_vec();
        let last = texts.last_mut().unwrap();
        flip_signature(last);
        let checked = verify(texts.iter().map(parse).collect(), &rules);
        assert_eq!(checked.iter().filter(|checked| checked.is_err()).count(), 1);
    });
    report("verify with only bad signatures, batch 256", BATCH, || {
        let mut texts: Vec<String> = batch.to_vec();
        texts.iter_mut().for_each(flip_signature);
        let checked = verify(texts.iter().map(parse).collect(), &rules);
        assert!(checked.iter().all(Result::is_err));
    });

    let key = Keypair::from_seed(&[7; 32]);
    let body = agent_step(Hash::digest(b"run"), 0);
    report("build and sign AGENT_STEP", 100, || {
        for nonce in 0..100 {
            black_box(build_tx(&key, &body, &envelope(nonce)));
        }
    });
}

/// Prints the median and the best time of one of the `items` that `work` handles. On a busy machine the
/// best says more.
fn report(name: &str, items: usize, mut work: impl FnMut()) {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    if filter.is_some_and(|filter| !name.contains(&filter)) {
        return;
    }
    let times = times(ROUNDS, |_| work());
    let items = f64::from(u32::try_from(items).unwrap());
    let micros = |round: usize| times.get(round).unwrap().as_secs_f64() * 1e6 / items;
    println!("{name:45} median {:8.2} us   best {:8.2} us", micros(ROUNDS / 2), micros(0));
}

/// One whole run as signed texts: the request of one wallet, the rest by another.
fn run(number: u8) -> Vec<String> {
    let submitter = Keypair::from_seed(&[number; 32]);
    let miner = Keypair::from_seed(&[number ^ 0xff; 32]);
    let prompt = format!("What is my balance, and what has changed since block {number}?");
    let request = AgentRequest {
        tools_whitelist: vec!["chain_get_balance".to_owned(), "now".to_owned()],
        ..fixtures::request(submitter.address(), 0, &prompt, 1_000_000, 50)
    };
    let agent_run_id = request.agent_run_id;
    let mut bodies = vec![claim(agent_run_id, miner.address())];
    bodies.extend((0..STEPS).map(|index| agent_step(agent_run_id, index)));
    bodies.push(finish(agent_run_id));
    let mut texts = vec![build_tx(&submitter, &request.into(), &envelope(0))];
    texts.extend(
        (0_u64..).zip(&bodies).map(|(nonce, body)| build_tx(&miner, body, &envelope(nonce))),
    );
    texts
}

fn claim(agent_run_id: Hash, miner: Address) -> Body {
    Body::AgentClaim(AgentClaim {
        model_info: "llama-server:Qwen2.5-7B-Q4_K_M".to_owned(),
        ..fixtures::claim(miner, agent_run_id)
    })
}

fn agent_step(agent_run_id: Hash, step_index: u64) -> Body {
    Body::AgentStep(AgentStep {
        tool_calls: Some(vec![fixtures::tool_call("chain_get_balance")]),
        ..fixtures::plain_step(agent_run_id, step_index, 625)
    })
}

fn finish(agent_run_id: Hash) -> Body {
    Body::AgentFinish(AgentFinish {
        final_answer_inline: Some("12.34 OMBRA".to_owned()),
        ..fixtures::finish(agent_run_id, 5_000, [5_000, 994_200, 800])
    })
}

const fn envelope(nonce: u64) -> Envelope {
    Envelope::new(nonce, 1_715_990_000_000, None)
}

/// Changes the signature's first byte to another one, so that its R is another point or none.
fn flip_signature(text: &mut String) {
    let at = text.find("\"signature\":\"").unwrap() + 13;
    let other = if text[at..].starts_with('0') { "1" } else { "0" };
    text.replace_range(at..=at, other);
}
