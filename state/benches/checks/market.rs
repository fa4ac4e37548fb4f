//! The largest things of the agent market, and the transactions that a check of them reads most for.

use fixtures::{bond, commit, judge_of, key, offer, retire, reveal, unbond};
use state::Draft;
use state::market::offers::index_key;
use state::tables::{
    AgentVersions, Agents, Bonds, CallMembers, Calls, OfferCounts, Offers, OffersByExecutor,
};
use types::agent::{ExecutorId, METADATA_BYTES_MAX};
use types::call::{
    Answer, Call, CallLimits, CallMember, CallRound, CallStatus, CallTerms, Consensus, Group,
    Outcome, When,
};
use types::ids::{compute_agent_id, compute_call_id};
use types::params::OFFERS_PER_MINER_MAX;
use types::tx::{AgentCall, AgentRegister, CallAppeal, HexBytes, OnResult};
use types::{
    Address, Agent, AgentVersion, Amount, Body, Bond, Hash, Keypair, Offer, Params, Prices,
    TxLocation, Usage,
};

pub(super) const CHAIN: &str = "bench";

/// The most executors of an agent, methods, and seats of a first round.
const EXECUTORS: u8 = 16;
const METHODS: u8 = 64;
const SEATS: u8 = 15;
/// Miners that offer for each executor: as many offers count, the members' among them.
const MINERS: u64 = 256;
/// The most bytes of a payload and of a result.
const LONG: usize = 16_384;
const BONDED: Amount = Amount::new(1 << 40);

const AT: TxLocation = TxLocation { height: 0, position: 0 };
const WIDE: &str = "1.0.0";
const NARROW: &str = "0.0.1";
/// A call that can be appealed, of an agent with all executors or with one, and what a member commits to
/// and reveals.
const DECIDED: Hash = Hash::new([11; 32]);
const DECIDED_OF_ONE: Hash = Hash::new([12; 32]);
const UNSERVED: Hash = Hash::new([13; 32]);
const COMMITTING: Hash = Hash::new([14; 32]);
const REVEALING: Hash = Hash::new([15; 32]);

fn executor(number: u8) -> ExecutorId {
    ExecutorId::Model { manifest: Hash::new([number; 32]) }
}

/// A number of a key that nobody else has.
const fn of_miner(number: u64) -> u64 {
    1_000 + number
}

fn version(owner: Address, version: &str, executors: u8) -> AgentVersion {
    AgentVersion {
        agent_id: judge_of(owner),
        version: version.to_owned(),
        previous: None,
        owner,
        executors: (0..executors).map(|number| executor(number).to_string()).collect(),
        manifests: (0..executors).map(|number| Hash::new([number; 32])).collect(),
        selectors: (0..METHODS).map(|number| [number; 4]).collect(),
        tools: Vec::new(),
        royalty: Amount::ZERO,
        is_deterministic: true,
        nesting: 3,
        metadata_hash: Hash::ZERO,
        metadata_bytes: 65_536,
        registered_at: 1,
        tx: AT,
    }
}

fn answer() -> Answer {
    let usage = Usage { input_tokens: 1, output_tokens: 1, fuel: 0 };
    let hash = Hash::ZERO;
    Answer { outcome: Outcome::Success, result_hash: hash, usage, receipt_hash: hash }
}

/// A call whose first round is in this phase.
fn call(call_id: Hash, owner: Address, version: &str, status: CallStatus) -> Call {
    let group = status.is_decided().then(|| Group::Same(answer()));
    let usage = Usage { input_tokens: 1_000, output_tokens: 100, fuel: 0 };
    Call {
        call_id,
        agent_id: judge_of(owner),
        agent_version: version.to_owned(),
        owner,
        requester: key(1).address(),
        request: AT,
        created_at: 1,
        payload_hash: Hash::ZERO,
        conversation_id: None,
        consensus: Consensus::Majority,
        committee_size: SEATS,
        is_appealable: true,
        prices: Prices::default(),
        limits: CallLimits { usage, result_bytes: 1 << 20 },
        max_fee: Amount::new(1),
        timeout_ms: 10_000,
        on_result: Vec::new(),
        terms: CallTerms { min_bond: Amount::new(1), ..CallTerms::default() },
        status,
        deadline: None,
        rounds: vec![CallRound {
            size: SEATS,
            members: SEATS,
            committed: 0,
            revealed: 0,
            elected_in: 0,
            elected_at: 0,
            candidates_hash: Hash::ZERO,
            decided_at: None,
            group,
            agreeing: SEATS,
        }],
        appeal: None,
        bill: None,
        members_digest: Hash::ZERO,
    }
}

fn member(seat: u8) -> CallMember {
    CallMember {
        round: 0,
        seat,
        bond: BONDED,
        lock: Amount::ZERO,
        commitment: None,
        reveal: None,
        paid: Amount::ZERO,
        penalty: Amount::ZERO,
    }
}

/// Puts the market into a state: everything as large as it gets, the agent and a seat of the key 0.
pub(super) fn put(draft: &mut Draft, own: &Keypair) {
    let owner = own.address();
    for (name, executors) in [(WIDE, EXECUTORS), (NARROW, 1), ("0.0.2", EXECUTORS)] {
        let key = (judge_of(owner), name.to_owned());
        draft.put::<AgentVersions>(&key, &version(owner, name, executors));
    }
    draft.put::<Agents>(
        &judge_of(owner),
        &Agent {
            agent_id: judge_of(owner),
            owner,
            name: "judge".to_owned(),
            latest: WIDE.to_owned(),
            versions: 3,
            is_retired: false,
            registered_at: 1,
            changed_at: 1,
        },
    );
    for number in 0..MINERS {
        put_miner(draft, key(of_miner(number)).address(), 0..EXECUTORS);
    }
    put_miner(draft, owner, 100..100 + u8::try_from(OFFERS_PER_MINER_MAX).unwrap());
    put_calls(draft, own);
}

fn put_miner(draft: &mut Draft, miner: Address, executors: std::ops::Range<u8>) {
    let offer = Offer { capacity: 1, prices: Prices::default() };
    draft.put::<Bonds>(&miner, &Bond { bonded: BONDED, locked: Amount::ZERO });
    draft.put::<OfferCounts>(&miner, &u32::try_from(executors.len()).unwrap());
    for number in executors {
        draft.put::<Offers>(&(miner, executor(number)), &offer);
        draft.put::<OffersByExecutor>(&index_key(executor(number), BONDED, miner), &offer);
    }
}

fn put_calls(draft: &mut Draft, own: &Keypair) {
    let owner = own.address();
    let put = |draft: &mut Draft, call: &Call| draft.put::<Calls>(&call.call_id, call);
    put(draft, &call(DECIDED, owner, WIDE, CallStatus::Success));
    put(draft, &call(DECIDED_OF_ONE, owner, NARROW, CallStatus::Success));
    // Nobody has so large a bond.
    let unserved = call(UNSERVED, owner, WIDE, CallStatus::Success);
    let terms = CallTerms { min_bond: Amount::new(1 << 50), ..unserved.terms };
    put(draft, &Call { terms, ..unserved });
    put(draft, &call(COMMITTING, owner, WIDE, CallStatus::Committing));
    put(draft, &call(REVEALING, owner, WIDE, CallStatus::Revealing));
    for call_id in [DECIDED, DECIDED_OF_ONE, UNSERVED, COMMITTING, REVEALING] {
        for seat in 1..SEATS {
            let miner = key(of_miner(u64::from(seat))).address();
            draft.put::<CallMembers>(&(call_id, miner), &member(seat));
        }
    }
    draft.put::<CallMembers>(&(COMMITTING, owner), &member(0));
    let committed = commit(owner, &reveal(REVEALING, &[7; LONG])).commitment;
    let commitment = Some(types::call::Commitment { hash: committed, tx: AT });
    draft.put::<CallMembers>(&(REVEALING, owner), &CallMember { commitment, ..member(0) });
}

/// The transactions of the key 0.
pub(super) fn bodies(own: &Keypair) -> Vec<(&'static str, Body)> {
    let owner = own.address();
    let appeal = |call_id| Body::CallAppeal(CallAppeal { call_id });
    let long = reveal(REVEALING, &[7; LONG]);
    let unknown = AgentCall { payload: HexBytes(vec![0xff; LONG]), ..asked(owner) };
    let mut all = vec![
        ("bond of 64 offers", bond(1_000)),
        ("unbond of 64 offers", unbond(1_000)),
        ("offer beside 63 others", Body::MinerOffer(offer(executor(100), 1, [1; 4]))),
        ("call of 16 executors", Body::AgentCall(asked(owner))),
        ("call of no method, refused", Body::AgentCall(unknown)),
        ("commit", Body::CallCommit(commit(owner, &reveal(COMMITTING, &[7; LONG])))),
        ("reveal of 16 KiB", Body::CallReveal(long)),
        ("appeal, 1 executor", appeal(DECIDED_OF_ONE)),
        ("appeal, 16 executors", appeal(DECIDED)),
        ("appeal, nobody eligible, refused", appeal(UNSERVED)),
        ("retire", retire(judge_of(owner))),
    ];
    for (name, text) in [("register 64 methods", methods()), ("register a tuple", components())] {
        let agent_id = compute_agent_id(&owner, "a");
        all.push((name, Body::AgentRegister(AgentRegister { agent_id, metadata: text })));
    }
    all
}

/// A call of the agent with everything that it may have.
fn asked(owner: Address) -> AgentCall {
    let payment = |number: u8| OnResult {
        when: When::Result(Hash::new([number; 32])).to_string(),
        to: key(1).address().into(),
        amount: Amount::new(1),
    };
    AgentCall {
        call_id: compute_call_id(CHAIN, &owner, 0),
        payload: HexBytes(vec![63; LONG]),
        committee_size: SEATS.into(),
        max_fee: Amount::new(1 << 30),
        appealable: Some(true),
        on_result: Some((0..4).map(payment).collect()),
        ..fixtures::call(CHAIN, owner, 0, judge_of(owner))
    }
}

/// The metadata up to its methods.
const HEAD: &str =
    r#"{"name":"a","description":"b","container_image":"ipfs://c","version":"0.0.0","abi":["#;

/// 64 methods with as many inputs and outputs as fit.
fn methods() -> String {
    let parameters = vec![r#"{"name":"","type":"int"}"#; 18].join(",");
    let method = |at| {
        format!(
            r#"{{"type":"function","name":"m{at}","inputs":[{parameters}],"outputs":[{parameters}]}}"#
        )
    };
    let methods: Vec<String> = (0..METHODS).map(method).collect();
    format!("{HEAD}{}]}}", methods.join(","))
}

/// A method with one input that has as many components as fit, each with a name.
fn components() -> String {
    let tuple = r#"{"type":"function","name":"d","outputs":[],"inputs":[{"name":"","type":"tuple","components":["#;
    let component = |at| format!(r#"{{"name":"c{at}","type":"int"}}"#);
    let room = METADATA_BYTES_MAX - HEAD.len() - tuple.len() - 16;
    let names: Vec<String> = (0..room / component(9_999).len() - 200).map(component).collect();
    format!("{HEAD}{tuple}{}]}}]}}]}}", names.join(","))
}

/// What of the parameters the market needs.
pub(super) fn params(params: Params) -> Params {
    Params { slashable_models: types::params::Models::All, ..params }
}
