//! The ledger once more, as plainly as it can be written and without a look at the real one: lists,
//! 128-bit sums, no indexes, no drafts. Slow and obvious.

use std::collections::{BTreeMap, BTreeSet};

use types::tx::{Evidence, ValidatorVote};
use types::{Address, Body, Hash, Params, PublicKey, Signature};

use crate::model_rules::{self, Fee, ModelRules, Place};
use crate::world::Who;

/// Where a run is: since when, and with whom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Life {
    Pending { since: u64 },
    Claimed { by: Address, since: u64 },
    Running { by: Address, since: u64 },
    Ended { word: String, reward: i128, refund: i128, fee: i128 },
}

pub struct ModelRun {
    pub submitter: Address,
    pub max_fee: i128,
    pub max_steps: u64,
    pub life: Life,
    pub steps: Vec<(u64, u64)>,
    pub excluded: Vec<Address>,
    reopened: u32,
}

impl ModelRun {
    pub fn word(&self) -> &str {
        match &self.life {
            Life::Pending { .. } => "pending",
            Life::Claimed { .. } => "claimed",
            Life::Running { .. } => "running",
            Life::Ended { word, .. } => word,
        }
    }

    pub fn worker(&self) -> Option<Address> {
        match self.life {
            Life::Claimed { by, .. } | Life::Running { by, .. } => Some(by),
            Life::Pending { .. } | Life::Ended { .. } => None,
        }
    }

    pub fn tokens(&self) -> i128 {
        self.steps.iter().map(|(_, tokens)| i128::from(*tokens)).sum()
    }

    /// Reward, refund and fee of AGENT_FINISH.
    pub fn division(&self) -> (i128, i128, i128) {
        let fee = i128::try_from(self.steps.len()).unwrap() * 100;
        let reward = self.tokens().min(self.max_fee - fee);
        (reward, self.max_fee - fee - reward, fee)
    }
}

pub struct ModelBlob {
    pub owner: Address,
    pub total: u64,
    pub hash: Hash,
    pub bytes: Option<Vec<u8>>,
    pub is_final: bool,
    since: u64,
}

/// Who decides, and the votes on that.
#[derive(Default)]
pub struct ModelValidators {
    pub current: BTreeMap<PublicKey, u64>,
    pub next: Option<BTreeMap<PublicKey, u64>>,
    /// By candidate and voter: power and expiry.
    votes: BTreeMap<(PublicKey, Address), (u64, u64)>,
    /// The keys that never have power again.
    pub punished: BTreeSet<PublicKey>,
    /// Those of them that this block punishes.
    losses: BTreeSet<PublicKey>,
    /// Up to which height a key decided alone.
    alone: BTreeMap<PublicKey, u64>,
}

impl ModelValidators {
    pub fn new(first: &[(Who, u64)]) -> Self {
        let current = first.iter().map(|(who, power)| (who.public_key(), *power)).collect();
        Self { current, ..Self::default() }
    }

    fn latest(&self) -> &BTreeMap<PublicKey, u64> {
        self.next.as_ref().unwrap_or(&self.current)
    }

    /// Votes for keys without power that have not agreed, when v7 begins.
    fn drop_unaccepted(&mut self) {
        let members = self.latest().clone();
        self.votes.retain(|(key, _), (power, _)| *power == 0 || members.contains_key(key));
    }

    /// What is wrong with evidence in block `height`, on a chain with v7 from block `from` on.
    fn exoneration(
        &self,
        evidence: &Evidence,
        (from, height): (u64, u64),
        most: u64,
    ) -> Option<&'static str> {
        let Evidence { validator_key: key, height: at, second_signature, .. } = evidence;
        let is_alone = self.current.len() == 1 || self.alone.get(key).is_some_and(|to| at <= to);
        let mut others = self.latest().keys().filter(|other| *other != key);
        let is_last = others.all(|other| self.punished.contains(other));
        let is_member = self.current.contains_key(key) || self.latest().contains_key(key);
        let is_in_time = *at >= from && *at + most >= height;
        let is_proved = evidence.first_value != evidence.second_value
            && *second_signature != Signature::new([0; 64]);
        if self.punished.contains(key) || !is_member || !is_in_time || !is_proved {
            return Some("EVIDENCE_INVALID");
        }
        (is_alone || is_last).then_some("VALIDATOR_SET_LIMIT")
    }

    fn obstacle(&self, who: Address, vote: &ValidatorVote, is_v7: bool) -> Option<&'static str> {
        let mut after = self.latest().clone();
        let before = after.remove(&vote.candidate_key).unwrap_or_default();
        let has_agreed = vote.consent.get().unwrap().acceptance.is_some();
        let rules = [
            ("NOT_VALIDATOR", self.current.keys().any(|key| key.address() == who)),
            ("VALIDATOR_UNCHANGED", before != vote.power),
            ("VALIDATOR_SET_LIMIT", vote.power > 0 || !after.is_empty()),
            ("ACCEPTANCE_INVALID", !is_v7 || !self.punished.contains(&vote.candidate_key)),
            ("ACCEPTANCE_INVALID", !is_v7 || vote.power == 0 || before > 0 || has_agreed),
        ];
        rules.into_iter().find(|(_, holds)| !holds).map(|(code, _)| code)
    }

    /// The changes that a block at `now` decides, as words.
    fn end_block(&mut self, now: u64, v7: Option<u64>) -> Vec<String> {
        self.votes.retain(|_, (_, expires_at)| *expires_at >= now);
        let mut changed = self.latest().clone();
        let mut words = Vec::new();
        for key in std::mem::take(&mut self.losses) {
            self.votes.retain(|(candidate, _), _| *candidate != key);
            if changed.remove(&key).is_some() {
                words.push(format!("{key}=0"));
            }
        }
        let candidates: Vec<PublicKey> = self.votes.keys().map(|(key, _)| *key).collect();
        for key in candidates {
            for power in [0, 10, 1 << 48] {
                let is_for = |voter: &PublicKey| {
                    let vote = self.votes.get(&(key, voter.address()));
                    vote.is_some_and(|vote| vote.0 == power)
                };
                let sum = |all: bool| -> u128 {
                    let members = self.current.iter().filter(|(voter, _)| all || is_for(voter));
                    members.map(|(_, power)| u128::from(*power)).sum()
                };
                let mut after = changed.clone();
                after.remove(&key);
                let is_possible = power > 0 || !after.is_empty();
                let is_new = changed.get(&key).copied().unwrap_or_default() != power;
                if sum(false) * 3 > sum(true) * 2 && is_possible && is_new {
                    if power > 0 {
                        after.insert(key, power);
                    }
                    changed = after;
                    words.push(format!("{key}={power}"));
                    self.votes.retain(|(candidate, _), _| *candidate != key);
                }
            }
        }
        let is_new = !words.is_empty();
        if let (Some(height), Some(_), 1) = (v7, &self.next, self.current.len()) {
            self.alone.extend(self.current.keys().map(|key| (*key, height)));
        }
        self.current = self.latest().clone();
        self.next = is_new.then_some(changed);
        let current = &self.current;
        self.votes.retain(|(_, voter), _| current.keys().any(|key| key.address() == *voter));
        words
    }
}

/// The whole chain.
pub struct Model {
    pub params: Params,
    pub proposer: Address,
    pub balances: BTreeMap<Address, i128>,
    pub nonces: BTreeMap<Address, u64>,
    pub runs: BTreeMap<Hash, ModelRun>,
    pub turns: Vec<(Hash, Hash)>,
    pub blobs: BTreeMap<String, ModelBlob>,
    pub burned: i128,
    pub validators: ModelValidators,
    pub rules: ModelRules,
    /// Height and timestamp of the block that is being made.
    pub height: u64,
    pub now: u64,
}

impl Model {
    /// A chain without a block on which these have money.
    pub fn new(params: Params, proposer: Address, balances: BTreeMap<Address, i128>) -> Self {
        Self {
            params,
            proposer,
            balances,
            nonces: BTreeMap::new(),
            runs: BTreeMap::new(),
            turns: Vec::new(),
            blobs: BTreeMap::new(),
            burned: 0,
            validators: ModelValidators::default(),
            rules: ModelRules::new(None),
            height: 1,
            now: 0,
        }
    }

    pub fn begin_block(&mut self) {
        if self.rules.are_active(self.height) && self.rules.values.is_empty() {
            self.validators.drop_unaccepted();
        }
        self.rules.begin_block(&mut self.params, self.height);
    }

    fn is_validator(&self, who: Address) -> bool {
        self.validators.current.keys().any(|key| key.address() == who)
    }

    pub fn balance(&self, who: Address) -> i128 {
        self.balances.get(&who).copied().unwrap_or_default()
    }

    pub fn nonce(&self, who: Address) -> u64 {
        self.nonces.get(&who).copied().unwrap_or_default()
    }

    fn give(&mut self, who: Address, amount: i128) {
        *self.balances.entry(who).or_default() += amount;
    }

    /// The work that a block counts for a transaction.
    pub fn work(&self, body: &Body, place: &Place<'_>) -> i128 {
        if !self.rules.are_active(self.height) {
            return 0;
        }
        let run = body.agent_run_id().and_then(|id| self.runs.get(&id));
        let excluded = run.map_or(0, |run| run.excluded.len());
        // Every blob has one chunk.
        let completed = match body {
            Body::BlobChunk(chunk) => self.blobs.get(&chunk.blob_id).map_or(0, |blob| blob.total),
            _ => 0,
        };
        let work = model_rules::work(body, place.payload, excluded, completed);
        work.min(i128::from(self.params.max_block_work))
    }

    /// Does what the transaction does, and answers `ok` or the code of the refusal.
    pub fn send(
        &mut self,
        who: Address,
        nonce: u64,
        body: &Body,
        hash: Hash,
        place: &Place<'_>,
    ) -> &'static str {
        if let Some(code) = self.rules.early_obstacle(body, place.bid, self.height) {
            return code;
        }
        let expected = self.nonce(who);
        if nonce < expected {
            return "NONCE_STALE";
        }
        if nonce > expected {
            return "NONCE_TOO_HIGH";
        }
        let at = (self.height, self.is_validator(who));
        let fee = match self.rules.fee(who, body, place, at) {
            Ok(fee) => fee,
            Err(code) => return code,
        };
        let later = self.rules.cost(who, body, &self.params, self.height);
        let cost = match body {
            Body::ChatTurn(_) => 100,
            Body::AgentRequest(body) => i128::from(body.max_fee.get()),
            Body::Transfer(body) => i128::from(body.amount.get()) + i128::from(body.fee.get()),
            Body::BlobChunk(_) => i128::from(self.params.blob_fee_per_chunk.get()),
            Body::AgentClaim(_)
            | Body::AgentStep(_)
            | Body::AgentFinish(_)
            | Body::AgentCancel(_)
            | Body::MinerRegister(_)
            | Body::BlobInit(_)
            | Body::BlobFinalize(_)
            | Body::ValidatorVote(_)
            | Body::Evidence(_)
            | Body::ForkVote(_)
            | Body::ParamVote(_)
            | Body::MinerBond(_)
            | Body::MinerUnbond(_)
            | Body::AgentRefuse(_) => 0,
        };
        let Fee { burned, tip, .. } = fee;
        let taken = (model_rules::size(place.payload), self.work(body, place));
        if self.balance(who) < cost + later + burned + tip {
            return "INSUFFICIENT_BALANCE";
        }
        if let Some(code) = self.obstacle(who, nonce, body) {
            return code;
        }
        self.give(who, -cost - later - burned - tip);
        self.give(self.proposer, tip);
        self.burned += burned + later;
        self.nonces.insert(who, nonce + 1);
        self.rules.perform(who, body, fee, taken);
        self.perform(who, body, hash);
        "ok"
    }

    fn obstacle(&self, who: Address, nonce: u64, body: &Body) -> Option<&'static str> {
        match body {
            Body::ChatTurn(body) => {
                if body.agent_run_id.is_some_and(|id| !self.runs.contains_key(&id)) {
                    return Some("RUN_NOT_FOUND");
                }
                let parent = body.parent_turn_hash.map(|hash| (hash, body.conversation_id));
                self.unusable_blob(body.content_blob_id.as_deref()).or_else(|| {
                    parent
                        .is_some_and(|turn| !self.turns.contains(&turn))
                        .then_some("TURN_NOT_FOUND")
                })
            }
            Body::AgentRequest(body) => {
                let text = format!("{who}{nonce}{}", body.prompt);
                if body.agent_run_id != Hash::digest(text.as_bytes()) {
                    return Some("RUN_ID_MISMATCH");
                }
                self.runs.contains_key(&body.agent_run_id).then_some("RUN_EXISTS")
            }
            Body::AgentClaim(body) => match self.runs.get(&body.agent_run_id) {
                None => Some("RUN_NOT_FOUND"),
                Some(run) if run.word() != "pending" => Some("RUN_NOT_PENDING"),
                Some(run) => run.excluded.contains(&who).then_some("MINER_EXCLUDED"),
            },
            Body::AgentCancel(body) => match self.runs.get(&body.agent_run_id) {
                None => Some("RUN_NOT_FOUND"),
                Some(run) if run.word() != "pending" => Some("RUN_NOT_PENDING"),
                Some(run) => (run.submitter != who).then_some("NOT_SUBMITTER"),
            },
            Body::AgentStep(body) => {
                let run = match self.workable(&body.agent_run_id, who) {
                    Ok(run) => run,
                    Err(code) => return Some(code),
                };
                let fee = (run.steps.len() + 1) * 100;
                let rules = [
                    ("STEP_OUT_OF_ORDER", run.steps.iter().all(|(at, _)| body.step_index > *at)),
                    ("STEP_LIMIT", body.step_index < run.max_steps),
                    ("TOKENS_LIMIT", body.output_tokens <= self.params.max_output_tokens_per_step),
                    ("ESCROW_EXHAUSTED", i128::try_from(fee).unwrap() <= run.max_fee),
                ];
                rules.into_iter().find(|(_, holds)| !holds).map(|(code, _)| code)
            }
            Body::AgentFinish(body) => {
                let run = match self.workable(&body.agent_run_id, who) {
                    Ok(run) => run,
                    Err(code) => return Some(code),
                };
                let parts = [body.miner_reward, body.user_refund, body.network_fee];
                let [reward, refund, fee] = parts.map(|part| i128::from(part.get()));
                let is_exact = (reward, refund, fee) == run.division();
                if !is_exact || i128::from(body.total_tokens_out) != run.tokens() {
                    return Some("SETTLEMENT_MISMATCH");
                }
                self.unusable_blob(body.final_answer_blob_id.as_deref())
            }
            Body::Transfer(_)
            | Body::MinerRegister(_)
            | Body::MinerBond(_)
            | Body::MinerUnbond(_)
            | Body::AgentRefuse(_) => None,
            Body::ForkVote(_) | Body::ParamVote(_) => {
                let at = (self.height, self.is_validator(who));
                self.rules.obstacle(body, &self.params, at)
            }
            Body::ValidatorVote(body) => {
                self.validators.obstacle(who, body, self.rules.are_active(self.height))
            }
            Body::Evidence(body) => {
                let from = self.rules.from.unwrap_or(u64::MAX);
                let most = self.params.evidence_age_blocks;
                self.validators.exoneration(body, (from, self.height), most)
            }
            Body::BlobInit(body) => self.blobs.contains_key(&body.blob_id).then_some("BLOB_EXISTS"),
            Body::BlobChunk(body) => match self.blobs.get(&body.blob_id) {
                None => Some("BLOB_NOT_FOUND"),
                Some(blob) => {
                    let length = u64::try_from(body.chunk_data.len()).unwrap();
                    let fits = body.chunk_index == 0 && length == blob.total;
                    if blob.bytes.is_some() || !fits {
                        return Some("BLOB_CHUNK");
                    }
                    (blob.owner != who).then_some("NOT_BLOB_OWNER")
                }
            },
            Body::BlobFinalize(body) => match self.blobs.get(&body.blob_id) {
                None => Some("BLOB_NOT_FOUND"),
                Some(blob) if blob.is_final => Some("BLOB_EXISTS"),
                Some(blob) => match &blob.bytes {
                    None => Some("BLOB_CHUNK"),
                    Some(bytes) if Hash::digest(bytes) != blob.hash => Some("BLOB_HASH"),
                    Some(_) => (blob.owner != who).then_some("NOT_BLOB_OWNER"),
                },
            },
        }
    }

    fn workable(&self, id: &Hash, who: Address) -> Result<&ModelRun, &'static str> {
        let run = self.runs.get(id).ok_or("RUN_NOT_FOUND")?;
        match run.worker() {
            None => Err("RUN_NOT_ACTIVE"),
            Some(miner) if miner != who => Err("NOT_RUN_MINER"),
            Some(_) => Ok(run),
        }
    }

    /// Whether it finalises a blob whose bytes are not those that were announced.
    pub fn has_wrong_bytes(&self, body: &Body) -> bool {
        let Body::BlobFinalize(body) = body else { return false };
        let blob = self.blobs.get(&body.blob_id);
        let bytes = blob.and_then(|blob| Some((blob.bytes.as_ref()?, blob.hash)));
        bytes.is_some_and(|(bytes, hash)| Hash::digest(bytes) != hash)
    }

    fn unusable_blob(&self, id: Option<&str>) -> Option<&'static str> {
        match self.blobs.get(id?) {
            None => Some("BLOB_NOT_FOUND"),
            Some(blob) => (!blob.is_final).then_some("BLOB_NOT_FINAL"),
        }
    }

    fn perform(&mut self, who: Address, body: &Body, hash: Hash) {
        let now = self.now;
        match body {
            Body::ChatTurn(body) => {
                self.burned += 100;
                self.turns.push((hash, body.conversation_id));
            }
            Body::AgentRequest(body) => {
                let run = ModelRun {
                    submitter: who,
                    max_fee: i128::from(body.max_fee.get()),
                    max_steps: body.max_steps,
                    life: Life::Pending { since: now },
                    steps: Vec::new(),
                    excluded: Vec::new(),
                    reopened: 0,
                };
                self.runs.insert(body.agent_run_id, run);
            }
            Body::AgentClaim(body) => {
                let run = self.runs.get_mut(&body.agent_run_id).unwrap();
                run.life = Life::Claimed { by: who, since: now };
            }
            Body::AgentStep(body) => {
                let run = self.runs.get_mut(&body.agent_run_id).unwrap();
                run.steps.push((body.step_index, body.output_tokens));
                run.life = Life::Running { by: who, since: now };
            }
            Body::AgentFinish(body) => {
                let division = self.runs[&body.agent_run_id].division();
                self.end(body.agent_run_id, &body.status, Some(who), division);
            }
            Body::AgentCancel(body) => {
                let refund = self.runs[&body.agent_run_id].max_fee;
                self.end(body.agent_run_id, "cancelled", None, (0, refund, 0));
            }
            Body::Transfer(body) => {
                self.give(body.to.address, i128::from(body.amount.get()));
                self.give(self.proposer, i128::from(body.fee.get()));
            }
            Body::MinerRegister(_)
            | Body::ForkVote(_)
            | Body::ParamVote(_)
            | Body::MinerBond(_)
            | Body::MinerUnbond(_)
            | Body::AgentRefuse(_) => {}
            Body::Evidence(body) => {
                self.validators.punished.insert(body.validator_key);
                self.validators.losses.insert(body.validator_key);
            }
            Body::ValidatorVote(body) => {
                let vote = (body.power, body.expires_at);
                self.validators.votes.insert((body.candidate_key, who), vote);
            }
            Body::BlobInit(body) => {
                let blob = ModelBlob {
                    owner: who,
                    total: body.total_bytes,
                    hash: body.content_hash,
                    bytes: None,
                    is_final: false,
                    since: now,
                };
                self.blobs.insert(body.blob_id.clone(), blob);
            }
            Body::BlobChunk(body) => {
                self.burned += i128::from(self.params.blob_fee_per_chunk.get());
                let blob = self.blobs.get_mut(&body.blob_id).unwrap();
                blob.bytes = Some(body.chunk_data.clone());
            }
            Body::BlobFinalize(body) => {
                self.blobs.get_mut(&body.blob_id).unwrap().is_final = true;
            }
        }
    }

    fn end(&mut self, id: Hash, word: &str, miner: Option<Address>, division: (i128, i128, i128)) {
        let (reward, refund, fee) = division;
        let run = self.runs.get_mut(&id).unwrap();
        assert_eq!(reward + refund + fee, run.max_fee);
        run.life = Life::Ended { word: word.to_owned(), reward, refund, fee };
        let submitter = run.submitter;
        self.give(submitter, refund);
        if let Some(miner) = miner {
            self.give(miner, reward);
        }
        self.burned += fee;
    }

    /// The end of a block: what was swept, by id.
    pub fn end_block(&mut self) -> Vec<String> {
        let mut due: Vec<(u64, bool, String)> = Vec::new();
        for (id, run) in &self.runs {
            let deadline = match run.life {
                Life::Pending { since } => since + self.params.pending_ttl_ms,
                Life::Claimed { since, .. } => since + self.params.claim_ttl_ms,
                Life::Running { since, .. } => since + self.params.step_ttl_ms,
                Life::Ended { .. } => continue,
            };
            due.push((deadline, false, id.to_string()));
        }
        for (id, blob) in self.blobs.iter().filter(|(_, blob)| !blob.is_final) {
            due.push((blob.since + self.params.blob_ttl_ms, true, id.clone()));
        }
        due.retain(|(deadline, ..)| *deadline < self.now);
        due.sort();
        let most = self.params.max_expiries_per_block.try_into().unwrap();
        if self.rules.are_active(self.height) {
            // Runs and blobs have budgets of their own.
            let (mut blobs, mut runs): (Vec<_>, Vec<_>) =
                due.into_iter().partition(|(_, is_blob, _)| *is_blob);
            blobs.truncate(most);
            runs.truncate(most);
            due = [runs, blobs].concat();
        } else {
            due.truncate(most);
        }
        for (_, is_blob, id) in &due {
            if *is_blob {
                self.blobs.remove(id);
            } else {
                self.expire(Hash::parse(id).unwrap());
            }
        }
        self.give(self.proposer, i128::from(self.params.block_reward.get()));
        let mut told: Vec<String> = due.into_iter().map(|(_, _, id)| id).collect();
        let v7 = self.rules.are_active(self.height).then_some(self.height);
        told.extend(self.validators.end_block(self.now, v7));
        let current = self.validators.current.iter();
        let powers = current.map(|(key, power)| (key.address(), *power)).collect();
        told.extend(self.rules.end_block(&self.params, &powers, self.height));
        self.height += 1;
        told
    }

    fn expire(&mut self, id: Hash) {
        let run = self.runs.get_mut(&id).unwrap();
        if let Life::Claimed { by, .. } = run.life {
            run.excluded.push(by);
            if run.reopened < self.params.max_reopens {
                run.reopened += 1;
                run.life = Life::Pending { since: self.now };
                return;
            }
        }
        let (_, _, fee) = run.division();
        let refund = run.max_fee - fee;
        self.end(id, "timeout", None, (0, refund, fee));
    }
}
