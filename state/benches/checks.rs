//! What the pool's questions cost at worst, over the largest things that the state can hold: the check,
//! the simulation and the admission of a transaction of each kind. Nobody may make the pool wait for
//! longer than a millisecond by one question, so this program fails if any takes longer; and what one
//! slice of a rebuild takes is a part of every commit that needs one.
//!
//! `./run cargo bench -p state --bench checks`

#![expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]
#![expect(clippy::unwrap_used, reason = "a benchmark stops at the first surprise")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use fixtures::{
    blob_chunk, blob_finalize, blob_init, cancel, claim, evidence, finish, fork_vote, key,
    param_vote, register_miner, request, sign_evidence, step, turn,
};
use state::pieces::Pieces;
use state::tables::{Accounts, BlobChunks, BlobPieces, Blobs, Runs, Supplies, ValidatorVotes};
use state::{
    Base, ChainRules, Draft, Forks, Memory, PendingState, SharedPending, Still, validators,
};
use types::build::Envelope;
use types::sign_bytes::{Domain, acceptance};
use types::tx::{AgentFinish, AgentRequest, Attachment, ChatTurn, Evidence, NIL, ValidatorVote};
use types::{
    Account, Address, Amount, Blob, Body, CheckedTx, Hash, Keypair, OpenVote, Params, Run,
    RunStatus, SetMember, Signature, Supply, TxLocation,
};

#[path = "checks/market.rs"]
mod market;

/// The longest that a question may take.
const QUESTION_MAX: Duration = Duration::from_millis(1);
/// How often each is asked; the median counts, because the machine has other work, too.
const TIMES: usize = 21;
const CHUNK: usize = 400_000;
/// The most chunks of a blob by default, and at all.
const CHUNKS: u32 = 42;
const CHUNKS_MAX: u32 = 2_685;
/// The most entries of a run's list.
const EXCLUDED_MAX: u64 = 1_000;
const VALIDATORS: u64 = 64;
const ATTACHMENTS: usize = 16;
/// Transactions of a slice of a rebuild, and of a full pool.
const SLICE: usize = 2_048;
const POOL: usize = 165_000;

fn tx(from: &Keypair, nonce: u64, body: &Body) -> CheckedTx {
    let envelope = Envelope::new(nonce, 1, None);
    CheckedTx::trust(fixtures::unsigned(from, body, &envelope))
}

fn blob(id: &str, owner: &Keypair, total: u32, received: u32) -> Blob {
    Blob {
        blob_id: id.to_owned(),
        owner: owner.address(),
        content_type: "text/plain".to_owned(),
        total_bytes: u64::from(total) * 400_000,
        total_chunks: u64::from(total),
        received: u64::from(received),
        content_hash: Hash::ZERO,
        received_hash: (received == total).then_some(Hash::ZERO),
        is_final: received == total,
        created_at: 1,
    }
}

fn run(id: Hash, submitter: &Keypair, miner: Option<&Keypair>) -> Run {
    let excluded = (0..EXCLUDED_MAX).map(|number| {
        Address::new(*Hash::digest(&number.to_le_bytes()).as_bytes().first_chunk().unwrap())
    });
    Run {
        agent_run_id: id,
        conversation_id: Hash::ZERO,
        submitter: submitter.address(),
        max_fee: Amount::new(1_000_000_000),
        max_steps: 1_000_000,
        status: if miner.is_some() { RunStatus::Running } else { RunStatus::Pending },
        miner: miner.map(Keypair::address),
        step_count: 500_000,
        last_step_index: Some(500_000),
        tokens_out: 1_000,
        steps_digest: Hash::ZERO,
        settlement: None,
        submitted_at: 1,
        claimed_at: None,
        finished_at: None,
        deadline_at: None,
        reopens: 1_000,
        excluded_miners: excluded.collect(),
        request: TxLocation { height: 1, position: 0 },
        claim: None,
        finish: None,
        protection: None,
        locked_bond: None,
        ended_by: None,
        is_refused: false,
        agent: None,
    }
}

const GENESIS: Hash = Hash::ZERO;
const OPEN_RUN: Hash = Hash::new([1; 32]);
const OWN_RUN: Hash = Hash::new([2; 32]);

/// The state: everything as large as it gets, all of it of the key 0.
fn state_of(wallets: u64) -> Memory {
    let mut draft = Draft::new(Arc::new(Memory::default()));
    let (own, balance) = (key(0), Amount::new(1 << 40));
    for number in 0..wallets {
        draft.put::<Accounts>(&key(number).address(), &Account { balance, nonce: 0 });
    }
    draft.put::<Supplies>(&(), &Supply::default());
    for (id, total) in [("default", CHUNKS), ("largest", CHUNKS_MAX)] {
        let received = total - 1;
        draft.put::<Blobs>(&id.to_owned(), &blob(id, &own, total, received));
        draft.put::<BlobPieces>(&id.to_owned(), &Pieces::all(u64::from(received)));
    }
    for index in 0..CHUNKS - 1 {
        draft.put::<BlobChunks>(&(index, "default".to_owned()), &vec![7; CHUNK]);
    }
    for number in 0..ATTACHMENTS {
        let id = format!("final-{number}");
        draft.put::<Blobs>(&id, &blob(&id, &own, CHUNKS, CHUNKS));
    }
    draft.put::<Runs>(&OPEN_RUN, &run(OPEN_RUN, &own, None));
    draft.put::<Runs>(&OWN_RUN, &run(OWN_RUN, &own, Some(&own)));
    let members =
        (0..VALIDATORS - 1).map(|it| SetMember { public_key: key(it).public_key(), power: 1 });
    validators::put_first(&mut draft, members);
    for number in 100..100 + VALIDATORS - 1 {
        let vote = (own.address(), key(number).public_key());
        draft.put::<ValidatorVotes>(&vote, &OpenVote { power: 1, expires_at: u64::MAX });
    }
    market::put(&mut draft, &own);
    let memory = Memory::default();
    memory.apply(&draft.into_changes());
    memory
}

fn bodies(own: &Keypair) -> Vec<(&'static str, Body)> {
    let mut all = of_blobs();
    all.extend(of_runs(own));
    all.extend(of_others());
    all
}

fn of_blobs() -> Vec<(&'static str, Body)> {
    let chunk = |id: &str, total: u32| blob_chunk(id, u64::from(total - 1), &[7; CHUNK]);
    vec![
        ("last chunk of 16 MiB", chunk("default", CHUNKS)),
        ("last chunk of 1 GiB", chunk("largest", CHUNKS_MAX)),
        ("finalise, refused", blob_finalize("largest")),
        ("announce a blob", blob_init("new", &[7]).into()),
    ]
}

fn of_runs(own: &Keypair) -> Vec<(&'static str, Body)> {
    let (reward, fee) = (1_000, 50_000_000);
    let finish = AgentFinish {
        final_answer_blob_id: Some("final-0".to_owned()),
        ..finish(OWN_RUN, 1_000, [reward, 1_000_000_000 - fee - reward, fee])
    };
    let request = AgentRequest {
        prompt_blob_id: Some("final-0".to_owned()),
        ..request(own.address(), 0, "why", 1_000, 10)
    };
    vec![
        ("claim, 1,000 excluded", claim(own.address(), OPEN_RUN).into()),
        ("step of a long run", step(OWN_RUN, 500_001, 1)),
        ("finish of a long run", Body::AgentFinish(finish)),
        ("cancel", cancel(OPEN_RUN)),
        ("request with a blob", Body::AgentRequest(request)),
    ]
}

fn of_others() -> Vec<(&'static str, Body)> {
    let attachments = (0..ATTACHMENTS)
        .map(|number| Attachment { kind: "image".to_owned(), blob_id: format!("final-{number}") });
    let turn = ChatTurn {
        content_blob_id: Some("final-0".to_owned()),
        agent_run_id: Some(OWN_RUN),
        attachments: Some(attachments.collect()),
        ..turn("see")
    };
    let accepted = acceptance(&GENESIS, &key(99).address(), 9);
    let vote =
        ValidatorVote::new(key(99).public_key(), 1, 9).with_acceptance(key(99).sign(&accepted));
    vec![
        ("turn with attachments", Body::ChatTurn(turn)),
        ("vote, 64 validators", Body::ValidatorVote(vote)),
        ("register", register_miner("m")),
        ("transfer", transfer(1)),
    ]
}

fn domain() -> Domain {
    Domain { chain_id: market::CHAIN.into(), genesis_hash: GENESIS, v7_from: Some(0) }
}

/// What fork v7 brings, beside what is about miners.
fn of_validators() -> Vec<(&'static str, Body)> {
    let accused = key(VALIDATORS - 2);
    let values = [Hash::ZERO.to_string(), NIL.to_owned()];
    let said = evidence(accused.public_key(), 1, "precommit", values);
    let signed = sign_evidence(&accused, &domain(), said);
    let forged = Evidence { second_signature: Signature::new([7; 64]), ..signed.clone() };
    vec![
        ("evidence", Body::Evidence(signed)),
        ("evidence, forged, refused", Body::Evidence(forged)),
        ("vote on a fork", fork_vote("v9", 600_000)),
        ("vote on a parameter", param_vote("maxBlockWork", 300_000, 1_000)),
    ]
}

fn transfer(to: u64) -> Body {
    fixtures::transfer(key(to).address(), 1)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn time<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let started = Instant::now();
    let answer = work();
    (started.elapsed(), answer)
}

fn main() {
    let still = state_of(VALIDATORS).still();
    let own = key(0);
    let before = Forks { validator_vote: Some(0), ..Forks::default() };
    let latest = Forks { v7: Some(0), v8: Some(0), ..before };
    let mut worst = Duration::ZERO;
    println!("microseconds, the median of {TIMES}:            check   simulate     admit");
    for (name, body) in bodies(&own) {
        worst = worst.max(ask(&still, &chain_of(before), (name, &tx(&own, 0, &body))));
    }
    println!("by the rules of v8:");
    let mut all = bodies(&own);
    all.extend(of_validators());
    all.extend(market::bodies(&own));
    for (name, body) in all {
        worst = worst.max(ask(&still, &chain_of(latest), (name, &tx(&own, 0, &body))));
    }
    slice(&chain_of(before));
    assert!(worst < QUESTION_MAX, "a question took {worst:?}");
}

fn chain_of(forks: Forks) -> Arc<ChainRules> {
    let params = Params { max_blob_bytes: 1 << 30, ..Params::default() };
    Arc::new(ChainRules {
        chain_id: market::CHAIN.to_owned(),
        genesis_hash: GENESIS,
        params: market::params(params),
        forks,
        validators: Vec::new(),
    })
}

/// Asks everything about a transaction again and again; answers what takes longest. What is done without
/// the pool's lock comes before: whoever hands in evidence has looked at its signatures.
fn ask(still: &Still, chain: &Arc<ChainRules>, (name, tx): (&str, &CheckedTx)) -> Duration {
    let (mut checks, mut simulations, mut admissions) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TIMES {
        let shared = Arc::new(
            SharedPending::new(base(still), Arc::clone(chain)).expect("a state in memory"),
        );
        let _forged = tx.forged_message(&domain());
        shared.prepare(tx);
        checks.push(time(|| drop(shared.lock().check(tx))).0);
        simulations.push(time(|| drop(shared.simulate(tx, 1, 1))).0);
        let (took, admitted) = time(|| shared.lock().admit(tx));
        assert_eq!(admitted.is_ok(), !name.ends_with("refused"), "{name}: {admitted:?}");
        admissions.push(took);
    }
    let all = [checks, simulations, admissions].map(median);
    let [check, simulation, admission] = all.map(|it| it.as_micros());
    println!("  {name:36} {check:>10} {simulation:>10} {admission:>9}");
    all.into_iter().max().unwrap()
}

fn base(still: &Still) -> Base {
    Base { state: still.clone(), height: 0 }
}

/// What a commit waits for when the pool is full and its draft has to be built anew.
fn slice(chain: &Arc<ChainRules>) {
    const WALLETS: u64 = 2_000;
    let still = state_of(WALLETS).still();
    let mut pending =
        PendingState::new(base(&still), Arc::clone(chain)).expect("a state in memory");
    let keys: Vec<Keypair> = (0..WALLETS).map(key).collect();
    let per_wallet = u64::try_from(POOL).unwrap() / WALLETS;
    let txs: Vec<CheckedTx> = (0..per_wallet)
        .flat_map(|nonce| keys.iter().map(move |it| (it, nonce)))
        .map(|(it, nonce)| tx(it, nonce, &transfer(nonce % WALLETS)))
        .collect();
    let (all, ()) = time(|| txs.iter().for_each(|tx| pending.admit(tx).unwrap()));
    let (reset, spent) = time(|| pending.reset(base(&still)).expect("a state in memory"));
    let (first, ()) = time(|| txs.iter().take(SLICE).for_each(|tx| pending.admit(tx).unwrap()));
    let (down, ()) = time(|| drop(spent));
    println!("a pool of {} transactions: all at once {all:.0?}", txs.len());
    println!(
        "  a slice of {SLICE} {first:.1?}, after a reset of {reset:.1?}; taking down {down:.0?}"
    );
}
