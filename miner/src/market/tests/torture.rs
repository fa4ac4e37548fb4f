//! A miner of the market that dies at every point of its work, and the one after it that goes on.
//!
//! It bonds, offers, and serves a call of three members, of whom two are the test's.

use std::path::Path;

use types::call::CallStatus;
use types::{Hash, Keypair};

use super::bench::{self, Bench, agent, helper, honest, me};
use crate::chain::fake::{FakeChain, State};
use crate::engine::tests::torture::{check_refused, die_or_do, dies_at_every_point, is_worker};
use crate::journal::call::{CallPhase, CallStanding};
use crate::testing::comes;

const TEXT: &str = "hello";

fn helpers() -> [Keypair; 2] {
    [20, 21].map(helper)
}

fn chain(folder: &Path) -> FakeChain {
    let chain = bench::chain();
    for helper in helpers() {
        chain.add_miner(&helper);
    }
    chain.with_file(&folder.join("chain"))
}

/// The only call, if there is one.
fn call_of(state: &State) -> Option<Hash> {
    state.calls().first().copied()
}

/// What others do: the requester asks once this miner offers, and the other members answer.
async fn others(bench: &Bench) {
    let chain = &bench.chain;
    chain.until(|state| state.offers(&me())).await;
    let call = call_of(&chain.state.lock());
    let call =
        call.unwrap_or_else(|| chain.add_call(agent(), TEXT, |call| call.committee_size = 3));
    let said = honest(call, TEXT);
    for member in helpers() {
        let view = chain.call_of(&call);
        let (_, me) = view.member(0, &member.address()).expect("all three are drawn");
        if me.commitment.is_none() {
            chain.act(&member, &bench::commit(call, &member, &said.answer));
        }
    }
    let may_reveal = |state: &State| {
        let view = state.call(&call).unwrap();
        view.status == CallStatus::Revealing || view.is_settled
    };
    chain.until(may_reveal).await;
    for member in helpers() {
        let view = chain.call_of(&call);
        let (_, me) = view.member(0, &member.address()).expect("all three are drawn");
        if me.revealed.is_none() {
            chain.act(&member, &bench::reveal(call, &said.answer, &said.result));
        }
    }
}

/// Works until the call is over.
fn work(folder: &Path, point: u64) {
    die_or_do(folder, point, async {
        let bench = Bench::at(folder, chain(folder));
        let over = async {
            others(&bench).await;
            let is_done = || {
                let calls = bench.journal.calls().unwrap();
                let is_over = !calls.is_empty() && calls.iter().all(|entry| entry.is_over());
                is_over && bench.journal.nonces().unwrap().is_empty()
            };
            assert!(comes(is_done).await);
        };
        bench.during(over).await;
    });
}

fn check(folder: &Path, deaths: &str) {
    let bench = Bench::at(folder, chain(folder));
    let expected = ["MINER_BOND", "MINER_OFFER", "CALL_COMMIT", "CALL_REVEAL"];
    assert_eq!(bench.sent(), expected, "{deaths}: each once, and in order");
    check_refused(folder, deaths);
    let call = call_of(&bench.chain.state.lock()).unwrap();
    let view = bench.chain.call_of(&call);
    assert_eq!(view.status, CallStatus::Success, "{deaths}");
    let (_, member) = view.member(0, &me()).unwrap();
    assert!(member.paid_micro > 0, "{deaths}");
    let entry = bench.entry(&call);
    let CallPhase::Over(outcome) = &entry.phase else { panic!("{deaths}: {entry:?}") };
    assert_eq!(outcome.standing, CallStanding::Agreed, "{deaths}");
    assert_eq!(member.revealed, entry.said.as_ref().map(|said| said.answer), "{deaths}");
    let served = bench.journal.served().unwrap();
    assert_eq!((served.elected, served.agreed), (1, 1), "{deaths}");
    assert_eq!(served.earned_micro, member.paid_micro, "{deaths}: the books");
    let receipts = bench.receipts().of_call(&call).unwrap();
    assert_eq!(receipts.len(), 1, "{deaths}");
}

#[test]
fn a_member_that_dies_at_any_point_commits_once_reveals_that_and_is_paid() {
    const NAME: &str = "market::tests::torture::\
                        a_member_that_dies_at_any_point_commits_once_reveals_that_and_is_paid";
    if !is_worker(work) {
        dies_at_every_point(NAME, 25, check);
    }
}
