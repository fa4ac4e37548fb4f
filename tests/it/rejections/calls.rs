//! What is refused of calls to agents, from fork v8 on: before their members answer, while they do, and
//! after.

use fixtures::{MANIFEST, appeal, judge, judge_of, reveal};
use serde_json::json;
use testkit::actor::Actor;
use testkit::node::wait_until;
use types::ids::compute_result_hash;
use types::params::Models;
use types::tx::{AgentCall, CallCommit, CallReveal, HexBytes, OnResult, WorkLimits};
use types::{Amount, Body, Code, Hash, Params};

use super::appeals::OPEN;
use super::case::{Case, MARKET, begins, case, market_case};
use super::fork::quick;
use super::scene::Scene;
use crate::support::market;

pub(super) const CODES: &[Code] = &[
    Code::ChainIdMismatch,
    Code::InvalidField,
    Code::AgentNotFound,
    Code::CallIdMismatch,
    Code::SelectorUnknown,
    Code::CallLimits,
    Code::MaxFeeTooLow,
    Code::CallNotFound,
    Code::NotMember,
    Code::CallPhase,
    Code::CommitExists,
    Code::RevealExists,
    Code::RevealMismatch,
    Code::AppealClosed,
];

/// Three members of 1,000 each, and `revealFee` for each.
const LEAST_FEE: u64 = 3_600;
/// What two false members of three lose: as much as conditional payments may be.
const STAKES: u64 = 2_000_000;

/// What the requester would ask of an agent with its next nonce.
fn call(requester: &Actor, agent_id: Hash) -> AgentCall {
    let call = requester.call(MARKET, agent_id);
    let limits = WorkLimits { result_bytes: 3, ..call.limits };
    AgentCall { limits, max_fee: Amount::new(LEAST_FEE), ..call }
}

/// What `member` sends before it reveals `yes`.
fn commit_of(member: &Actor, call_id: Hash) -> CallCommit {
    let reveal = reveal(call_id, b"yes");
    let answer = reveal.answer().expect("an outcome that there is");
    assert_eq!(answer.result_hash, compute_result_hash(b"yes"));
    fixtures::commit(member.address(), &reveal)
}

fn commit(member: &Actor, call_id: Hash) -> Body {
    Body::CallCommit(commit_of(member, call_id))
}

struct People {
    owner: Actor,
    requester: Actor,
    members: [Actor; 3],
}

/// A call to which one member has committed, and one to which all have, and one has revealed.
struct Calls {
    committing: Hash,
    revealing: Hash,
}

#[test]
fn what_is_wrong_about_calls_is_told_and_changes_nothing() -> anyhow::Result<()> {
    // Nobody has to be quick.
    let params = Params { reveal_ms: 600_000, slashable_models: Models::All, ..quick() };
    let mut scene = Scene::of_market(params)?;
    let mut people = People {
        owner: scene.actor(0),
        requester: scene.actor(1),
        members: [2, 3, 4].map(|index| scene.actor(index)),
    };
    let calls = ask(&mut scene, &mut people)?;
    let mut cases = of_requesters(&people);
    cases.extend(of_members(&people, &calls));
    scene.refuse(CODES, &cases)
}

/// Publishes the agent, has three miners offer, and brings both calls as far as they should be.
fn ask(scene: &mut Scene, people: &mut People) -> anyhow::Result<Calls> {
    let People { owner, requester, members } = people;
    scene.include(&market(MARKET, (&mut *owner, judge(MANIFEST, "")), members))?;
    let [committing, revealing] = [(); 2].map(|()| {
        let body = call(requester, judge_of(owner.address()));
        (body.call_id, requester.sign_on(MARKET, &Body::AgentCall(body)))
    });
    scene.include(&[committing.1, revealing.1])?;
    let calls = Calls { committing: committing.0, revealing: revealing.0 };
    let height = |scene: &mut Scene| {
        let info = scene.call("ombra_chainInfo", &json!([]))?;
        anyhow::Ok(info["height"].as_u64().unwrap_or_default())
    };
    let asked = height(scene)?;
    // The members are drawn before the transactions of the next block.
    wait_until("the election", || Ok(height(scene)? > asked))?;
    let mut texts: Vec<String> =
        members.iter_mut().map(|it| it.sign_on(MARKET, &commit(it, calls.revealing))).collect();
    texts.push(members[0].sign_on(MARKET, &commit(&members[0], calls.committing)));
    scene.include(&texts)?;
    let shown = Body::CallReveal(reveal(calls.revealing, b"yes"));
    let text = members[0].sign_on(MARKET, &shown);
    scene.include(&[text])?;
    Ok(calls)
}

fn of_requesters(people: &People) -> Vec<Case> {
    let People { owner, requester, .. } = people;
    let asked = || call(requester, judge_of(owner.address()));
    let wrong = |code, body: AgentCall| market_case(code, requester, &Body::AgentCall(body));
    let limits = WorkLimits { input_tokens: 262_145, ..asked().limits };
    let longer = WorkLimits { result_bytes: 16_385, ..asked().limits };
    let payment = OnResult {
        when: "success".to_owned(),
        to: owner.address().into(),
        amount: Amount::new(STAKES + 1),
    };
    let conditional =
        AgentCall { appealable: Some(true), on_result: Some(vec![payment]), ..asked() };
    let derived = asked().call_id;
    vec![
        case(Code::ChainIdMismatch, requester, &Body::AgentCall(asked()))
            .says("chainId", "missing", MARKET),
        wrong(Code::InvalidField, AgentCall { committee_size: 2, ..asked() }).says(
            "committeeSize",
            2,
            begins(""),
        ),
        wrong(Code::AgentNotFound, call(requester, Hash::ZERO)).says(
            "agentId",
            Hash::ZERO,
            "the id of an agent",
        ),
        wrong(Code::AgentNotFound, AgentCall { agent_version: "2.0.0".to_owned(), ..asked() })
            .says("agentVersion", "2.0.0", "a version of the agent")
            .with("agentId", judge_of(owner.address()))
            .with("latest", "1.0.0"),
        wrong(Code::CallIdMismatch, AgentCall { call_id: Hash::ZERO, ..asked() }).says(
            "callId",
            Hash::ZERO,
            derived,
        ),
        wrong(Code::SelectorUnknown, AgentCall { payload: HexBytes(vec![1, 2, 3, 4]), ..asked() })
            .says("payload", "0x01020304", "to begin with one of 0x26121ff0"),
        wrong(Code::CallLimits, AgentCall { limits, ..asked() }).says(
            "limits.inputTokens",
            262_145,
            "at most 262144",
        ),
        wrong(Code::CallLimits, AgentCall { limits: longer, ..asked() }).says(
            "limits.resultBytes",
            16_385,
            "at most 16384",
        ),
        wrong(Code::CallLimits, conditional).says(
            "onResult",
            STAKES + 1,
            format!("at most {STAKES}"),
        ),
        wrong(Code::MaxFeeTooLow, AgentCall { max_fee: Amount::new(LEAST_FEE - 1), ..asked() })
            .says("maxFee", LEAST_FEE - 1, format!("at least {LEAST_FEE}"))
            .with("budget", 1_000),
    ]
}

fn of_members(people: &People, calls: &Calls) -> Vec<Case> {
    let People { requester, members: [first, second, _], .. } = people;
    let Calls { committing, revealing } = *calls;
    let shown = |call_id, result: &[u8]| Body::CallReveal(reveal(call_id, result));
    let differs = Body::CallReveal(CallReveal { salt: Hash::ZERO, ..reveal(revealing, b"yes") });
    vec![
        market_case(Code::CallNotFound, first, &commit(first, Hash::ZERO)).says(
            "callId",
            Hash::ZERO,
            "the id of a call",
        ),
        market_case(Code::NotMember, requester, &commit(requester, committing))
            .says("from", requester.address(), "a member of round 0")
            .with("callId", committing),
        market_case(Code::CallPhase, second, &commit(second, revealing))
            .says("status", "revealing", "committing")
            .with("callId", revealing),
        market_case(Code::CommitExists, first, &commit(first, committing))
            .says("commitment", commit_of(first, committing).commitment, "no commitment before")
            .with("callId", committing),
        market_case(Code::CallLimits, second, &shown(revealing, b"long"))
            .says("result", "4 bytes", "at most 3 bytes, the call's resultBytes")
            .with("callId", revealing),
        market_case(Code::RevealExists, first, &shown(revealing, b"yes"))
            .says("outcome", "success", "no reveal before")
            .with("callId", revealing),
        market_case(Code::AppealClosed, requester, &appeal(committing))
            .says("callId", "committing", OPEN)
            .with("callId", committing),
        market_case(Code::RevealMismatch, second, &differs)
            .says("commitment", begins(""), commit_of(second, revealing).commitment)
            .with("callId", revealing),
    ]
}
