//! Whoever claims a run first may say what it likes about it. Without protection that pays: an account
//! without money takes the run, reports as many tokens as the escrow can pay, and keeps it. With the
//! protection that clients ask for from fork v7 on, the same costs the thief more than the victim.
//!
//! What is said at the end is what each of the two lost: the thief of its balance and bond, the victim
//! of its balance beyond what the same requests would have cost it if nobody had claimed them.

use anyhow::{Context as _, ensure};
use testkit::actor::{Actor, finish, step};
use testkit::harness::town::{FAST, Town};
use testkit::harness::user::User;
use testkit::suite::say;
use testkit::workload::keys;
use types::tx::{AgentRefuse, MinerBond, Protection};
use types::{Amount, Body, Hash, Keypair};

use super::sending::{Asked, Senders};

/// How often each way is tried.
const RUNS: u64 = 5;
const MAX_FEE: u64 = 90_000;
/// What a step may report on a protected run.
const STEP_TOKENS: u64 = 1_000;
const CLAIM_BOND: u64 = 100_000;
const BOND: u64 = 1_000_000;

/// The chain as the two see it.
struct Stage {
    senders: Senders,
    victim: Actor,
    thief: Actor,
}

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let mut town = Town::from_v7(1, 0, FAST)?;
    town.start_all()?;
    let rpc = town.node(0)?.rpc;
    let mut keys = keys(3)?;
    let mut key = || keys.pop().context("a key");
    let user = User::start(rpc, key()?);
    let (victim, thief) = (Actor::new(key()?), Actor::new(key()?));
    let mut stage = Stage { senders: Senders::open(rpc)?, victim, thief };

    let nobody = Actor::new(Keypair::from_seed(&[201; 32]));
    stage.steal_without_protection(nobody)?;
    stage.claim_without_a_bond()?;
    let bond = stage.thief.sign(&Body::MinerBond(MinerBond { amount: Amount::new(BOND) }));
    stage.senders.include(&[bond])?;
    stage.report_too_much()?;
    stage.answer_without_work()?;

    let seen = user.stop()?;
    seen.tell("runs stolen");
    town.goes_on(&[0], 3)?;
    seen.is_served()
}

impl Stage {
    fn request(&mut self, number: u64, protection: Protection) -> anyhow::Result<Hash> {
        let prompt = &format!("question {number}");
        let asked = Asked { prompt, max_fee: MAX_FEE, max_steps: 10, protection };
        self.senders.request(&mut self.victim, &asked)
    }

    /// What fork v6 allows: an account without money takes everything.
    fn steal_without_protection(&mut self, mut nobody: Actor) -> anyhow::Result<()> {
        let before = self.senders.wealth(&self.victim.clone())?;
        for number in 0..RUNS {
            let run = self.request(number, Protection::default())?;
            let tokens = MAX_FEE - 100;
            let texts = [
                Body::AgentClaim(nobody.claim(run)),
                step(run, 0, tokens),
                Body::AgentFinish(finish(run, tokens, [tokens, 0, 100])),
            ]
            .map(|body| nobody.sign(&body));
            self.senders.include(&texts)?;
        }
        let lost = before - self.senders.wealth(&self.victim.clone())?;
        let gained = self.senders.wealth(&nobody)?;
        say(&format!(
            "   unprotected: the thief, who had nothing, gained {gained}; the victim lost {lost}"
        ));
        ensure!(gained > 0, "the attack without protection is the one that protection is for");
        Ok(())
    }

    fn protection() -> Protection {
        Protection {
            miners: None,
            claim_bond: Some(Amount::new(CLAIM_BOND)),
            max_tokens_per_step: Some(STEP_TOKENS),
            refuse_ms: Some(600_000),
        }
    }

    fn claim_without_a_bond(&mut self) -> anyhow::Result<()> {
        let run = self.request(100, Self::protection())?;
        let text = self.thief.draft(&Body::AgentClaim(self.thief.claim(run)));
        self.senders.refused(&text, "BOND_TOO_SMALL")
    }

    /// One step of as many tokens as a step may have, and a hostile answer. The victim refuses.
    fn report_too_much(&mut self) -> anyhow::Result<()> {
        let (victim, thief) = (self.victim.clone(), self.thief.clone());
        let before = (self.senders.wealth(&victim)?, self.senders.wealth(&thief)?);
        for number in 0..RUNS {
            let run = self.request(200 + number, Self::protection())?;
            let claim = self.thief.sign(&Body::AgentClaim(self.thief.claim(run)));
            self.senders.include(&[claim])?;
            let greedy = self.thief.draft(&step(run, 0, MAX_FEE - 100));
            self.senders.refused(&greedy, "TOKENS_LIMIT")?;
            let rest = MAX_FEE - STEP_TOKENS - 100;
            let texts = [
                step(run, 0, STEP_TOKENS),
                Body::AgentFinish(finish(run, STEP_TOKENS, [STEP_TOKENS, rest, 100])),
            ]
            .map(|body| self.thief.sign(&body));
            self.senders.include(&texts)?;
            let refuse = self.victim.sign(&Body::AgentRefuse(AgentRefuse { agent_run_id: run }));
            self.senders.include(&[refuse])?;
        }
        self.tell("reported tokens that were refused", before, RUNS)
    }

    /// `completed` without a step. The victim need do nothing.
    fn answer_without_work(&mut self) -> anyhow::Result<()> {
        let (victim, thief) = (self.victim.clone(), self.thief.clone());
        let before = (self.senders.wealth(&victim)?, self.senders.wealth(&thief)?);
        for number in 0..RUNS {
            let run = self.request(300 + number, Self::protection())?;
            let texts = [
                Body::AgentClaim(self.thief.claim(run)),
                Body::AgentFinish(finish(run, 0, [0, MAX_FEE, 0])),
            ]
            .map(|body| self.thief.sign(&body));
            self.senders.include(&texts)?;
        }
        self.tell("ended without work", before, RUNS)
    }

    /// Says who lost what, once the bonds have changed. The thief must have lost at least as much.
    fn tell(&mut self, how: &str, before: (i128, i128), runs: u64) -> anyhow::Result<()> {
        let (victim, thief) = (self.victim.clone(), self.thief.clone());
        let lost =
            (before.0 - self.senders.wealth(&victim)?, before.1 - self.senders.wealth(&thief)?);
        say(&format!(
            "   {how}: the thief lost {} a run, the victim {}",
            lost.1 / i128::from(runs),
            lost.0 / i128::from(runs)
        ));
        ensure!(lost.1 >= lost.0 - i128::from(runs) * 1_200, "stealing costs the victim more");
        ensure!(lost.1 > 0, "the thief gained by it");
        Ok(())
    }
}
