//! From v8 on: what comes before the phase of its call waits for it, and what waits for an agent is dropped
//! when it is retired.

use txpool::{Config, TxStanding};
use types::call::{Answer, Outcome};
use types::ids::{
    Committer, compute_agent_id, compute_call_id, compute_commitment, compute_result_hash,
};
use types::tx::{
    AgentCall, AgentRegister, AgentRetire, CallCommit, CallPrices, CallReveal, HexBytes, MinerBond,
    MinerOffer, WorkLimits,
};
use types::{Amount, Body, CheckedTx, Code, Forks, Hash, Params, Usage};

use crate::support::ledger::{TestChain, params};
use crate::support::world::NOW;
use crate::support::{Wallet, World};

const MANIFEST: Hash = Hash::new([0xee; 32]);
const SALT: Hash = Hash::new([0x5a; 32]);
const MINERS: u8 = 3;

/// An owner with an agent, a requester, and miners who offer to execute it: as many as a call has members.
struct Market {
    world: World,
    owner: Wallet,
    requester: Wallet,
    miners: Vec<Wallet>,
}

fn market() -> Market {
    let (owner, requester, validator) = (Wallet::new(90), Wallet::new(91), Wallet::new(201));
    let miners: Vec<Wallet> = (1..=MINERS).map(Wallet::new).collect();
    let mut balances: Vec<(&Wallet, u64)> = miners.iter().map(|it| (it, 1_000_000)).collect();
    balances.extend([(&owner, 10_000_000), (&requester, 1_000_000)]);
    let params = Params { min_bond: Amount::new(5_000), ..params() };
    let forks = Forks { v7: Some(0), v8: Some(0), validator_vote: Some(0), ..Forks::default() };
    let chain = TestChain::with_forks(params, forks, &balances, &[(&validator, 1)]);
    let world = World::over(Config::default(), &chain);
    let mut txs = vec![owner.at(0).tx(&register(&owner))];
    for miner in &miners {
        let bond = Body::MinerBond(MinerBond { amount: Amount::new(300_000) });
        txs.extend([miner.at(0).tx(&bond), miner.at(1).tx(&offer())]);
    }
    world.commit(&txs.iter().collect::<Vec<_>>());
    Market { world, owner, requester, miners }
}

fn register(owner: &Wallet) -> Body {
    let metadata = format!(
        "{{\"name\":\"judge\",\"description\":\"d\",\"version\":\"1.0.0\",\
         \"container_image\":\"ombra-model:{MANIFEST}\",\
         \"executor\":{{\"kind\":\"model\",\"model\":\"{MANIFEST}\",\"basePrompt\":\"\",\
         \"tools\":[],\"maxIterations\":1,\"maxOutputTokens\":9}},\
         \"abi\":[{{\"type\":\"function\",\"name\":\"f\",\"inputs\":[],\"outputs\":[]}}]}}"
    );
    Body::AgentRegister(AgentRegister { agent_id: agent(owner), metadata })
}

fn agent(owner: &Wallet) -> Hash {
    compute_agent_id(&owner.address(), "judge")
}

fn offer() -> Body {
    Body::MinerOffer(MinerOffer {
        executor: format!("model-1:{MANIFEST}"),
        capacity: 9,
        per_call: Amount::ZERO,
        prompt_per_m: Amount::ZERO,
        completion_per_m: Amount::ZERO,
        fuel_per_g: Amount::ZERO,
    })
}

fn answer(result: &[u8]) -> Answer {
    Answer {
        outcome: Outcome::Success,
        result_hash: compute_result_hash(result),
        usage: Usage { input_tokens: 1, output_tokens: 1, fuel: 0 },
        receipt_hash: SALT,
    }
}

fn commit(call_id: Hash, round: u64, miner: &Wallet) -> Body {
    let by = Committer { call_id, round, member: miner.address() };
    let commitment = compute_commitment(&by, &SALT, &answer(b"yes"));
    Body::CallCommit(CallCommit { call_id, round, commitment })
}

fn reveal(call_id: Hash, result: &[u8]) -> Body {
    Body::CallReveal(CallReveal {
        call_id,
        round: 0,
        salt: SALT,
        outcome: "success".to_owned(),
        result: HexBytes(result.to_vec()),
        input_tokens: 1,
        output_tokens: 1,
        fuel: 0,
        receipt_hash: SALT,
        reason: None,
    })
}

impl Market {
    /// A call of all miners.
    fn call(&self, nonce: u64) -> (Hash, CheckedTx) {
        let free = CallPrices {
            per_call: Amount::ZERO,
            prompt_per_m: Amount::ZERO,
            completion_per_m: Amount::ZERO,
            fuel_per_g: Amount::ZERO,
        };
        let call_id = compute_call_id("test", &self.requester.address(), nonce);
        let body = Body::AgentCall(AgentCall {
            call_id,
            agent_id: agent(&self.owner),
            agent_version: "1.0.0".to_owned(),
            payload: HexBytes(vec![0x26, 0x12, 0x1f, 0xf0]),
            consensus: "majority".to_owned(),
            committee_size: MINERS.into(),
            prices: free,
            limits: WorkLimits { input_tokens: 9, output_tokens: 9, fuel: 0, result_bytes: 3 },
            max_fee: Amount::new(600),
            timeout_ms: 600_000,
            threshold: None,
            appealable: None,
            on_result: None,
            conversation_id: None,
        });
        (call_id, self.requester.at(nonce).tx(&body))
    }

    /// A call whose members are drawn: they may commit in the next block.
    fn elected(&self) -> Hash {
        let (id, tx) = self.call(0);
        self.world.commit(&[&tx]);
        self.world.commit(&[]);
        id
    }
}

#[test]
fn a_reveal_waits_for_its_phase_and_is_executable_as_soon_as_that_begins() {
    let market = market();
    let (id, Market { world, miners, .. }) = (market.elected(), &market);
    let commits: Vec<_> = miners.iter().map(|it| it.at(2).tx(&commit(id, 0, it))).collect();
    let reveals: Vec<_> = miners.iter().map(|it| it.at(3).tx(&reveal(id, b"yes"))).collect();
    for (commit, reveal) in commits.iter().zip(&reveals) {
        world.pending(&[commit]);
        world.queued(&[reveal]);
    }
    assert_eq!(3, world.pool.pending_count());
    world.commit(&[&commits[0], &commits[1]]);
    assert!(reveals.iter().all(|it| world.is_queued(it)), "one has not committed");
    world.commit(&[&commits[2]]);
    assert!(reveals.iter().all(|it| world.is_pending(it)));
    world.commit(&reveals.iter().collect::<Vec<_>>());
    assert_eq!(0, world.pool.stats().senders);
    assert_eq!(0, world.pool.stats().rebuilds_total);
}

#[test]
fn only_what_a_member_has_committed_to_waits_for_the_phase() {
    let market = market();
    let (id, Market { world, miners, requester, .. }) = (market.elected(), &market);
    let [first, second] = [&miners[0], &miners[1]];
    assert_eq!(
        Code::CallPhase,
        world.rejection(&first.at(2).tx(&reveal(id, b"yes"))),
        "no commitment"
    );
    let commits = [first, second].map(|it| it.at(2).tx(&commit(id, 0, it)));
    world.pending(&[&commits[0]]);
    assert_eq!(Code::CallPhase, world.rejection(&first.at(3).tx(&reveal(id, b"no"))));
    assert_eq!(Code::CallPhase, world.rejection(&first.at(3).tx(&reveal(id, b"much"))), "too long");
    assert_eq!(Code::NotMember, world.rejection(&requester.at(1).tx(&reveal(id, b"yes"))));
    world.pending(&[&commits[1]]);
    world.queued(&[&second.at(3).tx(&reveal(id, b"yes"))]);
    assert_eq!(Code::CallPhase, world.rejection(&first.at(3).time(7).tx(&reveal(id, b"no"))));
}

#[test]
fn one_waits_of_each_sender_and_what_comes_after_it_waits_with_it() {
    let market = market();
    let (id, Market { world, miners, requester, .. }) = (market.elected(), &market);
    let miner = &miners[0];
    let (committed, held) =
        (miner.at(2).tx(&commit(id, 0, miner)), miner.at(3).tx(&reveal(id, b"yes")));
    world.pending(&[&committed]);
    world.queued(&[&held]);
    let second = miner.at(3).time(7);
    assert_eq!(Code::NonceTaken, world.rejection(&second.tx(&reveal(id, b"yes"))));
    assert_eq!(Code::NonceTaken, world.rejection(&second.transfer(requester, 1)));
    let after = miner.at(4).transfer(requester, 1);
    world.queued(&[&after]);
    assert_eq!(5, world.account(miner).nonce);
    world.commit(&[&committed]);
    assert!(world.is_queued(&held) && world.is_queued(&after));
    let others: Vec<_> = miners[1..].iter().map(|it| it.at(2).tx(&commit(id, 0, it))).collect();
    world.commit(&others.iter().collect::<Vec<_>>());
    assert!(world.is_pending(&held) && world.is_pending(&after));
}

#[test]
fn a_commitment_waits_for_the_draw_and_is_dropped_if_its_miner_is_not_drawn() {
    let market = market();
    let Market { world, miners, requester, owner } = &market;
    let (id, call) = market.call(0);
    world.commit(&[&call]);
    assert_eq!(Code::NotMember, world.rejection(&requester.at(1).tx(&commit(id, 0, requester))));
    assert_eq!(Code::NotMember, world.rejection(&owner.at(1).tx(&commit(id, 0, owner))), "no bond");
    assert_eq!(Code::NotMember, world.rejection(&miners[0].at(2).tx(&commit(id, 1, &miners[0]))));
    let early: Vec<_> = miners.iter().map(|it| it.at(2).tx(&commit(id, 0, it))).collect();
    world.queued(&early.iter().collect::<Vec<_>>());
    world.commit(&[]);
    assert!(early.iter().all(|it| world.is_pending(it)), "all are members");
    // One more miner makes one of four that is not drawn.
    let late = Wallet::new(60);
    let mut block = vec![requester.at(1).transfer(&late, 400_000)];
    block.push(late.at(0).tx(&Body::MinerBond(MinerBond { amount: Amount::new(300_000) })));
    block.push(late.at(1).tx(&offer()));
    let (next, call) = market.call(2);
    block.push(call);
    world.commit(&block.iter().chain(&early).collect::<Vec<_>>());
    let mut early: Vec<_> = miners.iter().map(|it| it.at(3).tx(&commit(next, 0, it))).collect();
    early.push(late.at(2).tx(&commit(next, 0, &late)));
    world.queued(&early.iter().collect::<Vec<_>>());
    world.commit(&[]);
    assert_eq!(3, early.iter().filter(|it| world.is_pending(it)).count());
    let lost = early.iter().find(|it| !world.is_pending(it)).unwrap();
    assert_eq!(Some(Code::NotMember), world.drop_code(lost));
}

#[test]
fn what_waits_for_its_phase_is_tried_again_when_the_chain_has_moved() {
    let market = market();
    let (id, Market { world, miners, .. }) = (market.elected(), &market);
    let commits: Vec<_> = miners.iter().map(|it| it.at(2).tx(&commit(id, 0, it))).collect();
    let held = miners[0].at(3).tx(&reveal(id, b"yes"));
    world.pending(&[&commits[0]]);
    world.queued(&[&held]);
    let mut block = world.chain.begin();
    for commit in &commits {
        block.push(commit).unwrap();
    }
    world.chain.append(block);
    world.pool.chain_moved(NOW).unwrap();
    assert!(world.is_pending(&held));
}

#[test]
fn an_early_reveal_behind_what_is_executed_again_waits_all_the_same() {
    let market = market();
    let (id, Market { world, miners, requester, .. }) = (market.elected(), &market);
    let miner = &miners[0];
    let committed = miner.at(2).tx(&commit(id, 0, miner));
    world.commit(&[&committed]);
    // The block takes the nonce of one that waits, so everything is executed again.
    let waiting: Vec<_> = (1..9).map(|nonce| requester.at(nonce).turn(None)).collect();
    world.pending(&waiting.iter().collect::<Vec<_>>());
    let held = miner.at(3).tx(&reveal(id, b"yes"));
    world.queued(&[&held]);
    world.commit(&[&requester.at(1).transfer(miner, 1)]);
    assert!(world.is_queued(&held));
    let others: Vec<_> = miners[1..].iter().map(|it| it.at(2).tx(&commit(id, 0, it))).collect();
    world.commit(&others.iter().collect::<Vec<_>>());
    assert!(world.is_pending(&held));
}

#[test]
fn calls_that_wait_are_dropped_when_their_agent_is_retired_and_nothing_else_is_executed_again() {
    let market = market();
    let Market { world, owner, requester, miners } = &market;
    let (_, call) = market.call(0);
    let after = requester.at(1).transfer(owner, 1);
    let others: Vec<_> = (2..22).map(|nonce| miners[0].at(nonce).turn(None)).collect();
    world.pending(&[&call, &after]);
    world.pending(&others.iter().collect::<Vec<_>>());
    let admits = world.admits();
    let retire = Body::AgentRetire(AgentRetire { agent_id: agent(owner) });
    world.commit(&[&owner.at(1).tx(&retire), &others[0]]);
    assert_eq!(Some(Code::AgentRetired), world.drop_code(&call));
    assert!(world.is_queued(&after), "its nonce is not there yet");
    assert_eq!(0, world.pool.stats().rebuilds_total);
    assert!(world.admits() <= admits + 4, "{} more", world.admits() - admits);
    world.accept(TxStanding::Pending, &[&requester.at(0).transfer(owner, 1)]);
}

#[test]
fn requests_for_runs_of_a_retired_agent_are_dropped_as_its_calls_are() {
    let market = market();
    let Market { world, owner, requester, miners } = &market;
    let request = requester.at(0).request_of_agent(agent(owner));
    let other = miners[0].at(2).request();
    world.pending(&[&request, &other]);
    let retire = Body::AgentRetire(AgentRetire { agent_id: agent(owner) });
    world.commit(&[&owner.at(1).tx(&retire)]);
    assert_eq!(Some(Code::AgentRetired), world.drop_code(&request));
    assert!(world.is_pending(&other));
}

#[test]
fn before_v8_a_long_name_of_a_tool_waits_for_nothing_and_is_nobody_s_fault() {
    let (rich, validator) = (Wallet::new(1), Wallet::new(201));
    let forks = Forks { v7: Some(0), validator_vote: Some(0), ..Forks::default() };
    let chain = TestChain::with_forks(params(), forks, &[(&rich, 10_000_000)], &[(&validator, 1)]);
    let world = World::over(Config::default(), &chain);
    for nonce in [0, 1] {
        let rejection =
            world.submit(&rich.at(nonce).request_with_tool(&"t".repeat(65))).unwrap_err();
        assert_eq!(Code::InvalidField, rejection.code(), "nonce {nonce}");
        assert!(!rejection.is_peer_fault(), "who passes it on may be ahead: nonce {nonce}");
    }
    world.accept(TxStanding::Queued, &[&rich.at(1).request_with_tool(&"t".repeat(64))]);
    let market = market();
    let request = market.requester.at(1).request_with_tool(&"t".repeat(192));
    market.world.accept(TxStanding::Queued, &[&request]);
}
