//! A requester has work done and refuses to pay for it, again and again, to harm miners. It gets nothing
//! back: what the miner loses of its bond costs the requester as much, and everybody can see how often
//! it refuses.

use anyhow::ensure;
use fixtures::{bond, refuse};
use serde_json::json;
use testkit::actor::{Actor, people};
use testkit::harness::{Town, User};
use testkit::suite::say;
use types::tx::Protection;
use types::{Amount, Hash};

use super::sending::{Asked, Senders};

/// How often each reward is refused.
const RUNS: u64 = 5;
/// The rewards: the least that does harm, and what a long answer earns.
const REWARDS: [u64; 2] = [1, 50_000];
const MAX_FEE: u64 = 90_000;
const CLAIM_BOND: u64 = 100_000;
/// What each refusal burns of its author's balance.
const REFUSE_STAKE: u64 = 10_000;

struct Stage {
    senders: Senders,
    requester: Actor,
    miner: Actor,
}

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let town = Town::one_from_v7(&[&format!("refuseStake={REFUSE_STAKE}")])?;
    let rpc = town.node(0)?.rpc;
    let [user, requester, miner] = people()?;
    let user = User::start(rpc, user.key);
    let mut stage = Stage { senders: Senders::open(rpc)?, requester, miner };
    let bond = stage.miner.sign(&bond(RUNS * CLAIM_BOND * 2));
    stage.senders.include(&[bond])?;

    for reward in REWARDS {
        stage.refuse_all(reward)?;
    }
    let figures = stage.senders.call("ombra_getBond", &json!([stage.requester.address()]))?;
    let refused = RUNS * u64::try_from(REWARDS.len())?;
    ensure!(
        figures["rewardsRefused"] == refused && figures["rewardsHeld"] == refused,
        "nobody sees how often it refuses: {figures}"
    );

    let seen = user.tell("while miners are refused")?;
    town.goes_on(&[0], 3)?;
    seen.is_served()
}

impl Stage {
    /// Has work done for this reward and refuses it; says who lost what.
    fn refuse_all(&mut self, reward: u64) -> anyhow::Result<()> {
        let before = (self.senders.wealth(&self.requester)?, self.senders.wealth(&self.miner)?);
        for number in 0..RUNS {
            let run = self.work(number, reward)?;
            let refuse = self.requester.sign(&refuse(run));
            self.senders.include(&[refuse])?;
        }
        let lost = before.0 - self.senders.wealth(&self.requester)?;
        let harm = before.1 - self.senders.wealth(&self.miner)?;
        let count = i128::from(RUNS);
        say(&format!(
            "   a reward of {reward} refused: the requester lost {}, the miner {} of its bond and the reward",
            lost / count,
            harm / count
        ));
        ensure!(harm > 0, "the miner has lost nothing: this is no attack");
        ensure!(lost >= harm, "refusing costs the miner's bond more than the requester");
        let least = count * i128::from(reward + REFUSE_STAKE);
        ensure!(lost >= least, "refusing {least} costs only {lost}");
        Ok(())
    }

    /// One run from the request to its end.
    fn work(&mut self, number: u64, reward: u64) -> anyhow::Result<Hash> {
        let protection = Protection {
            claim_bond: Some(Amount::new(CLAIM_BOND)),
            refuse_ms: Some(600_000),
            ..Protection::default()
        };
        let prompt = &format!("question {number} for {reward}");
        let asked = Asked { prompt, max_fee: MAX_FEE, max_steps: 10, protection };
        let run = self.senders.request(&mut self.requester, &asked)?;
        self.senders.complete(&mut self.miner, run, (reward, MAX_FEE - reward - 100))?;
        Ok(run)
    }
}
