//! Random transactions: most of them sensible, all of them through the static checks.

use std::ops::Range;

use proptest::prelude::*;
use types::tx::{AgentFinish, AgentRequest, ForkVote, MinerRegister, ParamVote};
use types::{Amount, Bid, Body, Hash, Signature, ids};

use crate::model::Model;
use crate::world::{
    START, Who, bare_vote, blob_chunk, blob_finalize, blob_init, cancel, claim, conversation,
    evidence, step, transfer, turn, vote_until,
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

/// Acts of every kind, on a chain whose rules can change, too.
pub fn acts_and_all_votes(most: usize) -> impl Strategy<Value = Vec<Act>> {
    acts_of(0..62, most)
}

fn acts_of(kinds: Range<u8>, most: usize) -> impl Strategy<Value = Vec<Act>> {
    let act = (kinds, 1_u8..7, any::<u8>(), any::<u8>(), any::<u16>());
    let act =
        act.prop_map(|(kind, who, pick, twist, amount)| Act { kind, who, pick, twist, amount });
    prop::collection::vec(act, 1..most)
}

impl Act {
    /// Whether a block ends here.
    pub fn ends_block(&self) -> bool {
        (22..24).contains(&self.kind) && self.pick < 200
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

    fn blob(&self) -> String {
        format!("blob{}", self.pick % 5)
    }

    /// Who acts: mostly whoever may.
    pub fn sender(&self, model: &Model) -> Who {
        let any = Who(self.who);
        let run = model.runs.get(&self.run(model));
        let right = match self.kind {
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
            0..=1 => self.chat(model),
            2..=5 => self.request(sender, nonce),
            6..=8 => claim(sender, self.run(model)),
            9..=13 => {
                let id = self.run(model);
                let last = model.runs.get(&id).and_then(|run| run.steps.last().copied());
                let next = last.map_or(0, |(index, _)| index + 1);
                let index = if self.rarely(9) { u64::from(self.pick % 5) } else { next };
                step(id, index, amount % 1_050)
            }
            14..=15 => self.finish(model),
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
            56.. => self.evidence(model.height),
            _ => Body::MinerRegister(MinerRegister {
                name: format!("miner {amount}"),
                capabilities: Vec::new(),
                model_info: "model".to_owned(),
            }),
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

    /// A height near that of the open block, mostly one that others vote for, too.
    fn height(&self, open: u64) -> u64 {
        if self.rarely(9) { open + u64::from(self.pick % 3) } else { (open / 4 + 1) * 4 + 1 }
    }

    fn fork_vote(&self, open: u64) -> Body {
        let forks = ["v8", "v8", "v8", "v8", "v9", "v9", "v7", "v100"];
        let fork = forks[usize::from(self.pick) % forks.len()].to_owned();
        Body::ForkVote(ForkVote { fork, height: self.height(open) })
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
        let height = self.height(open);
        Body::ParamVote(ParamVote { name: name.to_owned(), value, height })
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
        let prompt = ["x", "1x", "11x"][usize::from(self.pick % 3)].to_owned();
        let id_nonce = if self.rarely(20) { nonce + 1 } else { nonce };
        let from = sender.address().to_string();
        let max_fee = if self.rarely(11) { 9_000_000 } else { 100 + u64::from(self.amount) % 900 };
        Body::AgentRequest(AgentRequest {
            agent_run_id: ids::compute_agent_run_id(&from, id_nonce, &prompt),
            conversation_id: conversation(),
            prompt,
            tools_whitelist: Vec::new(),
            max_fee: Amount::new(max_fee),
            max_steps: 1 + u64::from(self.amount % 6),
            prompt_blob_id: None,
            model_hint: None,
            protection: types::Late::default(),
        })
    }

    fn finish(&self, model: &Model) -> Body {
        let id = self.run(model);
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
            agent_run_id: id,
            total_tokens_out: tokens + u64::from(self.rarely(13)),
            status: statuses[usize::from(self.pick) % statuses.len()].to_owned(),
            miner_reward: Amount::new(parts[0]),
            user_refund: Amount::new(parts[1]),
            network_fee: Amount::new(parts[2]),
            final_answer_inline: None,
            final_answer_blob_id: self.rarely(10).then(|| self.blob()),
        })
    }
}
