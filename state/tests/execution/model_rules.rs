//! What the model knows of the rules from v7 on: what a place in a block costs, and what validators
//! decide by votes. Written from the protocol, in 128-bit sums, without a look at the ledger.

use std::collections::{BTreeMap, BTreeSet};

use types::tx::{ForkVote, ParamVote};
use types::{Address, Amount, Bid, Body, Params};

use crate::model_agents::ModelAgents;

/// A value, and the one that was voted for with the height from which it holds.
pub type ModelParam = (u64, Option<(u64, u64)>);

/// What validators vote on: a fork, then parameters, each by its name.
type Subject = (u8, String);

const FORK: u8 = 0;
const PARAM: u8 = 1;

/// How many of [`BOUNDS`] can be voted on before v8.
const OF_V7: usize = 11;

/// Every parameter that can be voted on, with the least and the greatest value; those of v8 last.
pub const BOUNDS: [(&str, u64, u64); 20] = [
    ("baseFeeFloor", 1, 1_000_000),
    ("maxBlockWork", 20_000, 2_000_000),
    ("registerFee", 0, 10_000_000),
    ("blobInitFee", 0, 10_000_000),
    ("blobFeePerChunk", 0, 10_000_000),
    ("refuseStake", 0, 10_000_000),
    ("unbondMs", 60_000, 2_592_000_000),
    ("pendingTtlMs", 30_000, 86_400_000),
    ("claimTtlMs", 30_000, 86_400_000),
    ("stepTtlMs", 30_000, 86_400_000),
    ("minBlockIntervalMs", 20, 10_000),
    ("minBond", 1_000_000, 1_000_000_000_000),
    ("absencePenalty", 0, 1_000_000_000),
    ("unrevealedPenalty", 0, 1_000_000_000),
    ("dissentPenalty", 0, 1_000_000_000),
    ("outsidePenalty", 0, 1_000_000_000),
    ("revealFee", 0, 1_000_000),
    ("revealMs", 5_000, 600_000),
    ("appealMs", 10_000, 86_400_000),
    ("offersPerExecutorMax", 16, 1_024),
];

/// The value of a parameter of that name.
pub fn value_of(params: &Params, name: &str) -> u64 {
    match name {
        "baseFeeFloor" => params.base_fee_floor,
        "maxBlockWork" => params.max_block_work,
        "refuseStake" => params.refuse_stake.get(),
        "unbondMs" => params.unbond_ms,
        "registerFee" => params.register_fee.get(),
        "blobInitFee" => params.blob_init_fee.get(),
        "blobFeePerChunk" => params.blob_fee_per_chunk.get(),
        "pendingTtlMs" => params.pending_ttl_ms,
        "claimTtlMs" => params.claim_ttl_ms,
        "stepTtlMs" => params.step_ttl_ms,
        "minBlockIntervalMs" => params.min_block_interval_ms,
        "minBond" => params.min_bond.get(),
        "absencePenalty" => params.absence_penalty.get(),
        "unrevealedPenalty" => params.unrevealed_penalty.get(),
        "dissentPenalty" => params.dissent_penalty.get(),
        "outsidePenalty" => params.outside_penalty.get(),
        "revealFee" => params.reveal_fee.get(),
        "revealMs" => params.reveal_ms,
        "appealMs" => params.appeal_ms,
        "offersPerExecutorMax" => params.offers_per_executor_max.into(),
        other => panic!("nobody can vote on {other}"),
    }
}

fn change(params: &mut Params, name: &str, value: u64) {
    match name {
        "baseFeeFloor" => params.base_fee_floor = value,
        "maxBlockWork" => params.max_block_work = value,
        "refuseStake" => params.refuse_stake = Amount::new(value),
        "unbondMs" => params.unbond_ms = value,
        "registerFee" => params.register_fee = Amount::new(value),
        "blobInitFee" => params.blob_init_fee = Amount::new(value),
        "blobFeePerChunk" => params.blob_fee_per_chunk = Amount::new(value),
        "pendingTtlMs" => params.pending_ttl_ms = value,
        "claimTtlMs" => params.claim_ttl_ms = value,
        "stepTtlMs" => params.step_ttl_ms = value,
        "minBlockIntervalMs" => params.min_block_interval_ms = value,
        "minBond" => params.min_bond = Amount::new(value),
        "absencePenalty" => params.absence_penalty = Amount::new(value),
        "unrevealedPenalty" => params.unrevealed_penalty = Amount::new(value),
        "dissentPenalty" => params.dissent_penalty = Amount::new(value),
        "outsidePenalty" => params.outside_penalty = Amount::new(value),
        "revealFee" => params.reveal_fee = Amount::new(value),
        "revealMs" => params.reveal_ms = value,
        "appealMs" => params.appeal_ms = value,
        "offersPerExecutorMax" => params.offers_per_executor_max = value.try_into().unwrap(),
        other => panic!("nobody can vote on {other}"),
    }
}

fn first_values(
    bounds: &'static [(&str, u64, u64)],
    params: &Params,
) -> impl Iterator<Item = (String, ModelParam)> {
    bounds.iter().map(|(name, ..)| ((*name).to_owned(), (value_of(params, name), None)))
}

/// A transaction as far as its place in a block goes.
pub struct ModelPlace<'a> {
    /// Bytes of its payload.
    pub payload: usize,
    pub bid: &'a Bid,
}

/// What a transaction pays for its place.
#[derive(Clone, Copy, Default)]
pub struct Fee {
    pub burned: i128,
    pub tip: i128,
    /// Whether it is the vote that a validator has free.
    pub is_free_vote: bool,
}

/// The rules from v7 on.
#[derive(Default)]
pub struct ModelRules {
    /// The first block with them.
    pub from: Option<u64>,
    pub base_fee: i128,
    /// Bytes in the block that is being made.
    pub used: i128,
    /// Units of work in it.
    pub worked: i128,
    /// Bytes and units of work for which it was paid.
    priced: (i128, i128),
    /// Validators that have voted in it.
    voted: BTreeSet<Address>,
    /// Heights of forks that were fixed, and by which block.
    pub forks: BTreeMap<String, (u64, u64)>,
    pub values: BTreeMap<String, ModelParam>,
    /// The last vote of each validator on each subject: a value and a height.
    votes: BTreeMap<(Address, Subject), (u64, u64)>,
    registered: BTreeSet<Address>,
}

impl ModelRules {
    pub fn new(from: Option<u64>) -> Self {
        Self { from, ..Self::default() }
    }

    pub fn are_active(&self, height: u64) -> bool {
        self.from.is_some_and(|from| height >= from)
    }

    /// Rules with the agent market, which a chain has from its start.
    pub fn with_market() -> Self {
        let mut rules = Self::new(Some(0));
        rules.forks.insert("v8".to_owned(), (0, 0));
        rules
    }

    fn v8_from(&self) -> Option<u64> {
        self.forks.get("v8").map(|(height, _)| *height)
    }

    /// Before the first transaction of a block.
    pub fn begin_block(&mut self, params: &mut Params, height: u64) {
        if !self.are_active(height) {
            return;
        }
        if self.values.is_empty() {
            self.values = first_values(&BOUNDS[..OF_V7], params).collect();
            self.base_fee = i128::from(params.base_fee_floor);
            // Genesis is block 0, and a chain that has the rules from the start has them there.
            let since = if self.from == Some(0) { 0 } else { height };
            self.forks.insert("v7".to_owned(), (self.from.unwrap(), since));
        }
        let is_first = !self.values.contains_key("minBond");
        if is_first && self.v8_from().is_some_and(|from| from <= height) {
            self.values.extend(first_values(&BOUNDS[OF_V7..], params));
        }
        for (name, row) in &mut self.values {
            if let Some((value, _)) = row.1.filter(|(_, from)| *from <= height) {
                *row = (value, None);
                change(params, name, value);
            }
        }
    }

    /// The rejection that comes before the nonce.
    pub fn early_obstacle(&self, body: &Body, bid: &Bid, height: u64) -> Option<&'static str> {
        let has_market = self.v8_from().is_some_and(|from| height >= from);
        if is_of_market(body) && !has_market {
            return Some("FORK_NOT_ACTIVE");
        }
        if self.are_active(height) {
            let is_two_tips = matches!(body, Body::Transfer(_)) && bid.tip.is_some();
            return is_two_tips.then_some("INVALID_FIELD");
        }
        let is_later_kind = matches!(
            body,
            Body::ForkVote(_)
                | Body::ParamVote(_)
                | Body::Evidence(_)
                | Body::MinerBond(_)
                | Body::MinerUnbond(_)
                | Body::AgentRefuse(_)
        );
        is_later_kind.then_some("FORK_NOT_ACTIVE")
    }

    /// What the transaction pays for its place.
    pub fn fee(
        &self,
        who: Address,
        body: &Body,
        place: &ModelPlace<'_>,
        (params, height, is_validator): (&Params, u64, bool),
    ) -> Result<Fee, &'static str> {
        if !self.are_active(height) {
            return Ok(Fee::default());
        }
        let tip = place.bid.tip.map_or(0, |tip| i128::from(tip.get()));
        let is_vote =
            matches!(body, Body::ValidatorVote(_) | Body::ForkVote(_) | Body::ParamVote(_));
        if is_vote && is_validator && !self.voted.contains(&who) {
            return Ok(Fee { burned: 0, tip, is_free_vote: true });
        }
        let highest = place.bid.max_base_fee.map_or(2_000, |most| i128::from(most.get()));
        let size = size(place.payload);
        let charged = charged(body, size);
        if matches!(body, Body::CallCommit(_) | Body::CallReveal(_)) {
            let burned = (charged * i128::from(params.base_fee_floor) + 1_023) / 1_024;
            return Ok(Fee { burned, tip, is_free_vote: false });
        }
        if charged > 0 && self.base_fee > highest {
            return Err("FEE_ABOVE_MAX");
        }
        Ok(Fee { burned: (charged * self.base_fee + 1_023) / 1_024, tip, is_free_vote: false })
    }

    /// What a kind costs from v7 on, beside what it cost before.
    pub fn cost(&self, who: Address, body: &Body, params: &Params, height: u64) -> i128 {
        match body {
            Body::MinerRegister(_)
                if self.are_active(height) && !self.registered.contains(&who) =>
            {
                i128::from(params.register_fee.get())
            }
            Body::BlobInit(_) if self.are_active(height) => i128::from(params.blob_init_fee.get()),
            Body::AgentRefuse(_) => i128::from(params.refuse_stake.get()),
            _ => 0,
        }
    }

    pub fn obstacle(
        &self,
        body: &Body,
        params: &Params,
        (height, is_validator): (u64, bool),
    ) -> Option<&'static str> {
        let (code, from, to) = match body {
            Body::ForkVote(ForkVote { fork, height: to }) => {
                let is_votable = (8..100).any(|number| *fork == format!("v{number}"));
                let is_open = is_votable && !self.forks.contains_key(fork);
                let code = (!is_open).then_some("FORK_UNKNOWN");
                (code, height + params.fork_delay_blocks, *to)
            }
            Body::ParamVote(ParamVote { name, value, height: to }) => {
                let is_v8 = self.v8_from().is_some_and(|from| height >= from);
                let votable = if is_v8 { &BOUNDS[..] } else { &BOUNDS[..OF_V7] };
                let bounds = votable.iter().find(|(known, ..)| known == name);
                let is_inside = bounds.is_some_and(|(_, min, max)| value >= min && value <= max);
                let is_whole = name != "minBlockIntervalMs" || *value <= params.heartbeat_ms;
                let code = (!is_inside || !is_whole).then_some("PARAM_BOUNDS");
                (code, height + 1, *to)
            }
            _ => return None,
        };
        if !is_validator {
            return Some("NOT_VALIDATOR");
        }
        let is_in_time = to >= from && to <= height + 1_000_000;
        code.or_else(|| (!is_in_time).then_some("INVALID_FIELD"))
    }

    /// A transaction is in the block.
    pub fn perform(&mut self, who: Address, body: &Body, fee: Fee, (size, work): (i128, i128)) {
        let charged = if fee.is_free_vote { 0 } else { charged(body, size) };
        self.used += size;
        self.worked += work;
        self.priced.0 += charged;
        self.priced.1 += work * charged / size;
        if fee.is_free_vote {
            self.voted.insert(who);
        }
        match body {
            Body::MinerRegister(_) => {
                self.registered.insert(who);
            }
            Body::ForkVote(ForkVote { fork, height }) => {
                self.votes.insert((who, (FORK, fork.clone())), (0, *height));
            }
            Body::ParamVote(ParamVote { name, value, height }) => {
                self.votes.insert((who, (PARAM, name.clone())), (*value, *height));
            }
            _ => {}
        }
    }

    /// The end of a block: what the validators of the next one have decided, as words. Then the base fee
    /// of the next block.
    pub fn end_block(
        &mut self,
        params: &Params,
        powers: &BTreeMap<Address, u64>,
        height: u64,
    ) -> Vec<String> {
        (self.used, self.worked) = (0, 0);
        let (used, worked) = std::mem::take(&mut self.priced);
        self.voted.clear();
        if !self.are_active(height) {
            return Vec::new();
        }
        self.votes.retain(|(voter, _), (_, to)| powers.contains_key(voter) && *to > height);
        let total: u128 = powers.values().map(|power| u128::from(*power)).sum();
        let subjects: BTreeSet<Subject> =
            self.votes.keys().map(|(_, subject)| subject.clone()).collect();
        let mut words = Vec::new();
        for subject in subjects {
            let on_it = self.votes.iter().filter(|((_, about), _)| *about == subject);
            let choices: BTreeSet<(u64, u64)> = on_it.map(|(_, choice)| *choice).collect();
            let has_won = |choice: &(u64, u64)| {
                let is_for = |voter: &Address| {
                    self.votes.get(&(*voter, subject.clone())).is_some_and(|it| it == choice)
                };
                let for_it = powers.iter().filter(|(voter, _)| is_for(voter));
                let sum: u128 = for_it.map(|(_, power)| u128::from(*power)).sum();
                let delay = if subject.0 == FORK { params.fork_delay_blocks } else { 1 };
                sum * 3 > total * 2 && choice.1 >= height + delay
            };
            let Some(choice) = choices.into_iter().find(has_won) else { continue };
            words.push(self.decide(&subject, choice, height));
            self.votes.retain(|(_, about), _| *about != subject);
        }
        self.base_fee = next_base_fee(self.base_fee, used, worked, params);
        words
    }

    fn decide(&mut self, (sort, name): &Subject, (value, to): (u64, u64), height: u64) -> String {
        if *sort == FORK {
            self.forks.insert(name.clone(), (to, height));
            return format!("{name}@{to}");
        }
        self.values.get_mut(name).unwrap().1 = Some((value, to));
        format!("{name}={value}@{to}")
    }
}

/// What a transaction takes of the bytes of a block.
pub fn size(payload: usize) -> i128 {
    i128::try_from(payload).unwrap() + 64
}

/// Whether v8 brought the kind.
fn is_of_market(body: &Body) -> bool {
    body.fork() == Some(types::Fork::V8)
}

/// The work of a transaction, of a run with so many excluded miners or a blob that it completes with so
/// many bytes.
pub fn work(body: &Body, payload: usize, excluded: usize, completed: u64) -> i128 {
    let up = |units: i128, parts: i128| (units + parts - 1) / parts;
    let excluded = up(i128::try_from(excluded).unwrap(), 10);
    let (rows, more) = match body {
        Body::Transfer(_) | Body::BlobFinalize(_) => (2, 0),
        Body::ChatTurn(turn) => {
            let attached = turn.attachments.as_ref().map_or(0, Vec::len);
            let named = attached + usize::from(turn.content_blob_id.is_some());
            (3 + i128::try_from(named).unwrap(), 0)
        }
        Body::AgentRequest(_) | Body::ForkVote(_) | Body::ParamVote(_) => (8, 0),
        Body::AgentClaim(_) | Body::AgentStep(_) | Body::AgentFinish(_) => (8, excluded),
        Body::AgentCancel(_) => (6, excluded),
        Body::MinerRegister(_) | Body::MinerUnbond(_) => (4, 0),
        Body::MinerBond(_) => (2, 0),
        Body::MinerOffer(_) => (5, 0),
        // What looking for members takes comes on top.
        Body::AgentCall(_) => (9, 0),
        Body::CallCommit(_) | Body::CallReveal(_) => (14, 0),
        Body::CallAppeal(_) => (64, 0),
        Body::AgentRefuse(_) => (6, excluded),
        Body::AgentRegister(agent) => {
            let bytes = i128::try_from(agent.metadata.len()).unwrap();
            (6 + ModelAgents::nested(agent), up(bytes * 12, 1_024))
        }
        Body::AgentRetire(_) => (2, 0),
        Body::BlobInit(_) => (3, 0),
        Body::BlobChunk(chunk) => {
            let stored = i128::try_from(chunk.chunk_data.len()).unwrap();
            (4, up(stored * 3, 1_024) + up(i128::from(completed), 1_024))
        }
        Body::ValidatorVote(_) => (45, 0),
        Body::Evidence(_) => (45, 100),
    };
    25 + up(size(payload) * 3, 1_024) + rows * 2 + more
}

/// For how many bytes a transaction pays that is no free vote.
fn charged(body: &Body, size: i128) -> i128 {
    match body {
        Body::Evidence(_) => 0,
        Body::AgentRequest(_) => size + 2_048,
        Body::AgentClaim(_) | Body::AgentStep(_) | Body::AgentFinish(_) => (size - 2_048).max(0),
        _ => size,
    }
}

fn next_base_fee(base_fee: i128, used: i128, worked: i128, params: &Params) -> i128 {
    let most = i128::from(params.max_block_bytes);
    let target = most / 2;
    let used = used.max(worked * most / i128::from(params.max_block_work)).min(2 * target);
    let step = (base_fee * (used - target).abs() / target / 64).max(1);
    let next = match used.cmp(&target) {
        std::cmp::Ordering::Less => base_fee - step,
        std::cmp::Ordering::Equal => base_fee,
        std::cmp::Ordering::Greater => base_fee + step,
    };
    next.clamp(i128::from(params.base_fee_floor), 1_000_000_000)
}
