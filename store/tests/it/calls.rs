//! Calls of agents in a database: listed by every condition, from memory while they are not settled, and by
//! who began with a snapshot, too.

use fixtures::{EXECUTOR, MANIFEST, PER_CALL, bond, judge, judge_of, offer, register_judge};
use state::Changes;
use state::tables::{Calls, CallsByStatus};
use state::view::{self, Range};
use store::tools::Replay;
use store::{CALL_ROWS_MAX, CallFilter, Snapshot};
use tempfile::TempDir;
use types::call::CallStatus::{Committing, Electing, Revealing, Success, Unassigned};
use types::call::{Call, CallStatus};
use types::tx::{AgentCall, WorkLimits};
use types::{Address, Amount, CheckedTx, Hash};

use crate::fixture::{CHAIN_ID, TestChain, Wallet, data};
use crate::market::{self, rules};
use crate::open_runs::{FEW, stepped_over};
use crate::peers::newcomer;
use crate::proofs::proved;
use crate::tools::{replay, verify};

/// The wallets: the owner of the agent, two requesters, and the miners.
const OWNER: usize = 0;
const REQUESTERS: [usize; 2] = [1, 2];
const MINERS: [usize; 3] = [3, 4, 5];
/// Calls that come and go.
const MANY: usize = 600;

fn agent(chain: &TestChain) -> Hash {
    judge_of(chain.wallets[OWNER].address())
}

/// A chain on which the agent is there, and three miners offer to run it.
fn with_agent() -> (TempDir, TestChain, Changes) {
    let (dir, mut chain, changes) = market::open(6);
    let owner = &mut chain.wallets[OWNER];
    let mut txs = vec![owner.tx(&register_judge(owner.address(), judge(MANIFEST, "")))];
    for at in MINERS {
        let miner = &mut chain.wallets[at];
        txs.push(miner.tx(&bond(10_000_000)));
        txs.push(miner.tx(&offer(EXECUTOR, 64, [PER_CALL, 0, 0, 0]).into()));
    }
    chain.block(&txs);
    (dir, chain, changes)
}

/// A call of so many members; of more than three there are too few.
fn ask(requester: &mut Wallet, agent_id: Hash, committee_size: u64) -> (CheckedTx, Hash) {
    let body = AgentCall {
        committee_size,
        limits: WorkLimits { input_tokens: 10, output_tokens: 10, fuel: 0, result_bytes: 9 },
        max_fee: Amount::new(30_000),
        ..fixtures::call(CHAIN_ID, requester.address(), requester.nonce, agent_id)
    };
    let call_id = body.call_id;
    (requester.tx(&body.into()), call_id)
}

/// All members commit, in one block.
fn commit(chain: &mut TestChain, call_id: Hash) {
    let reveal = fixtures::reveal(call_id, b"yes");
    let txs: Vec<CheckedTx> = MINERS
        .map(|at| {
            let miner = &mut chain.wallets[at];
            miner.tx(&fixtures::commit(miner.address(), &reveal).into())
        })
        .into();
    chain.block(&txs);
}

/// All members show the same.
fn show(chain: &mut TestChain, call_id: Hash) {
    let shown = fixtures::reveal(call_id, b"yes").into();
    let txs: Vec<CheckedTx> = MINERS.map(|at| chain.wallets[at].tx(&shown)).into();
    chain.block(&txs);
}

/// A chain with a call in every status but those of silence: two that succeeded, two that nobody was drawn
/// for, one whose members reveal, one whose members commit, one that waits.
fn busy() -> (TempDir, TestChain, Changes) {
    let (dir, mut chain, changes) = with_agent();
    let agent_id = agent(&chain);
    for at in REQUESTERS {
        let (asked, call_id) = ask(&mut chain.wallets[at], agent_id, 3);
        let (too_many, _) = ask(&mut chain.wallets[at], agent_id, 5);
        chain.block(&[asked, too_many]);
        chain.block(&[]);
        commit(&mut chain, call_id);
        show(&mut chain, call_id);
    }
    let (asked, revealing) = ask(&mut chain.wallets[REQUESTERS[0]], agent_id, 3);
    let (also, _) = ask(&mut chain.wallets[REQUESTERS[1]], agent_id, 3);
    chain.block(&[asked, also]);
    chain.block(&[]);
    commit(&mut chain, revealing);
    let (asked, _) = ask(&mut chain.wallets[REQUESTERS[0]], agent_id, 3);
    chain.block(&[asked]);
    (dir, chain, changes)
}

/// Every call, the newest first.
fn all(snapshot: &Snapshot<'_>) -> Vec<Call> {
    let rows = view::scan::<Calls>(snapshot, Range { from: &[], to: None, limit: usize::MAX });
    let mut calls: Vec<Call> = rows.unwrap().into_iter().map(|(_, call)| call).collect();
    calls.sort_by_key(|call| std::cmp::Reverse(call.request));
    calls
}

/// Calls as they are listed, page after page.
fn listed(snapshot: &Snapshot<'_>, filter: CallFilter, limit: usize) -> Vec<Hash> {
    let (mut ids, mut before) = (Vec::new(), None);
    loop {
        let page = snapshot.calls(&filter, before, limit).unwrap();
        ids.extend(page.calls.iter().map(|call| call.call_id));
        before = page.next;
        if before.is_none() {
            return ids;
        }
    }
}

fn is_member(snapshot: &Snapshot<'_>, call: &Call, member: Address) -> bool {
    let detail = snapshot.call_detail(&call.call_id).unwrap().unwrap();
    detail.members.iter().any(|(address, _)| *address == member)
}

/// Every combination of conditions.
fn filters(wallets: &[Wallet], agent_id: Hash) -> Vec<CallFilter> {
    let some = |at: usize| Some(wallets[at].address());
    let requesters = [None, some(OWNER), some(REQUESTERS[0]), some(REQUESTERS[1])];
    let members = [None, some(MINERS[0]), some(REQUESTERS[0])];
    let agents = [None, Some(agent_id), Some(Hash::ZERO)];
    let statuses = [None].into_iter().chain(CallStatus::ALL.map(Some));
    let filters = statuses.map(|status| CallFilter { status, ..CallFilter::default() });
    let filters = filters.flat_map(|it| requesters.map(|requester| CallFilter { requester, ..it }));
    let filters = filters.flat_map(|it| members.map(|member| CallFilter { member, ..it }));
    filters.flat_map(|it| agents.map(|agent_id| CallFilter { agent_id, ..it })).collect()
}

/// Every combination of conditions finds what it should.
fn lists_what_is_there(snapshot: &Snapshot<'_>, wallets: &[Wallet], agent_id: Hash) {
    let calls = all(snapshot);
    for filter in filters(wallets, agent_id) {
        let CallFilter { agent_id, requester, member, status } = filter;
        let fits = |call: &&Call| {
            agent_id.is_none_or(|id| call.agent_id == id)
                && requester.is_none_or(|it| call.requester == it)
                && status.is_none_or(|it| call.status == it)
                && member.is_none_or(|it| is_member(snapshot, call, it))
        };
        let ids: Vec<Hash> = calls.iter().filter(fits).map(|it| it.call_id).collect();
        assert_eq!(listed(snapshot, filter, 2), ids, "{filter:?}");
    }
}

#[test]
fn calls_are_listed_by_every_condition() {
    let (dir, chain, _) = busy();
    let snapshot = chain.store.snapshot();
    let mut statuses: Vec<CallStatus> = all(&snapshot).iter().map(|call| call.status).collect();
    statuses.sort_unstable();
    let expected = [Electing, Committing, Revealing, Success, Success, Unassigned, Unassigned];
    assert_eq!(statuses, expected);
    lists_what_is_there(&snapshot, &chain.wallets, agent(&chain));
    drop(snapshot);
    // From a database that is opened again, too.
    let chain = chain.reopened(&data(&dir));
    lists_what_is_there(&chain.store.snapshot(), &chain.wallets, agent(&chain));
}

#[test]
fn who_begins_with_a_snapshot_lists_the_same_calls() {
    let (dir, chain, changes) = busy();
    let replay = Replay { chain: rules(), ..replay(&changes) };
    let new = newcomer(&chain, &replay, dir.path());
    lists_what_is_there(&new.store.snapshot(), &chain.wallets, agent(&chain));
    verify(&chain.store, dir.path(), &replay).unwrap();
}

#[test]
fn a_call_is_proved() {
    let (_dir, chain, _) = busy();
    chain.block(&[]);
    let id = all(&chain.store.snapshot())[0].call_id;
    assert!(proved::<Calls>(&chain, &id).value.is_some());
}

#[test]
fn a_list_of_calls_steps_over_none_that_came_and_went() {
    let (_dir, mut chain, _) = with_agent();
    let (agent_id, requester) = (agent(&chain), REQUESTERS[0]);
    let asked: Vec<CheckedTx> =
        (0..MANY).map(|_| ask(&mut chain.wallets[requester], agent_id, 5).0).collect();
    for some in asked.chunks(200) {
        chain.block(some);
    }
    chain.empty_blocks(2);
    let (last, call_id) = ask(&mut chain.wallets[requester], agent_id, 3);
    chain.block(&[last]);
    let snapshot = chain.store.snapshot();
    let electing = CallsByStatus::open(Electing);
    let range = Range { from: &[electing], to: Some(&[electing + 1]), limit: usize::MAX };
    let (rows, deleted) = stepped_over(|| view::scan::<CallsByStatus>(&snapshot, range).unwrap());
    assert_eq!((rows.len(), deleted > FEW), (1, true), "this counts work");
    let status = Some(Electing);
    for requester in [None, Some(chain.wallets[requester].address())] {
        let filter = CallFilter { status, requester, ..CallFilter::default() };
        let (page, deleted) = stepped_over(|| snapshot.calls(&filter, None, 30).unwrap());
        let ids: Vec<Hash> = page.calls.iter().map(|call| call.call_id).collect();
        assert_eq!((ids.as_slice(), page.next), ([call_id].as_slice(), None));
        assert!(deleted <= FEW, "{deleted} rows");
    }
    let filter =
        CallFilter { status: Some(Success), agent_id: Some(agent_id), ..CallFilter::default() };
    let page = snapshot.calls(&filter, None, 30).unwrap();
    assert_eq!((page.calls.len(), page.next), (0, None), "no list has both");
    let whole = snapshot.calls(&CallFilter::default(), None, 500).unwrap();
    assert!(whole.calls.len() <= CALL_ROWS_MAX && whole.next.is_some(), "a page is bounded");
}
