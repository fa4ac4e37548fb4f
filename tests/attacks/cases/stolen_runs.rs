//! Whoever claims a run first may say what it likes about it. Without protection that pays: an account
//! without money takes the run, reports as many tokens as the escrow can pay, and keeps it. With the
//! protection that clients ask for from fork v7 on, the same costs the thief more than the victim.
//!
//! What is said at the end is what each of the two lost: the thief of its balance and bond, the victim
//! of its balance beyond what the same requests would have cost it if nobody had claimed them.

use anyhow::ensure;
use fixtures::{bond, refuse};
use testkit::actor::{Actor, finish, people, step};
use testkit::harness::{Town, User};
use testkit::suite::say;
use types::tx::Protection;
use types::{Amount, Body, Hash, Keypair};

use super::sending::{Asked, Senders, claim};

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
    let town = Town::one_from_v7(&[])?;
    let rpc = town.node(0)?.rpc;
    let [user, victim, thief] = people()?;
    let user = User::start(rpc, user.key);
    let mut stage = Stage { senders: Senders::open(rpc)?, victim, thief };

    let nobody = Actor::new(Keypair::from_seed(&[201; 32]));
    stage.steal_without_protection(nobody)?;
    stage.claim_without_a_bond()?;
    let bond = stage.thief.sign(&bond(BOND));
    stage.senders.include(&[bond])?;
    stage.report_too_much()?;
    stage.answer_without_work()?;

    let seen = user.tell("runs stolen")?;
    town.goes_on(&[0], 3)?;
    seen.is_served()
}

impl Stage {
    fn request(&mut self, number: u64, protection: Protection) -> anyhow::Result<Hash> {
        let prompt = &format!("question {number}");
        let asked = Asked { prompt, max_fee: MAX_FEE, max_steps: 10, protection };
        self.senders.request(&mut self.victim, &asked)
    }

    /// What the victim and the thief have.
    fn wealth(&mut self) -> anyhow::Result<[i128; 2]> {
        Ok([self.senders.wealth(&self.victim)?, self.senders.wealth(&self.thief)?])
    }

    /// What fork v6 allows: an account without money takes everything.
    fn steal_without_protection(&mut self, mut nobody: Actor) -> anyhow::Result<()> {
        let before = self.senders.wealth(&self.victim)?;
        for number in 0..RUNS {
            let run = self.request(number, Protection::default())?;
            self.senders.complete(&mut nobody, run, (MAX_FEE - 100, 0))?;
        }
        let lost = before - self.senders.wealth(&self.victim)?;
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
        let before = self.wealth()?;
        for number in 0..RUNS {
            let run = self.request(200 + number, Self::protection())?;
            claim(&mut self.senders, &mut self.thief, run)?;
            let greedy = self.thief.draft(&step(run, 0, MAX_FEE - 100));
            self.senders.refused(&greedy, "TOKENS_LIMIT")?;
            let rest = MAX_FEE - STEP_TOKENS - 100;
            let texts = [
                step(run, 0, STEP_TOKENS),
                Body::AgentFinish(finish(run, STEP_TOKENS, [STEP_TOKENS, rest, 100])),
            ]
            .map(|body| self.thief.sign(&body));
            self.senders.include(&texts)?;
            let refuse = self.victim.sign(&refuse(run));
            self.senders.include(&[refuse])?;
        }
        self.tell("reported tokens that were refused", before)
    }

    /// `completed` without a step. The victim need do nothing.
    fn answer_without_work(&mut self) -> anyhow::Result<()> {
        let before = self.wealth()?;
        for number in 0..RUNS {
            let run = self.request(300 + number, Self::protection())?;
            let texts = [
                Body::AgentClaim(self.thief.claim(run)),
                Body::AgentFinish(finish(run, 0, [0, MAX_FEE, 0])),
            ]
            .map(|body| self.thief.sign(&body));
            self.senders.include(&texts)?;
        }
        self.tell("ended without work", before)
    }

    /// Says who lost what, once the bonds have changed. The thief must have lost at least as much.
    fn tell(&mut self, how: &str, before: [i128; 2]) -> anyhow::Result<()> {
        let (after, runs) = (self.wealth()?, i128::from(RUNS));
        let [victim, thief] = [before[0] - after[0], before[1] - after[1]];
        say(&format!(
            "   {how}: the thief lost {} a run, the victim {}",
            thief / runs,
            victim / runs
        ));
        ensure!(thief >= victim - runs * 1_200, "stealing costs the victim more");
        ensure!(thief > 0, "the thief gained by it");
        Ok(())
    }
}
