//! Three miners and one node: a hundred runs, each claimed once, settled as it must be, and paid as
//! the chain says.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use miner::chain::StepView;
use miner::engine::receipt::receipt;
use miner::journal::Journal;
use miner::journal::entry::{Outcome, Phase};
use serde_json::Value;
use testkit::books::Books;
use testkit::crowd::Crowd;
use testkit::miners::{MinerHome, Requester, text};
use types::Hash;

use crate::journal::journal_of;

const RUNS: usize = 100;

#[test]
fn three_miners_share_a_hundred_runs_and_each_is_paid_for_its_own() -> anyhow::Result<()> {
    let crowd = Crowd::new()?;
    let miners = crowd.miners.iter().map(MinerHome::start).collect::<anyhow::Result<Vec<_>>>()?;
    Crowd::ask(crowd.node.rpc, RUNS)?;
    crowd.settled(RUNS)?;
    miners.into_iter().try_for_each(testkit::miners::Miner::stop)?;
    let books = crowd.check(RUNS)?;
    let workers: BTreeSet<_> = books.runs.values().map(|run| text(run, "minerAddress")).collect();
    assert_eq!(crowd.miners.len(), workers.len(), "every miner had its share");

    let mut lost = 0;
    for miner in &crowd.miners {
        let journal = journal_of(miner, &crowd.node)?;
        assert_eq!(Vec::<String>::new(), open(&journal)?);
        lost += check_receipts(&crowd, &books, miner, &journal)?;
    }
    assert!(lost > 0, "no claim lost its race, so nothing was shown about those that do");
    crowd.miners.iter().try_for_each(|miner| check_by_command(&books, miner))
}

/// What is left to do, in words.
fn open(journal: &Journal) -> anyhow::Result<Vec<String>> {
    let runs = journal.open_entries()?.into_iter().map(|entry| entry.phase.to_string());
    let signed = journal.outbox()?.into_iter().map(|parcel| format!("{:?}", parcel.purpose));
    Ok(runs.chain(signed).collect())
}

/// Hashes every text of every run of this miner again; answers how many runs it lost to others.
fn check_receipts(
    crowd: &Crowd,
    books: &Books,
    miner: &MinerHome,
    journal: &Journal,
) -> anyhow::Result<usize> {
    let anybody = Requester::new(0, crowd.node.rpc)?;
    let own = miner.address().to_string();
    for run in books.runs.values().filter(|run| text(run, "minerAddress") == own) {
        let id: Hash = text(run, "agentRunId").parse()?;
        let receipt = receipt(journal, &id)?.context("a receipt of every run")?;
        let steps = anybody.steps(&id)?;
        let views = steps.iter().map(view).collect::<anyhow::Result<Vec<_>>>()?;
        ensure!(receipt.differences(&views).is_empty(), "{run}: {:?}", receipt.differences(&views));
        let is_same = receipt.answer.as_deref() == run["finalAnswerInline"].as_str();
        // Why a run ended without one is not kept after its end.
        ensure!(is_same || text(run, "status") != "completed", "{:?} and {run}", receipt.answer);
    }
    let is_lost =
        |phase: &Phase| matches!(phase, Phase::Over(Outcome::LostTo(_) | Outcome::ClaimRefused(_)));
    Ok(journal.entries()?.iter().filter(|entry| is_lost(&entry.phase)).count())
}

/// A step of the chain as receipts are compared with it.
fn view(step: &Value) -> anyhow::Result<StepView> {
    let calls = step["toolCalls"].as_array().into_iter().flatten();
    let hashes = |call: &Value| -> anyhow::Result<(Hash, Hash)> {
        Ok((text(call, "argsHash").parse()?, text(call, "resultHash").parse()?))
    };
    Ok(StepView {
        index: step["stepIndex"].as_u64().context("an index")?,
        output_tokens: step["outputTokens"].as_u64().context("tokens")?,
        output_hash: text(step, "outputHash").parse()?,
        calls: calls.map(hashes).collect::<anyhow::Result<_>>()?,
    })
}

/// The same for one run with the program's own commands.
fn check_by_command(books: &Books, miner: &MinerHome) -> anyhow::Result<()> {
    let own = miner.address().to_string();
    let mut runs = books.runs.values();
    let run = runs.find(|run| text(run, "minerAddress") == own).context("a run")?;
    miner.verify(&miner.tell(&["receipt", text(run, "agentRunId")])?)
}
