//! `kill -9` of a miner in every state of its journal: the next life brings the run to its end, with
//! each step once and no tool called twice that must not be.
//!
//! Nothing in the program helps: the model, the tools and the wire to the node are the test's, and hold
//! the miner up at the moment that is wanted.

mod market;
mod table;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, ensure};
use miner::journal::Journal;
use miner::journal::entry::{CallState, Phase, Purpose};
use serde::de::DeserializeOwned;
use serde_json::json;
use testkit::actor::{self, Actor};
use testkit::breakpoint::{Breakpoint, Marks};
use testkit::miners::{MinerHome, Requester, Wish, text};
use testkit::node::{DevOptions, Node, wait_until};
use testkit::parallel;
use testkit::script::{Model, Question, Reply, TOKENS};
use testkit::tool_server::ToolServer;
use testkit::wire::Wire;
use testkit::workload::key;
use types::tx::Protection;
use types::{Amount, Body, Hash};

use crate::support::dev;
use table::{BOND_CASES, CASES, Case, Chain, Moment};

/// More than a transaction has room for, and than an output that is not kept as a blob.
const ANSWER_BYTES: usize = 20_000;
/// What the run may cost.
const MAX_FEE: u64 = 100_000;
/// What the miner sends for the run when nothing goes wrong: a claim, three steps, five turns, three
/// transactions for each of three blobs, and the settlement.
const SENT: u64 = 1 + 3 + 5 + 9 + 1;
/// What the claim of a protected run locks, and for how long its reward is held.
const BOND: u64 = 110_000;
const REFUSE_MS: u64 = 600_000;

/// One miner with everything around it.
struct Stage {
    home: MinerHome,
    requester: Requester,
    wire: Wire,
    tools: ToolServer,
    held: Arc<Breakpoint>,
    /// Holds up the second call of [`Moment::CalledTwice`].
    again: Arc<Breakpoint>,
    /// How its run is protected.
    protection: Protection,
}

impl Stage {
    /// Account 2n asks and account 2n + 1 works, so that stages do not meet.
    fn new(number: usize, node: &Node, folder: &Path, moment: &Moment) -> anyhow::Result<Self> {
        let (marks, held) = (Arc::new(Marks::default()), Arc::new(Breakpoint::default()));
        let wire = Wire::to(node.rpc, Arc::clone(&marks))?;
        let again = Arc::default();
        let tools = tools(moment, &marks, [&held, &again])?;
        let model = model(moment, &marks, &held)?;
        let requester = Requester::new(2 * number, node.rpc)?;
        let settings = format!(
            "{}[engine]\nturns = true\npoll_ms = 500\npause_ms = 20\n\
             [policy]\nclaim_jitter_ms = 0\nrequesters_allow = [\"{}\"]\n{}",
            model.settings(""),
            requester.address(),
            tools.settings(),
        );
        let home = MinerHome::new(folder, 2 * number + 1, wire.address, &settings)?;
        let protection = Protection::default();
        Ok(Self { home, requester, wire, tools, held, again, protection })
    }

    /// What the miner sends for the run. On a chain with v7, which a bond needs, the thoughts are not worth
    /// a blob, which is three transactions.
    fn sent(&self) -> u64 {
        if self.protection.claim_bond.is_some() { SENT + 1 - 3 } else { SENT }
    }

    /// Asks for the run. No block of it is the newest when the miner starts, so that no notice of it
    /// comes between, because of which the miner looks at it.
    fn ask(&mut self) -> anyhow::Result<Hash> {
        let wish = Wish::new("Go on.", &["own__again", "own__once"]);
        let protection = self.protection.clone();
        let run = self.requester.ask(&Wish { max_fee: MAX_FEE, protection, ..wish })?;
        self.requester.send(&actor::transfer(self.home.address(), 1))?;
        Ok(run)
    }

    /// Starts the miner, waits until it is held up, and kills it there.
    fn kill_at(
        &self,
        moment: &Moment,
        run: &Hash,
        is_there: impl Fn() -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let on_the_wire = match moment {
            Moment::Wire(trap) => Some(self.wire.hold(trap.clone(), run)),
            Moment::Asked(_) | Moment::Called(_) | Moment::CalledTwice => None,
        };
        let mut miner = self.home.start()?;
        let gate = on_the_wire.as_deref().unwrap_or(&self.held);
        let held = gate.reached("the miner to be held up");
        let held = held.and_then(|()| wait_until("the chain to be as it must", is_there));
        held.map_err(|fault| self.home.explain(&fault))?;
        miner.kill()?;
        self.wire.mend();
        self.held.open();
        Ok(())
    }
}

/// The journal of a miner that does not run.
pub(crate) fn journal_of(miner: &MinerHome, node: &Node) -> anyhow::Result<Journal> {
    let chain = node.call("ombra_chainInfo", &json!([]))?;
    let path = miner.data().join(miner::program::JOURNAL);
    Ok(Journal::open(&path, miner.address(), &serde_json::from_value(chain)?)?)
}

/// The model: calls both tools; thinks and calls one; gives a long answer.
fn model(moment: &Moment, marks: &Arc<Marks>, held: &Arc<Breakpoint>) -> anyhow::Result<Model> {
    let holds_at = if let Moment::Asked(number) = moment { *number } else { 0 };
    let (marks, held) = (Arc::clone(marks), Arc::clone(held));
    Model::start(move |question: &Question| {
        let number = question.outputs + 1;
        if number == holds_at {
            held.pass();
        }
        marks.set("said", number);
        match number {
            1 => Reply::calls(
                &[("own__again", json!({ "n": 1 })), ("own__once", json!({ "n": 1 }))],
                &json!({ "content": "First these." }),
            ),
            2 => Reply::calls(
                &[("own__once", json!({ "n": 2 }))],
                &json!({ "reasoning_content": "And now?" }),
            ),
            _ => Reply::said(&"x".repeat(ANSWER_BYTES)),
        }
    })
}

fn tools(
    moment: &Moment,
    marks: &Arc<Marks>,
    [held, again]: [&Arc<Breakpoint>; 2],
) -> anyhow::Result<ToolServer> {
    let (holds_at, holds_again_at) = match moment {
        Moment::Called(number) => (*number, 0),
        Moment::CalledTwice => (1, 2),
        Moment::Wire(_) | Moment::Asked(_) => (0, 0),
    };
    let (marks, held, again) = (Arc::clone(marks), Arc::clone(held), Arc::clone(again));
    let count = Arc::new(AtomicUsize::new(0));
    ToolServer::start(move |tool, arguments| {
        let number = count.fetch_add(1, Ordering::SeqCst) + 1;
        if number == holds_at {
            held.pass();
        }
        if number == holds_again_at {
            again.pass();
        }
        marks.set("called", number);
        format!("{tool} {arguments}")
    })
}

/// The name that a value of an enumeration has in the journal.
fn name(value: &impl serde::Serialize) -> anyhow::Result<String> {
    let value = serde_json::to_value(value)?;
    let member = || value.as_object()?.keys().next().map(String::as_str);
    let name = value.as_str().or_else(member);
    Ok(name.with_context(|| format!("{value} has no name"))?.to_owned())
}

/// What the journal has of the only run, in the words of the table.
fn told(journal: &Journal, run: &Hash) -> anyhow::Result<String> {
    let entry = journal.entry(run)?.context("the run is in the journal")?;
    let mut told = vec![name(&entry.phase)?];
    if let Some(step) = journal.step(run, entry.steps)? {
        let calls = step.calls.iter().map(|call| name(&call.state));
        let calls = calls.collect::<anyhow::Result<Vec<_>>>()?;
        told.push(if calls.is_empty() { "no calls".into() } else { calls.join(" ") });
    }
    if !entry.turns.is_empty() {
        told.push(format!("{} turns", entry.turns.len()));
    }
    for parcel in journal.outbox()? {
        told.push(format!("signed {}", name(&parcel.purpose)?));
    }
    Ok(told.join(", "))
}

/// Kills a miner in this state, looks at its journal, and lets the next life go on.
fn check(mut stage: Stage, case: &Case, node: &Node) -> anyhow::Result<()> {
    let run = stage.ask()?;
    let is_there = || {
        let record = node.call("ombra_getAgentRun", &json!([run]))?;
        let (status, steps, sent) = match case.chain {
            Chain::Is(status, steps) => (status, steps, None),
            Chain::Has(status, steps, sent) => (status, steps, Some(sent)),
        };
        let is_so = text(&record, "status") == status && record["stepCount"] == json!(steps);
        let account = node.call("ombra_getAccount", &json!([stage.home.address()]))?;
        Ok(is_so && sent.is_none_or(|sent| account["nonce"] == json!(sent)))
    };
    stage.kill_at(&case.moment, &run, is_there)?;
    let journal = journal_of(&stage.home, node)?;
    let told = told(&journal, &run)?;
    ensure!(told == case.journal, "the journal has {told:?} and not {:?}", case.journal);
    let phase = journal.entry(&run)?.context("an entry")?.phase;
    drop(journal);
    let why = stage.home.told(&["why", &run.to_string()])?;
    ensure!(why["state"] == json!(phase.to_string()), "the program says {why}");

    let miner = stage.home.start()?;
    stage.requester.settled(&run).map_err(|fault| stage.home.explain(&fault))?;
    wait_until("the miner to have nothing left", || {
        let account = node.call("ombra_getAccount", &json!([stage.home.address()]))?;
        let is_over = stage.home.logged()?.matches(" over run=").count() > 0;
        Ok(is_over && account["nonce"] == account["pendingNonce"])
    })?;
    miner.stop()?;
    check_end(&stage, &run, node)?;
    check_calls(&stage, &run, case)
}

/// The run ended as if nothing had happened.
fn check_end(stage: &Stage, run: &Hash, node: &Node) -> anyhow::Result<()> {
    let record = node.call("ombra_getAgentRun", &json!([run]))?;
    ensure!(text(&record, "status") == "completed", "{record}");
    ensure!(text(&record, "minerReward") == (3 * TOKENS).to_string(), "{record}");
    let steps = stage.requester.steps(run)?;
    let counts: Vec<_> =
        steps.iter().map(|step| step["toolCalls"].as_array().map_or(0, Vec::len)).collect();
    ensure!(counts == [2, 1, 0], "calls of the steps: {counts:?}");
    let account = node.call("ombra_getAccount", &json!([stage.home.address()]))?;
    ensure!(account["nonce"] == stage.sent(), "it sent other things than it must: {account}");
    let journal = journal_of(&stage.home, node)?;
    ensure!(told(&journal, run)? == "over", "the journal has {:?}", told(&journal, run)?);
    drop(journal);
    stage.home.verify(&stage.home.tell(&["receipt", &run.to_string()])?)
}

/// A call that was under way is made again if it may be, and is reported as lost if not; no other is.
fn check_calls(stage: &Stage, run: &Hash, case: &Case) -> anyhow::Result<()> {
    let calls = stage.tools.calls();
    let count = |tool: &str, number: u64| {
        calls.iter().filter(|call| call.0 == tool && call.1["n"] == json!(number)).count()
    };
    for number in [1, 2] {
        let made = count("once", number);
        ensure!(made == 1, "the call {number} that must not be repeated was made {made} times");
    }
    let expected = 1 + usize::from(case.moment.is_call(1));
    let made = count("again", 1);
    ensure!(made == expected, "the call that may be repeated was made {made} times");
    let steps = stage.requester.steps(run)?;
    let calls = steps.iter().filter_map(|step| step["toolCalls"].as_array()).flatten();
    let lost: Vec<_> = calls.filter(|call| call["ok"] != json!(true)).collect();
    let expected = usize::from(case.moment.is_call(2));
    ensure!(lost.len() == expected, "calls that are reported as lost: {lost:?}");
    Ok(())
}

#[test]
fn a_miner_killed_in_any_state_of_its_journal_goes_on_where_it_was() -> anyhow::Result<()> {
    let accounts = 2 * CASES.len();
    let node = Node::start(DevOptions { accounts, ..DevOptions::from_environment() })?;
    let folder = tempfile::tempdir()?;
    let check = |number: usize, case: &Case| {
        check(Stage::new(number, &node, folder.path(), &case.moment)?, case, &node)
    };
    parallel::each(CASES, |case| case.name, check)
}

#[test]
fn a_call_in_which_the_miner_was_killed_twice_is_not_made_a_third_time() -> anyhow::Result<()> {
    let node = Node::start(DevOptions { accounts: 2, ..DevOptions::from_environment() })?;
    let folder = tempfile::tempdir()?;
    let mut stage = Stage::new(0, &node, folder.path(), &Moment::CalledTwice)?;
    let run = stage.ask()?;
    stage.kill_at(&Moment::CalledTwice, &run, || Ok(true))?;
    assert_eq!("working, begun wanted", told(&journal_of(&stage.home, &node)?, &run)?);

    let mut miner = stage.home.start()?;
    let repeated = stage.again.reached("the call to be made again");
    repeated.map_err(|fault| stage.home.explain(&fault))?;
    miner.kill()?;
    stage.again.open();
    assert_eq!("working, repeated wanted", told(&journal_of(&stage.home, &node)?, &run)?);

    let miner = stage.home.start()?;
    stage.requester.settled(&run).map_err(|fault| stage.home.explain(&fault))?;
    miner.stop()?;
    let made = stage.tools.calls().iter().filter(|call| call.0 == "again").count();
    assert_eq!(2, made);
    Ok(())
}

#[test]
fn a_miner_killed_around_the_bond_of_a_claim_bonds_once_and_goes_on() -> anyhow::Result<()> {
    let accounts = 2 * BOND_CASES.len();
    let node = Node::start(DevOptions { accounts, ..dev(&["--v7", "0"]) })?;
    let folder = tempfile::tempdir()?;
    let check = |number: usize, case: &Case| {
        let mut stage = Stage::new(number, &node, folder.path(), &case.moment)?;
        let claim_bond = Some(Amount::new(BOND));
        let refuse_ms = Some(REFUSE_MS);
        stage.protection = Protection { claim_bond, refuse_ms, ..Protection::default() };
        let miner = stage.home.address();
        check(stage, case, &node)?;
        // The reward is held, so what the claim has locked still is.
        let bond = node.call("ombra_getBond", &json!([miner]))?;
        let is_right =
            ["bonded", "locked"].iter().all(|part| text(&bond, part) == BOND.to_string());
        ensure!(is_right, "it bonded other things than it must: {bond}");
        Ok(())
    };
    parallel::each(BOND_CASES, |case| case.name, check)
}

#[test]
fn a_claim_that_was_overtaken_while_the_miner_was_dead_costs_nothing() -> anyhow::Result<()> {
    let node = Node::start(DevOptions { accounts: 3, ..DevOptions::from_environment() })?;
    let folder = tempfile::tempdir()?;
    let case = CASES.iter().find(|case| case.journal == "claim_signed, signed claim");
    let moment = &case.context("the claim is signed, and not sent")?.moment;
    let mut stage = Stage::new(0, &node, folder.path(), moment)?;
    let run = stage.ask()?;
    stage.kill_at(moment, &run, || Ok(true))?;

    let mut rival = Requester::new(2, node.rpc)?;
    let claim = Actor::new(key(2)?).claim(run);
    rival.send(&Body::AgentClaim(claim))?;
    rival.send(&actor::step(run, 0, 5))?;
    let before = node.call("ombra_getAccount", &json!([stage.home.address()]))?;
    let miner = stage.home.start()?;
    wait_until("the miner to know that it lost", || Ok(stage.home.logged()?.contains("refused")))?;
    rival.send(&Body::AgentFinish(actor::finish(run, 5, [5, MAX_FEE - 105, 100])))?;
    miner.stop()?;
    let after = node.call("ombra_getAccount", &json!([stage.home.address()]))?;
    assert_eq!(before["balance"], after["balance"]);
    // If time allows, the miner fills the nonce that the claim leaves free with a transfer of nothing. It
    // may have been stopped between signing and sending that.
    let told = told(&journal_of(&stage.home, &node)?, &run)?;
    assert!(["over", "over, signed filler"].contains(&told.as_str()), "{told}");
    Ok(())
}

/// The names that an enumeration of the journal knows, as its own reader tells.
fn names<T: DeserializeOwned + std::fmt::Debug>() -> BTreeSet<String> {
    let told = serde_json::from_str::<T>("\"no such name\"").unwrap_err().to_string();
    let (_, names) = told.split_once("expected one of ").expect("a list of names");
    let quoted = names.split('`').skip(1).step_by(2);
    quoted.map(str::to_owned).collect()
}

fn is_elsewhere(name: &str) -> bool {
    ELSEWHERE.contains(&name) || market::SIGNED.contains(&name)
}

/// What happens to no run of the table. A test of its own kills a miner in a repeated call. `operate::sweep` kills a miner around a sweep; a filler comes
/// only after a claim that was lost in a block: around that the tests of the crate `miner` kill it.
const ELSEWHERE: [&str; 3] = ["filler", "repeated", "sweep"];

#[test]
fn the_table_has_every_state_that_the_journal_knows() {
    let cases = CASES.iter().chain(BOND_CASES);
    let words = cases.flat_map(|case| case.journal.split([',', ' ']));
    let words: BTreeSet<_> = words.map(str::to_owned).collect();
    for (what, names) in [
        ("phases", names::<Phase>()),
        ("calls", names::<CallState>()),
        ("signed", names::<Purpose>()),
    ] {
        let missing: Vec<_> = names.difference(&words).filter(|name| !is_elsewhere(name)).collect();
        assert!(missing.is_empty(), "no miner is killed in these {what}: {missing:?}");
    }
}
