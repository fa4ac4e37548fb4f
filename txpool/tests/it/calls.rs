//! From v8 on: what comes before the phase of its call waits for it, and what waits for an agent is dropped
//! when it is retired.

use fixtures::{EXECUTOR, MANIFEST, judge, prices, register_judge, retire};
use txpool::{BlockLimits, Config};
use types::tx::{AgentCall, CallReveal, WorkLimits};
use types::{Amount, Body, CheckedTx, Code, Hash};

use crate::support::world::NOW;
use crate::support::{Wallet, World};

const MINERS: u8 = 3;

/// An owner with an agent, a requester, and miners who offer to execute it: as many as a call has members.
struct Market {
    world: World,
    owner: Wallet,
    requester: Wallet,
    miners: Vec<Wallet>,
}

fn market() -> Market {
    let (owner, requester) = (Wallet::new(90), Wallet::new(91));
    let miners: Vec<Wallet> = (1..=MINERS).map(Wallet::new).collect();
    let mut balances: Vec<(&Wallet, u64)> = miners.iter().map(|it| (it, 1_000_000)).collect();
    balances.extend([(&owner, 10_000_000), (&requester, 1_000_000)]);
    let world = World::v8(&balances);
    let mut txs = vec![owner.at(0).tx(&register_judge(owner.address(), judge(MANIFEST, "")))];
    txs.extend(miners.iter().flat_map(bond_and_offer));
    world.commit(&txs);
    Market { world, owner, requester, miners }
}

/// How a miner begins: half of its bond is enough for two calls.
fn bond_and_offer(miner: &Wallet) -> [CheckedTx; 2] {
    [miner.at(0).bond(400_000), miner.at(1).offer(&EXECUTOR.to_string(), 9)]
}

fn agent(owner: &Wallet) -> Hash {
    fixtures::judge_of(owner.address())
}

/// The miner commits to a yes.
fn commit(call_id: Hash, round: u64, miner: &Wallet) -> Body {
    let yes = CallReveal { round, ..fixtures::reveal(call_id, b"yes") };
    fixtures::commit(miner.address(), &yes).into()
}

fn reveal(call_id: Hash, result: &[u8]) -> Body {
    fixtures::reveal(call_id, result).into()
}

impl Market {
    /// A call of all miners.
    fn call(&self, nonce: u64) -> (Hash, CheckedTx) {
        let body = AgentCall {
            committee_size: MINERS.into(),
            prices: prices([0; 4]),
            limits: WorkLimits { input_tokens: 9, output_tokens: 9, fuel: 0, result_bytes: 3 },
            max_fee: Amount::new(600),
            ..fixtures::call("test", self.requester.address(), nonce, agent(&self.owner))
        };
        (body.call_id, self.requester.at(nonce).tx(&body.into()))
    }

    /// A call whose members are drawn: they may commit in the next block.
    fn elected(&self) -> Hash {
        let (id, tx) = self.call(0);
        self.world.commit(&[&tx]);
        self.world.commit_empty();
        id
    }

    /// Commitments of all miners to a yes.
    fn commits(&self, call_id: Hash) -> Vec<CheckedTx> {
        self.miners.iter().map(|it| it.at(2).tx(&commit(call_id, 0, it))).collect()
    }

    /// What retires the agent.
    fn retire(&self) -> CheckedTx {
        self.owner.at(1).tx(&retire(agent(&self.owner)))
    }
}

#[test]
fn a_reveal_waits_for_its_phase_and_is_executable_as_soon_as_that_begins() {
    let market = market();
    let (id, Market { world, miners, .. }) = (market.elected(), &market);
    let commits = market.commits(id);
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
    world.commit(&reveals);
    assert_eq!(0, world.pool.stats().senders);
    assert_eq!(0, world.pool.stats().rebuilds_total);
}

#[test]
fn only_what_a_member_has_committed_to_waits_for_the_phase() {
    let market = market();
    let (id, Market { world, miners, requester, .. }) = (market.elected(), &market);
    let [first, second] = [&miners[0], &miners[1]];
    let unfounded = first.at(2).tx(&reveal(id, b"yes"));
    assert_eq!(Code::CallPhase, world.rejection(&unfounded), "no commitment");
    let commits = market.commits(id);
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
    let (commits, held) = (market.commits(id), miner.at(3).tx(&reveal(id, b"yes")));
    world.pending(&commits[..1]);
    world.queued(&[&held]);
    let second = miner.at(3).time(7);
    assert_eq!(Code::NonceTaken, world.rejection(&second.tx(&reveal(id, b"yes"))));
    assert_eq!(Code::NonceTaken, world.rejection(&second.transfer(requester, 1)));
    let after = miner.at(4).transfer(requester, 1);
    world.queued(&[&after]);
    assert_eq!(5, world.account(miner).nonce);
    world.commit(&commits[..1]);
    assert!(world.is_queued(&held) && world.is_queued(&after));
    world.commit(&commits[1..]);
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
    let early = market.commits(id);
    world.queued(&early);
    world.commit_empty();
    assert!(early.iter().all(|it| world.is_pending(it)), "all are members");
    // One more miner makes one of four that is not drawn.
    let late = Wallet::new(60);
    let mut block = vec![requester.at(1).transfer(&late, 500_000)];
    block.extend(bond_and_offer(&late));
    let (next, call) = market.call(2);
    block.push(call);
    world.commit(&block.iter().chain(&early).collect::<Vec<_>>());
    let mut early: Vec<_> = miners.iter().map(|it| it.at(3).tx(&commit(next, 0, it))).collect();
    early.push(late.at(2).tx(&commit(next, 0, &late)));
    world.queued(&early);
    world.commit_empty();
    assert_eq!(3, early.iter().filter(|it| world.is_pending(it)).count());
    let lost = early.iter().find(|it| !world.is_pending(it)).unwrap();
    assert_eq!(Some(Code::NotMember), world.drop_code(lost));
}

#[test]
fn what_waits_for_its_phase_is_tried_again_when_the_chain_has_moved() {
    let market = market();
    let (id, Market { world, miners, .. }) = (market.elected(), &market);
    let commits = market.commits(id);
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
    let (miner, commits) = (&miners[0], market.commits(id));
    world.commit(&commits[..1]);
    // The block takes the nonce of one that waits, so everything is executed again.
    let waiting = requester.each(1..9, |it| it.turn(None));
    world.pending(&waiting);
    let held = miner.at(3).tx(&reveal(id, b"yes"));
    world.queued(&[&held]);
    world.commit(&[&requester.at(1).transfer(miner, 1)]);
    assert!(world.is_queued(&held));
    world.commit(&commits[1..]);
    assert!(world.is_pending(&held));
}

#[test]
fn calls_that_wait_are_dropped_when_their_agent_is_retired_and_nothing_else_is_executed_again() {
    let market = market();
    let Market { world, owner, requester, miners } = &market;
    let (_, call) = market.call(0);
    let after = requester.at(1).transfer(owner, 1);
    let others = miners[0].each(2..22, |it| it.turn(None));
    world.pending(&[&call, &after]);
    world.pending(&others);
    let admits = world.admits();
    world.commit(&[&market.retire(), &others[0]]);
    assert_eq!(Some(Code::AgentRetired), world.drop_code(&call));
    assert!(world.is_queued(&after), "its nonce is not there yet");
    assert_eq!(0, world.pool.stats().rebuilds_total);
    assert!(world.admits() <= admits + 4, "{} more", world.admits() - admits);
    world.pending(&[&requester.at(0).transfer(owner, 1)]);
}

#[test]
fn requests_for_runs_of_a_retired_agent_are_dropped_as_its_calls_are() {
    let market = market();
    let Market { world, owner, requester, miners } = &market;
    let request = requester.at(0).request_of_agent(agent(owner));
    let other = miners[0].at(2).request();
    world.pending(&[&request, &other]);
    world.commit(&[&market.retire()]);
    assert_eq!(Some(Code::AgentRetired), world.drop_code(&request));
    assert!(world.is_pending(&other));
}

#[test]
fn before_v8_a_long_name_of_a_tool_waits_for_nothing_and_is_nobody_s_fault() {
    let rich = Wallet::new(1);
    let world = World::v7_from(0, Config::default(), &[(&rich, 10_000_000)]);
    for nonce in [0, 1] {
        let request = rich.at(nonce).request_with_tool(&"t".repeat(65));
        let rejection = world.submit(&request).unwrap_err();
        assert_eq!(Code::InvalidField, rejection.code(), "nonce {nonce}");
        assert!(!rejection.is_peer_fault(), "who passes it on may be ahead: nonce {nonce}");
    }
    world.queued(&[&rich.at(1).request_with_tool(&"t".repeat(64))]);
    let market = market();
    market.world.queued(&[&market.requester.at(1).request_with_tool(&"t".repeat(192))]);
}

#[test]
fn commits_and_reveals_come_into_a_block_that_others_would_fill_with_tips() {
    let market = market();
    let (world, id) = (&market.world, market.elected());
    let is_in_block = |report: &CheckedTx| {
        let block = world.pool.candidates(BlockLimits { bytes: 1_000_000, count: 10 });
        assert_eq!(10, block.len());
        block.contains(report)
    };
    world.pending(&market.requester.each(1..21, |it| it.tip(50).transfer(&market.owner, 1)));
    let commits = market.commits(id);
    world.pending(&[&commits[0]]);
    assert!(is_in_block(&commits[0]), "the commit is left out");
    world.pending(&[&commits[1], &commits[2]]);
    world.commit(&commits);
    let yes = market.miners[0].at(3).tx(&reveal(id, b"yes"));
    world.pending(&[&yes]);
    assert!(is_in_block(&yes), "the reveal is left out");
}
