//! Random transactions: most of them sensible, all of them through the static checks.

use std::ops::Range;

use fixtures::{finish, offer, retire};
use proptest::prelude::*;
use types::agent::ExecutorId;
use types::tx::{AgentFinish, AgentRegister, Protection};
use types::{Amount, Bid, Body, Hash, Signature, ids};

use crate::agent_metadata::Sheet;
use crate::bodies::{bond, fork, param, protected, refuse, register_miner, unbond};
use crate::model::{Model, ModelRun};
use crate::world::{
    START, Who, bare_vote, blob_chunk, blob_finalize, blob_init, cancel, claim, evidence, step,
    transfer, turn, vote_until,
};

/// Dice for one action. What they mean depends on the state: [`Act::body`].
#[derive(Clone, Copy, Debug)]
pub struct Act {
    pub kind: u8,
    pub who: u8,
    pub pick: u8,
    pub twist: u8,
    pub amount: u16,
}

/// Acts of every kind but votes.
pub fn acts(most: usize) -> impl Strategy<Value = Vec<Act>> {
    acts_of(0..24, most)
}

/// Acts of every kind, on a chain whose validators can change.
pub fn acts_and_votes(most: usize) -> impl Strategy<Value = Vec<Act>> {
    acts_of(0..36, most)
}

/// Acts of every kind, on a chain whose rules can change, too, and on which runs are protected.
pub fn acts_of_v7(most: usize) -> impl Strategy<Value = Vec<Act>> {
    acts_of(0..KINDS_OF_V7, most)
}

/// From here on acts are about bonds and protected runs, then about evidence, about agents, and about offers.
const BONDS: u8 = 56;
const EVIDENCE: u8 = 82;
const AGENTS: u8 = 88;
const RETIRE: u8 = 98;
const OFFERS: u8 = 100;
const KINDS_OF_V7: u8 = 104;

/// What miners offer to run.
pub const EXECUTORS: [ExecutorId; 3] = [
    ExecutorId::Wasm,
    ExecutorId::Model { manifest: Hash::ZERO },
    ExecutorId::Container { image: Hash::new([7; 32]) },
];

fn acts_of(kinds: Range<u8>, most: usize) -> impl Strategy<Value = Vec<Act>> {
    let act = (kinds, 1_u8..7, any::<u8>(), any::<u8>(), any::<u16>());
    let act =
        act.prop_map(|(kind, who, pick, twist, amount)| Act { kind, who, pick, twist, amount });
    prop::collection::vec(act, 1..most)
}

impl Act {
    /// The act of any kind that so many random bits stand for.
    pub fn of_bits(bits: u64) -> Self {
        let [kind, who, pick, twist, low, high, ..] = bits.to_le_bytes();
        let amount = u16::from_le_bytes([low, high]);
        Self { kind: kind % KINDS_OF_V7, who: 1 + who % 6, pick, twist, amount }
    }

    /// Whether a block ends here.
    pub fn ends_block(&self) -> bool {
        (22..24).contains(&self.kind) && self.pick < 200 || (80..82).contains(&self.kind)
    }

    /// One time in so many.
    fn rarely(&self, times: u8) -> bool {
        self.twist.is_multiple_of(times)
    }

    /// A run: one of the latest, an unknown one now and then.
    fn run(&self, model: &Model) -> Hash {
        let nth = usize::from(self.pick) % model.runs.len().max(1);
        match model.runs.keys().nth(nth) {
            Some(id) if self.pick != 0 => *id,
            _ => Hash::new([1; 32]),
        }
    }

    /// A run that is in one of these states, or one whose reward is `held`; any now and then.
    fn run_that(&self, model: &Model, is_it: impl Fn(&ModelRun) -> bool) -> Hash {
        let fitting = model.runs.iter().filter(|(_, run)| is_it(run));
        let fitting: Vec<Hash> = fitting.map(|(id, _)| *id).collect();
        if fitting.is_empty() || self.rarely(11) {
            return self.run(model);
        }
        fitting[usize::from(self.pick) % fitting.len()]
    }

    /// The run that an act from [`BONDS`] on is about.
    fn run_of_v7(&self, model: &Model) -> Hash {
        match self.kind {
            60..=63 => self.run_that(model, |run| run.held.is_some()),
            68..=71 => self.run_that(model, |run| run.word() == "pending"),
            _ => self.run_that(model, |run| run.worker().is_some()),
        }
    }

    fn blob(&self) -> String {
        format!("blob{}", self.pick % 5)
    }

    /// Who acts: mostly whoever may.
    pub fn sender(&self, model: &Model) -> Who {
        let any = Who(self.who);
        let run = model.runs.get(&self.run(model));
        let right = match self.kind {
            60..=63 => model.runs.get(&self.run_of_v7(model)).map(|run| run.submitter),
            68..=71 => {
                let free = |who: &Who| (model.stakes.free(who.address()), who.address());
                (1..7).map(Who).max_by_key(free).map(Who::address)
            }
            72..=81 => model.runs.get(&self.run_of_v7(model)).and_then(ModelRun::worker),
            RETIRE.. => model.agents.all.get(&self.agent(model)).map(|agent| agent.owner),
            BONDS.. => None,
            9..=15 => run.and_then(|run| run.worker()),
            16 => run.map(|run| run.submitter),
            20 | 21 => model.blobs.get(&self.blob()).map(|blob| blob.owner),
            36..=55 => {
                let current = &model.validators.current;
                let nth = usize::from(self.who) % current.len().max(1);
                current.keys().nth(nth).map(|key| key.address())
            }
            _ => None,
        };
        let right =
            right.filter(|_| !(68..=71).contains(&self.kind) || !self.amount.is_multiple_of(4));
        match right {
            Some(address) if !self.rarely(7) => {
                (1..7).map(Who).find(|who| who.address() == address).unwrap_or(any)
            }
            _ => any,
        }
    }

    /// The nonce: mostly the right one.
    pub fn nonce(&self, right: u64) -> u64 {
        match self.twist {
            0 => right + 1,
            1 => right.saturating_sub(1),
            _ => right,
        }
    }

    pub fn body(&self, model: &Model, sender: Who, nonce: u64) -> Body {
        let amount = u64::from(self.amount);
        match self.kind {
            BONDS..=58 => bond(1 + amount % 9_000),
            59 => unbond(1 + amount % 12_000),
            60..=63 => refuse(self.run_of_v7(model)),
            64..=67 => self.protected_request(sender, nonce),
            68..=71 => claim(sender, self.run_of_v7(model)),
            72..=77 => self.step(model, self.run_of_v7(model)),
            78..=81 => self.finish(model, self.run_of_v7(model)),
            EVIDENCE..AGENTS => self.evidence(model.height),
            AGENTS..RETIRE => self.register(model, sender),
            RETIRE..OFFERS => retire(self.agent(model)),
            OFFERS.. => self.offer(),
            0..=1 => self.chat(model),
            2..=5 => self.request(sender, nonce),
            6..=8 => claim(sender, self.run(model)),
            9..=13 => self.step(model, self.run(model)),
            14..=15 => self.finish(model, self.run(model)),
            16 => cancel(self.run(model)),
            17..=18 => {
                let huge = if self.rarely(5) { 4_000_000 } else { 0 };
                transfer(Who(1 + self.pick % 6), amount + huge, amount % 100)
            }
            19 => self.announce(),
            20 => blob_chunk(&self.blob(), 0, &[self.twist % 2; 3]),
            21 => blob_finalize(&self.blob()),
            24..=35 => self.vote(),
            36..=40 => self.fork_vote(model.height),
            41..=55 => self.param_vote(model.height),
            _ => register_miner(&format!("miner {amount}")),
        }
    }

    /// On few candidates and powers, so that some get their votes.
    fn vote(&self) -> Body {
        let candidate = Who(1 + self.pick % 3 * 3);
        let power = [0, 10, 10, 1 << 48][usize::from(self.twist % 4)];
        if self.rarely(11) {
            return bare_vote(candidate, power);
        }
        vote_until(candidate, power, START + 1 + u64::from(self.amount) * 10)
    }

    /// Against one of those whom others vote for, mostly good.
    fn evidence(&self, open: u64) -> Body {
        let accused = Who(1 + self.pick % 3 * 3);
        let mut evidence = evidence(accused, open.saturating_sub(u64::from(self.twist % 8)).max(1));
        match self.amount % 8 {
            0 => evidence.second_signature = Signature::new([0; 64]),
            1 => evidence.second_value.clone_from(&evidence.first_value),
            _ => {}
        }
        Body::Evidence(evidence)
    }

    fn offer(&self) -> Body {
        let price = u64::from(self.twist % 4);
        let executor = EXECUTORS[usize::from(self.pick % 3)];
        offer(executor, u64::from(self.amount % 4), [price, 0, price, u64::MAX]).into()
    }

    /// An agent: one that is there, an unknown one now and then.
    fn agent(&self, model: &Model) -> Hash {
        let nth = usize::from(self.pick) % model.agents.all.len().max(1);
        let id = model.agents.all.keys().nth(nth).copied();
        id.filter(|_| !self.rarely(11)).unwrap_or(Hash::ZERO)
    }

    /// One of two agents of the sender, mostly with a higher version than before, run in one of three ways,
    /// and often with other agents among its tools.
    fn register(&self, model: &Model, sender: Who) -> Body {
        let name = ["judge", "clerk"][usize::from(self.pick % 2)];
        let owner = if self.rarely(17) { Who(1) } else { sender };
        let agent_id = ids::compute_agent_id(&owner.address(), name);
        let agent = model.agents.all.get(&agent_id);
        let [major, minor, patch] =
            agent.and_then(|agent| agent.versions.keys().last().copied()).unwrap_or([0, 9, 9]);
        let version = match self.twist % 8 {
            0 => [major, minor, patch],
            1 => [major, minor.saturating_sub(1), patch + 1],
            2 => [major + 1, 0, 0],
            3 => [major, minor + 1, 0],
            _ => [major, minor, patch + 1],
        };
        let all = model.agents.all.iter();
        let versions = all.flat_map(|(id, agent)| agent.versions.keys().map(move |it| (id, it)));
        let nested = versions.enumerate().filter(|(nth, _)| {
            nth % 7 == usize::from(self.amount % 7) && !self.amount.is_multiple_of(3)
        });
        let nested = nested.take(3).map(|(_, (id, [a, b, c]))| format!("agent:{id}@{a}.{b}.{c}"));
        let tools: Vec<String> = std::iter::once("math_eval".to_owned()).chain(nested).collect();
        let sheet = match self.amount % 4 {
            0 => Sheet::container(name),
            1 => Sheet::program(name, &self.blob(), &tools),
            _ => Sheet::model(name, self.twist % 5, &tools),
        };
        let royalty = if self.rarely(13) { 1_000_001 } else { u64::from(self.amount) };
        let [a, b, c] = version;
        let sheet = sheet.version(&format!("{a}.{b}.{c}")).royalty(royalty);
        let metadata = if self.rarely(23) { "{".to_owned() } else { sheet.text() };
        Body::AgentRegister(AgentRegister { agent_id, metadata })
    }

    /// A height near that of the open block, mostly one that others vote for, too.
    fn height(&self, open: u64) -> u64 {
        if self.rarely(9) { open + u64::from(self.pick % 3) } else { (open / 4 + 1) * 4 + 1 }
    }

    fn fork_vote(&self, open: u64) -> Body {
        let forks = ["v8", "v8", "v8", "v8", "v9", "v9", "v7", "v100"];
        fork(forks[usize::from(self.pick) % forks.len()], self.height(open))
    }

    /// On few parameters and values, so that some get their votes.
    fn param_vote(&self, open: u64) -> Body {
        let subjects = [
            ("baseFeeFloor", [500, 3_000, 0]),
            ("registerFee", [20_000, 7, 10_000_001]),
            ("blobInitFee", [0, 333, 20_000_000]),
            ("blobFeePerChunk", [41, 10_000_000, 10_000_001]),
            ("minBlockIntervalMs", [20, 1_000, 1_001]),
            ("maxBlockWork", [500_000, 2_000_000, 19_999]),
            ("refuseStake", [0, 1_500, 10_000_001]),
            ("unbondMs", [60_000, 60_001, 59_999]),
            ("maxBlockBytes", [1, 2, 3]),
        ];
        // The first two are what most votes are about.
        let nth = if self.amount.is_multiple_of(4) {
            usize::from(self.pick)
        } else {
            usize::from(self.pick % 2)
        };
        let (name, values) = subjects[nth % subjects.len()];
        let value = values[[0, 0, 0, 0, 0, 1, 1, 2][usize::from(self.twist / 32)]];
        param(name, value, self.height(open))
    }

    /// What it offers for its place: nothing, what is enough, or too little, and no tip, a small one, or
    /// one that nobody can pay.
    pub fn bid(&self) -> Bid {
        let max_base_fee = match self.amount % 16 {
            0..=6 => None,
            7..=14 => Some(1_000_000_000),
            _ => Some(u64::from(self.pick) * 10),
        };
        let tip = match self.amount / 16 % 16 {
            0..=8 => None,
            9..=14 if (17..=18).contains(&self.kind) => None,
            9..=14 => Some(u64::from(self.pick)),
            _ => Some(u64::MAX),
        };
        Bid { max_base_fee: max_base_fee.map(Amount::new), tip: tip.map(Amount::new) }
    }

    /// Its bytes are 0 or 1; a chunk of the other sort has another hash.
    fn announce(&self) -> Body {
        blob_init(&self.blob(), &[self.twist % 2; 3])
    }

    fn chat(&self, model: &Model) -> Body {
        let mut body = turn(&format!("text {}", self.amount));
        match self.twist % 8 {
            0 => body.agent_run_id = Some(self.run(model)),
            1 => body.content_blob_id = Some(self.blob()),
            2 | 3 => {
                let nth = usize::from(self.pick) % model.turns.len().max(1);
                let parent = model.turns.get(nth).map_or(Hash::ZERO, |(hash, _)| *hash);
                body.parent_turn_hash = Some(parent);
            }
            4 => body.conversation_id = Hash::ZERO,
            _ => {}
        }
        Body::ChatTurn(body)
    }

    /// Short prompts that begin with digits, so that ids collide.
    fn request(&self, sender: Who, nonce: u64) -> Body {
        let prompt = ["x", "1x", "11x"][usize::from(self.pick % 3)];
        let id_nonce = if self.rarely(20) { nonce + 1 } else { nonce };
        let max_fee = if self.rarely(11) { 9_000_000 } else { 100 + u64::from(self.amount) % 900 };
        let max_steps = 1 + u64::from(self.amount % 6);
        fixtures::request(sender.address(), id_nonce, prompt, max_fee, max_steps).into()
    }

    /// The same with one or several of the members that protect a run.
    fn protected_request(&self, sender: Who, nonce: u64) -> Body {
        let twist = u64::from(self.twist);
        let miners = (twist % 8 == 3).then(|| {
            let named = (1..7).map(Who).filter(|who| self.pick >> who.0 & 1 == 1);
            named.map(|who| who.address().into()).collect::<Vec<_>>()
        });
        let protection = Protection {
            miners: miners.filter(|miners| !miners.is_empty()),
            claim_bond: [None, Some(0), Some(300), Some(2_000), Some(6_000)]
                [usize::from(self.twist / 8 % 5)]
            .map(Amount::new),
            max_tokens_per_step: (twist % 8 == 5).then_some(1 + twist * 2),
            refuse_ms: [None, Some(0), Some(1), Some(3_000), Some(8_000)]
                [usize::from(self.pick / 8 % 5)],
        };
        protected(self.request(sender, nonce), protection)
    }

    fn step(&self, model: &Model, id: Hash) -> Body {
        let last = model.runs.get(&id).and_then(|run| run.steps.last().copied());
        let next = last.map_or(0, |(index, _)| index + 1);
        let index = if self.rarely(9) { u64::from(self.pick % 5) } else { next };
        step(id, index, u64::from(self.amount) % 1_050)
    }

    fn finish(&self, model: &Model, id: Hash) -> Body {
        let (mut parts, tokens) = match model.runs.get(&id) {
            Some(run) => {
                let (reward, refund, fee) = run.division();
                let parts = [reward, refund, fee].map(|part| u64::try_from(part).unwrap_or(0));
                (parts, u64::try_from(run.tokens()).unwrap())
            }
            None => ([0; 3], 0),
        };
        if self.rarely(6) {
            parts[usize::from(self.pick % 3)] += 1;
        }
        if self.rarely(8) {
            parts.swap(0, 1);
        }
        let statuses = types::tx::FINISH_STATUSES;
        Body::AgentFinish(AgentFinish {
            status: statuses[usize::from(self.pick) % statuses.len()].to_owned(),
            final_answer_blob_id: self.rarely(10).then(|| self.blob()),
            ..finish(id, tokens + u64::from(self.rarely(13)), parts)
        })
    }
}
