//! What must hold when all calls are settled.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::client;
use testkit::miners::{MinerHome, micro};
use testkit::node::wait_until;
use testkit::senders::Senders;
use testkit::suite::say;
use types::Address;

use super::calls::{Calls, Settled, is_answer, is_decided, member_of};
use super::commitments::{Commitments, PoolWatch};
use super::copier::Copied;
use super::question::{Asked, Expected, QUESTIONS};
use super::stage::{
    ABSENT, ACCOUNTS, COPIER, FUNDS, HONEST, KILLED, Stage, WRONG, address, model_executor,
};

/// More calls than there are.
const LIMIT: &str = "1000000";

/// Checks everything; answers what was there.
pub(super) fn check(
    stage: &Stage,
    course: &mut Calls<'_>,
    copied: &Copied,
    pool: &PoolWatch,
) -> anyhow::Result<String> {
    let calls = course.settled.len();
    say("every call is settled");
    answers(stage, course)?;
    for account in HONEST.chain([WRONG, KILLED]) {
        let home = stage.home(account)?;
        journal(home, &course.settled)
            .with_context(|| format!("the books of the miner of account {account}"))?;
    }
    say("the journals of the eight processes have what the chain has, to the micro");
    once(stage, &course.settled, &pool.commitments()?)?;
    say("the killed miner never had two commitments for one call");
    if stage.model.is_some() {
        is_paused(stage.home(WRONG)?)?;
        say("the wrong miner has the alarm, and does not offer the model any more");
    }
    lost(&course.settled, copied)?;
    say("the copier and the absent miner earned nothing and lost bond");
    money(&mut course.senders, &course.settled)?;
    say("no money is in escrow, none is lost, and everybody has what is theirs");
    let undecided = course.undecided;
    Ok(format!(
        "{calls} calls, {undecided} of them without enough sound members and asked again; {} \
         commitments were copied and {} of their reveals refused",
        copied.commitments, copied.refused
    ))
}

/// Every decided call has the right answer, and every other one had too few sound members.
fn answers(stage: &Stage, course: &mut Calls<'_>) -> anyhow::Result<()> {
    let honest = HONEST.map(address).collect::<anyhow::Result<BTreeSet<_>>>()?;
    let mut right: BTreeMap<usize, Value> = BTreeMap::new();
    let mut verified = 0;
    for Settled { question, record } in &course.settled {
        let of_honest: Vec<&Value> =
            honest.iter().filter_map(|member| member_of(record, member)).collect();
        let size = record["committeeSize"].as_u64().context("a size")?;
        let answered = of_honest.iter().filter(|it| is_answer(it)).count();
        if !is_decided(record) {
            let is_enough = u64::try_from(answered)? > size / 2;
            ensure!(!is_enough, "{answered} honest members of {size} decide nothing: {record}");
            continue;
        }
        let differ = of_honest.iter().find(|it| is_answer(it) && it["agreed"] != true);
        ensure!(differ.is_none(), "an honest member dissents: {record}");
        let place = QUESTIONS.iter().position(|it| it == question).context("a question")?;
        let answer = &record["answer"];
        if let Some(known) = right.get(&place) {
            ensure!(known == answer, "a call has another answer than one before: {record}");
            continue;
        }
        let outcome = if question.expected == Expected::Failure { "failed" } else { "success" };
        ensure!(record["status"] == outcome, "{outcome} was expected: {record}");
        if let Expected::Says(label) = question.expected {
            let said = question.decode(stage, &mut course.senders, &answer["result"])?;
            ensure!(said == label, "{said} and not {label}: {record}");
        }
        verify(stage, record)?;
        verified += 1;
        right.insert(place, answer.clone());
    }
    say(&format!(
        "every decision is right: {verified} questions were executed here once more, and all calls with \
         the same question have the same answer"
    ));
    let askable = QUESTIONS.iter().filter(|it| it.asked == Asked::Program || stage.model.is_some());
    ensure!(verified == askable.count() && verified >= 5, "only {verified} questions were asked");
    Ok(())
}

/// `ombra verify` does the work once more and finds the same.
fn verify(stage: &Stage, record: &Value) -> anyhow::Result<()> {
    let id = record["callId"].as_str().context("an id")?;
    let mut arguments = vec!["verify", id, "--json"];
    let model = stage.model.as_ref().map(|path| path.display().to_string());
    if let Some(model) = &model {
        arguments.extend(["--model", model]);
    }
    let told: Value = serde_json::from_str(&client::told(stage.rpc(), &arguments)?)?;
    ensure!(told["follows"] == true, "not verified: {told}");
    Ok(())
}

/// What a member got and lost by the chain's records, and how often it stood how.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Sums {
    earned: u64,
    lost: u64,
    penalised: u64,
    standings: BTreeMap<&'static str, u64>,
}

impl Sums {
    fn of(settled: &[Settled], who: &Address) -> anyhow::Result<Self> {
        let mut sums = Self::default();
        settled
            .iter()
            .filter_map(|it| member_of(&it.record, who))
            .try_for_each(|it| sums.add(it))?;
        Ok(sums)
    }

    fn add(&mut self, member: &Value) -> anyhow::Result<()> {
        let (paid, penalty) = (micro(member, "paid")?, micro(member, "penalty")?);
        self.earned += paid;
        self.lost += penalty;
        self.penalised += u64::from(penalty > 0);
        *self.standings.entry(standing(member)).or_default() += 1;
        Ok(())
    }
}

/// How a member stands, as the journal's words have it.
fn standing(member: &Value) -> &'static str {
    match (&member["commitment"], &member["reveal"], &member["agreed"]) {
        (Value::Null, _, _) => "absent",
        (_, Value::Null, _) => "withheld",
        (_, reveal, _) if reveal["outcome"] == "unable" => "unable",
        (_, _, agreed) if agreed == true => "agreed",
        (_, _, agreed) if agreed == false => "dissented",
        (_, _, _) => "undecided",
    }
}

/// The journal of a miner has what the chain has. A miner that was dead from the beginning of a
/// call to its end does not know of it; it lost for its absence and got nothing.
fn journal(home: &MinerHome, settled: &[Settled]) -> anyhow::Result<()> {
    wait_until("its journal to close its calls", || {
        Ok(home.told(&["assignments", "--open"])? == json!([]))
    })?;
    let lines = home.told(&["assignments", "--limit", LIMIT])?;
    let lines = lines.as_array().context("a list of calls")?;
    let known: BTreeMap<&str, &Value> =
        lines.iter().filter_map(|line| Some((line["call"].as_str()?, line))).collect();
    let mut sums = Sums::default();
    for Settled { record, .. } in settled {
        let Some(member) = member_of(record, &home.address()) else { continue };
        let id = record["callId"].as_str().context("an id")?;
        let Some(line) = known.get(id) else {
            let is_absent = standing(member) == "absent" && micro(member, "paid")? == 0;
            let may_miss = home.account() == KILLED && is_absent;
            ensure!(may_miss, "the journal does not know the call {id}: {member}");
            continue;
        };
        sums.add(member)?;
        let (paid, penalty) = (&line["paid_micro"], &line["penalty_micro"]);
        let is_same = *paid == micro(member, "paid")? && *penalty == micro(member, "penalty")?;
        ensure!(is_same, "the journal has {line}, the chain {member}");
    }
    let calls = &home.told(&["earnings"])?["calls"];
    let number = |name: &str| calls[name].as_u64().unwrap_or(u64::MAX);
    let mut of_journal = Sums {
        earned: number("earned_micro"),
        lost: number("lost_micro"),
        penalised: number("penalised"),
        standings: BTreeMap::new(),
    };
    for word in ["agreed", "dissented", "undecided", "unable", "withheld", "absent"] {
        if number(word) > 0 {
            of_journal.standings.insert(word, number(word));
        }
    }
    ensure!(of_journal == sums, "the journal has {of_journal:?}, the chain {sums:?}");
    say(&format!("   account {}: {sums:?}", home.account()));
    Ok(())
}

/// What the killed miner handed in is one commitment for each call, and all that the chain has of
/// it.
fn once(stage: &Stage, settled: &[Settled], seen: &Commitments) -> anyhow::Result<()> {
    let killed = stage.home(KILLED)?.address();
    for (call, commitments) in seen {
        ensure!(commitments.len() == 1, "{} commitments for {call}", commitments.len());
    }
    let mut committed = 0;
    for Settled { record, .. } in settled {
        let Some(member) = member_of(record, &killed) else { continue };
        let Some(hash) = member["commitment"]["hash"].as_str() else { continue };
        let call = format!("{} 0", record["callId"].as_str().context("an id")?);
        let is_seen = seen.get(&call).is_some_and(|it| it.contains(hash));
        ensure!(is_seen, "nobody saw how {hash} came to the node");
        committed += 1;
    }
    ensure!(committed > 0, "the killed miner never committed");
    Ok(())
}

/// The model's offer is taken back, its executor is told as out of use, and there is an alarm; the
/// program is offered as before.
fn is_paused(home: &MinerHome) -> anyhow::Result<()> {
    let executor = model_executor();
    let is_made = |offers: &Value, executor: &str| {
        let made = offers["made"].as_array().into_iter().flatten();
        made.into_iter().any(|it| it["executor"] == executor)
    };
    let mut offers = Value::Null;
    let waited = wait_until("the offer of the model to be taken back", || {
        offers = home.told(&["offers"])?;
        Ok(!is_made(&offers, &executor))
    });
    waited.with_context(|| format!("the offers: {offers}"))?;
    let configured = offers["configured"].as_array().into_iter().flatten();
    let fact = configured.into_iter().find(|it| it["executor"] == executor.as_str());
    let state = fact.context("the configured offer")?["state"].to_string();
    let is_out = ["paused", "unsound"].iter().any(|word| state.contains(word));
    ensure!(is_out, "the offer is {state}: {offers}");
    ensure!(is_made(&offers, "wasm-1"), "the program is not offered: {offers}");
    let status = home.told(&["status"])?;
    let alarms = status["process"]["alarms"].as_array().into_iter().flatten();
    let has_alarm = alarms.into_iter().any(|alarm| alarm["name"] == "dissent");
    ensure!(has_alarm, "there is no alarm: {status}");
    Ok(())
}

/// The copier and the absent one.
fn lost(settled: &[Settled], copied: &Copied) -> anyhow::Result<()> {
    let Copied { commitments, refused } = *copied;
    ensure!(refused > 0 && commitments >= refused, "{copied:?}");
    for (account, standing) in [(COPIER, "withheld"), (ABSENT, "absent")] {
        let sums = Sums::of(settled, &address(account)?)?;
        let stood = sums.standings.get(standing).copied().unwrap_or_default();
        ensure!(sums.earned == 0 && sums.lost > 0 && stood > 0, "account {account}: {sums:?}");
        say(&format!("   account {account}: {sums:?}"));
    }
    Ok(())
}

/// The supply adds up, and so does what every account has.
fn money(senders: &mut Senders, settled: &[Settled]) -> anyhow::Result<()> {
    let supply = senders.call("ombra_getSupply", &json!([]))?;
    let part = |name: &str| micro(&supply, name);
    ensure!(part("escrowed")? == 0, "money is left in escrow: {supply}");
    ensure!(supply["unbonding"].is_null(), "somebody took a bond out: {supply}");
    let left = part("circulating")? + part("bonded")? + part("burned")?;
    ensure!(part("genesis")? + part("minted")? == left, "money is lost: {supply}");
    let (mut balances, mut bonds) = (0, 0);
    for account in 0..ACCOUNTS {
        let who = address(account)?;
        let balance = micro(&senders.call("ombra_getAccount", &json!([who]))?, "balance")?;
        let bond = senders.call("ombra_getBond", &json!([who]))?;
        ensure!(bond["locked"] == "0", "something is locked: {bond}");
        let bonded = micro(&bond, "bonded")?;
        (balances, bonds) = (balances + balance, bonds + bonded);
        if (*HONEST.start()..=ABSENT).contains(&account) {
            let sums = Sums::of(settled, &who)?;
            let places = places(senders, &who)?;
            let expected = (FUNDS + sums.earned).checked_sub(sums.lost + places);
            ensure!(
                expected == Some(balance + bonded),
                "account {account} has {balance} and a bond of {bonded}, not {expected:?}: {sums:?}, \
                 {places} for places"
            );
        }
    }
    let block = senders.call("ombra_getBlock", &json!([1, false]))?;
    let proposer = senders.call("ombra_getAccount", &json!([block["proposer"]]))?;
    balances += micro(&proposer, "balance")?;
    let sums = (balances, bonds);
    ensure!(sums == (part("circulating")?, part("bonded")?), "{sums:?} is there: {supply}");
    Ok(())
}

/// What somebody's transactions burned for their places in blocks.
fn places(senders: &mut Senders, who: &Address) -> anyhow::Result<u64> {
    let mut sum = 0;
    for tx in senders.pages("ombra_getAccountTransactions", |page| json!([who, page]))? {
        if tx["direction"] != "in" {
            let tx = senders.call("ombra_getTransaction", &json!([tx["hash"]]))?;
            sum += micro(&tx, "inclusionFee")?;
        }
    }
    Ok(sum)
}
