//! Whoever wants a requester to wait claims its runs and does nothing. Without a claim bond that costs
//! nothing; with the one that clients ask for, each claim that lapses costs its author the bond.
//!
//! The requester gets its runs back when `claimTtlMs` have passed, the idler never again, and another
//! miner does the work. Or the idler gives each run up as soon as it has claimed it: then it pays as much
//! as a step costs, and the run waits for another miner at once. A run that names its miners cannot be claimed by anybody else at all.

use std::time::Instant;

use anyhow::ensure;
use fixtures::bond;
use serde_json::json;
use testkit::actor::{Actor, finish, people};
use testkit::harness::{Town, User};
use testkit::node::wait_until;
use testkit::suite::say;
use types::tx::Protection;
use types::{Amount, Body, Hash};

use super::sending::{Asked, Senders, claim};

/// How long a claim may stand without a step, in milliseconds: a real chain has 120,000.
const CLAIM_TTL_MS: u64 = 26_000;
/// Runs of each sort.
const RUNS: u64 = 4;
const MAX_FEE: u64 = 90_000;
const TOKENS: u64 = 2_000;
const CLAIM_BOND: u64 = 100_000;
/// What giving a run up burns of the bond.
const GIVING_UP: i128 = 100;
/// What the requester may lose of each run that was kept from it, in micro: its place in a block.
const PLACE_MAX: i128 = 1_000;

struct Stage {
    senders: Senders,
    requester: Actor,
    idler: Actor,
    miner: Actor,
}

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let town = Town::one_from_v7(&[&format!("claimTtlMs={CLAIM_TTL_MS}")])?;
    let rpc = town.node(0)?.rpc;
    let [user, requester, idler, miner] = people()?;
    let user = User::start(rpc, user.key);
    let mut stage = Stage { senders: Senders::open(rpc)?, requester, idler, miner };
    stage.bond()?;
    stage.name_miners()?;

    let free = stage.claim_and_idle("unprotected", &Protection::default())?;
    let bonded = stage.claim_and_idle("bonded", &bonded())?;
    let claimed = Instant::now();
    ensure!(free.idler == 0, "claims without a bond cost {}", free.idler);
    ensure!(free.requester <= PLACE_MAX * i128::from(RUNS), "places cost {}", free.requester);
    let before = stage.senders.wealth(&stage.idler)?;
    for run in free.runs.iter().chain(&bonded.runs) {
        stage.is_open_again(run)?;
    }
    let waited = claimed.elapsed();
    let (count, lost) = (i128::from(RUNS), before - stage.senders.wealth(&stage.idler)?);
    say(&format!(
        "   {RUNS} runs without and {RUNS} with a claim bond were claimed and left: the idler lost {} for each with a bond and nothing for the others; the requester {} and {} for its places, and {waited:.0?}",
        lost / count,
        bonded.requester / count,
        free.requester / count,
    ));
    ensure!(lost >= count * i128::from(CLAIM_BOND), "claiming and idling costs only {lost}");
    ensure!(lost >= bonded.requester, "idling costs the requester more");
    stage.others_do_the_work(&bonded.runs)?;
    let given_up = stage.claim_and_give_up()?;
    stage.others_do_the_work(&given_up)?;

    let seen = user.tell("while claims idle")?;
    town.goes_on(&[0], 3)?;
    seen.is_served()
}

/// What claims have cost so far, and for which runs.
struct Idle {
    runs: Vec<Hash>,
    requester: i128,
    idler: i128,
}

fn bonded() -> Protection {
    let claim_bond = Some(Amount::new(CLAIM_BOND));
    Protection { claim_bond, refuse_ms: Some(600_000), ..Protection::default() }
}

impl Stage {
    /// The idler and the honest miner put up what claims of all runs lock.
    fn bond(&mut self) -> anyhow::Result<()> {
        let body = bond(2 * RUNS * CLAIM_BOND);
        for actor in [&mut self.idler, &mut self.miner] {
            let text = actor.sign(&body);
            self.senders.include(&[text])?;
        }
        Ok(())
    }

    /// A run that names its miners is not claimed by anybody else.
    fn name_miners(&mut self) -> anyhow::Result<()> {
        let miners = Some(vec![self.miner.address().into()]);
        let run = self.request("for one miner alone", &Protection { miners, ..bonded() })?;
        let claim = self.idler.draft(&Body::AgentClaim(self.idler.claim(run)));
        self.senders.refused(&claim, "MINER_NOT_ALLOWED")
    }

    fn request(&mut self, prompt: &str, protection: &Protection) -> anyhow::Result<Hash> {
        let protection = protection.clone();
        let asked = Asked { prompt, max_fee: MAX_FEE, max_steps: 10, protection };
        self.senders.request(&mut self.requester, &asked)
    }

    /// What the requester and the idler have.
    fn wealth(&mut self) -> anyhow::Result<[i128; 2]> {
        Ok([self.senders.wealth(&self.requester)?, self.senders.wealth(&self.idler)?])
    }

    fn claim_and_idle(&mut self, sort: &str, protection: &Protection) -> anyhow::Result<Idle> {
        let before = self.wealth()?;
        let mut runs = Vec::new();
        for number in 0..RUNS {
            let run = self.request(&format!("{sort} question {number}"), protection)?;
            claim(&mut self.senders, &mut self.idler, run)?;
            runs.push(run);
        }
        let after = self.wealth()?;
        // The escrows come back.
        let escrows = i128::from(RUNS * MAX_FEE);
        Ok(Idle { runs, requester: before[0] - after[0] - escrows, idler: before[1] - after[1] })
    }

    /// Waits until a run is open for others, which its idler cannot claim a second time.
    fn is_open_again(&mut self, run: &Hash) -> anyhow::Result<()> {
        wait_until("a claimed run to be open again", || {
            let record = self.senders.call("ombra_getAgentRun", &json!([run]))?;
            let is_open = record["status"] == "pending" && record["reopens"] == 1;
            Ok(is_open)
        })?;
        let again = self.idler.draft(&Body::AgentClaim(self.idler.claim(*run)));
        self.senders.refused(&again, "MINER_EXCLUDED")
    }

    /// The idler claims runs and gives each of them up: they are open for others in the next block.
    fn claim_and_give_up(&mut self) -> anyhow::Result<Vec<Hash>> {
        let Idle { runs, requester, .. } = self.claim_and_idle("given up", &bonded())?;
        let before = self.senders.wealth(&self.idler)?;
        for run in &runs {
            let mut end = finish(*run, 0, [0, MAX_FEE, 0]);
            "failed".clone_into(&mut end.status);
            let end = self.idler.sign(&Body::AgentFinish(end));
            self.senders.include(&[end])?;
            self.is_open_again(run)?;
        }
        let (count, lost) = (i128::from(RUNS), before - self.senders.wealth(&self.idler)?);
        say(&format!(
            "   {RUNS} more were claimed and given up: the idler lost {} for each, the requester {} for its place",
            lost / count,
            requester / count,
        ));
        ensure!(lost >= count * GIVING_UP, "giving up costs only {lost}");
        ensure!(lost >= requester, "giving up costs the requester more");
        Ok(runs)
    }

    /// Another miner answers what the idler kept.
    fn others_do_the_work(&mut self, runs: &[Hash]) -> anyhow::Result<()> {
        for run in runs {
            let rest = MAX_FEE - TOKENS - 100;
            self.senders.complete(&mut self.miner, *run, (TOKENS, rest))?;
            let record = self.senders.call("ombra_getAgentRun", &json!([run]))?;
            ensure!(record["status"] == "completed", "the run was not done: {record}");
        }
        Ok(())
    }
}
