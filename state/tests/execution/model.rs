//! The ledger once more, as plainly as it can be written and without a look at the real one: lists,
//! 128-bit sums, no indexes, no drafts. Slow and obvious.

use std::collections::BTreeMap;

use types::tx::AgentCall;
use types::{Address, Body, Hash, Params};

use crate::model_agents::{ModelAgent, ModelAgents, ModelVersion};
use crate::model_bonds::{ModelBonds, ModelProtection};
use crate::model_calls::{self, Around, Begins, Look, ModelCalls};
use crate::model_offers::ModelOffers;
use crate::model_rules::{self, Fee, ModelPlace, ModelRules};
use crate::model_validators::ModelValidators;

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
    pub protection: ModelProtection,
    /// What its claim locks of the miner's bond.
    pub locked: i128,
    /// Whose reward is held, and until when.
    pub held: Option<(Address, u64)>,
    pub is_refused: bool,
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

    /// Whether it waits for another miner if its miner leaves it.
    pub fn waits_again(&self, most: u32) -> bool {
        let named = &self.protection.miners;
        let is_left = |one| self.worker() != Some(one) && !self.excluded.contains(&one);
        self.reopened < most && (named.is_empty() || named.iter().copied().any(is_left))
    }

    /// What is in its escrow.
    pub fn escrow(&self) -> i128 {
        match self.life {
            Life::Ended { reward, .. } => self.held.map_or(0, |_| reward),
            Life::Pending { .. } | Life::Claimed { .. } | Life::Running { .. } => self.max_fee,
        }
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

/// The whole chain.
#[derive(Default)]
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
    pub stakes: ModelBonds,
    pub agents: ModelAgents,
    pub offers: ModelOffers,
    pub calls: ModelCalls,
    /// Height and timestamp of the block that is being made.
    pub height: u64,
    pub now: u64,
}

impl Model {
    /// A chain without a block on which these have money.
    pub fn new(params: Params, proposer: Address, balances: BTreeMap<Address, i128>) -> Self {
        Self { params, proposer, balances, height: 1, ..Self::default() }
    }

    pub fn begin_block(&mut self) {
        if self.rules.are_active(self.height) && self.rules.values.is_empty() {
            self.validators.drop_unaccepted();
        }
        self.rules.begin_block(&mut self.params, self.height);
    }

    /// The elections before the transactions of a block.
    pub fn elect(&mut self, begins: &Begins) {
        let Self { offers, stakes, params, .. } = self;
        let (moves, burned) =
            self.calls.begin_block(begins, &mut Around { offers, stakes, params });
        self.burned += burned;
        moves.into_iter().for_each(|(who, amount)| self.give(who, amount));
    }

    const fn look(&self) -> Look<'_> {
        Look { offers: &self.offers, stakes: &self.stakes, params: &self.params }
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
    pub fn work(&self, who: Address, body: &Body, place: &ModelPlace<'_>) -> i128 {
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
        // The place of each offer is left and taken when the bond changes.
        let moved = match body {
            Body::MinerBond(_) | Body::MinerUnbond(_) => 4 * self.offers.count(who),
            _ => 0,
        };
        let work = model_rules::work(body, place.payload, excluded, completed)
            + i128::try_from(moved).unwrap()
            + self.work_of_call(who, body);
        let most = i128::from(self.params.max_block_work);
        match body {
            Body::AgentCall(_) | Body::CallAppeal(_) => work.max((most + 511) / 512).min(most),
            _ => work.min(most),
        }
    }

    /// What looking for members and writing them takes.
    fn work_of_call(&self, who: Address, body: &Body) -> i128 {
        let offers = usize::try_from(self.params.offers_per_executor_max).unwrap();
        let units = |members: usize, executors: usize| {
            i128::try_from(2 * 6 * members + 2 * offers * executors).unwrap()
        };
        match body {
            Body::AgentCall(body) => self.version_of(body).map_or(0, |(_, version)| {
                units(usize::try_from(body.committee_size).unwrap(), version.executors.len())
            }),
            Body::CallAppeal(body) => {
                let appeal = self.calls.second_round(who, &body.call_id, &self.look());
                let executors =
                    self.calls.all.get(&body.call_id).map_or(0, |it| it.executors.len());
                appeal.map_or(0, |appeal| 2 * units(appeal.size, executors))
            }
            _ => 0,
        }
    }

    fn version_of(&self, body: &AgentCall) -> Option<(&ModelAgent, &ModelVersion)> {
        let agent = self.agents.all.get(&body.agent_id)?;
        Some((agent, agent.versions.get(&model_calls::version_of(body)?)?))
    }

    /// Does what the transaction does, and answers `ok` or the code of the rejection.
    pub fn send(
        &mut self,
        who: Address,
        nonce: u64,
        body: &Body,
        hash: Hash,
        place: &ModelPlace<'_>,
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
        let at = (&self.params, self.height, self.is_validator(who));
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
            Body::MinerBond(body) => i128::from(body.amount.get()),
            Body::AgentRegister(body) => ModelAgents::fee(body),
            Body::AgentCall(body) => i128::from(body.max_fee.get()),
            Body::CallAppeal(body) => self.calls.least_cost(&body.call_id),
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
            | Body::MinerUnbond(_)
            | Body::MinerOffer(_)
            | Body::AgentRefuse(_)
            | Body::AgentRetire(_)
            | Body::CallCommit(_)
            | Body::CallReveal(_) => 0,
        };
        let Fee { burned, tip, .. } = fee;
        let taken = (model_rules::size(place.payload), self.work(who, body, place));
        if self.balance(who) < cost + later + burned + tip {
            return "INSUFFICIENT_BALANCE";
        }
        if let Some(code) = self.obstacle(who, nonce, body) {
            return code;
        }
        // How large a second round is shows only then.
        let appeal = match body {
            Body::CallAppeal(body) => {
                self.calls.second_round(who, &body.call_id, &self.look()).ok()
            }
            _ => None,
        };
        let cost = appeal.as_ref().map_or(cost, |appeal| appeal.payment + appeal.deposit);
        if self.balance(who) < cost + later + burned + tip {
            return "INSUFFICIENT_BALANCE";
        }
        if let (Some(appeal), Body::CallAppeal(body)) = (appeal, body) {
            self.calls.appeal(&body.call_id, appeal, self.height);
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
                Some(run) if run.excluded.contains(&who) => Some("MINER_EXCLUDED"),
                Some(run) => run.protection.obstacle(who, self.stakes.free(who)),
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
                let tokens_max = self.params.max_output_tokens_per_step;
                let tokens_max =
                    run.protection.tokens_max.map_or(tokens_max, |own| own.min(tokens_max));
                let rules = [
                    ("STEP_OUT_OF_ORDER", run.steps.iter().all(|(at, _)| body.step_index > *at)),
                    ("STEP_LIMIT", body.step_index < run.max_steps),
                    ("TOKENS_LIMIT", body.output_tokens <= tokens_max),
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
            Body::MinerUnbond(body) => {
                let is_free = i128::from(body.amount.get()) <= self.stakes.free(who);
                (!is_free).then_some("BOND_TOO_SMALL")
            }
            Body::MinerOffer(body) => {
                let (bonded, _) = self.stakes.of(who);
                let least = i128::from(self.params.min_bond.get());
                self.offers.obstacle(who, body, (bonded, least))
            }
            Body::AgentRegister(body) => self.agents.obstacle(who, body, |blob| {
                self.blobs.get(blob).is_some_and(|blob| blob.is_final && blob.total <= 4_194_304)
            }),
            Body::AgentRetire(body) => self.agents.kept(who, body),
            Body::AgentCall(body) => {
                let Some((agent, version)) = self.version_of(body) else {
                    return Some("AGENT_NOT_FOUND");
                };
                if agent.is_retired {
                    return Some("AGENT_RETIRED");
                }
                ModelCalls::obstacle(who, nonce, body, (version, &self.params))
            }
            Body::CallCommit(body) => self.calls.may_commit(who, body).err(),
            Body::CallReveal(body) => self.calls.may_reveal(who, body).err(),
            Body::CallAppeal(body) => {
                self.calls.second_round(who, &body.call_id, &self.look()).err()
            }
            Body::AgentRefuse(body) => match self.runs.get(&body.agent_run_id) {
                None => Some("RUN_NOT_FOUND"),
                Some(run) if run.held.is_none() => Some("REFUSE_CLOSED"),
                Some(run) => (run.submitter != who).then_some("NOT_SUBMITTER"),
            },
            Body::Transfer(_) | Body::MinerRegister(_) | Body::MinerBond(_) => None,
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
                    protection: if self.rules.are_active(self.height) {
                        ModelProtection::of(body)
                    } else {
                        ModelProtection::default()
                    },
                    locked: 0,
                    held: None,
                    is_refused: false,
                    reopened: 0,
                };
                self.runs.insert(body.agent_run_id, run);
            }
            Body::AgentClaim(body) => {
                let run = self.runs.get_mut(&body.agent_run_id).unwrap();
                run.life = Life::Claimed { by: who, since: now };
                run.locked = run.protection.claim_bond;
                self.stakes.lock(who, run.locked);
            }
            Body::AgentStep(body) => {
                let run = self.runs.get_mut(&body.agent_run_id).unwrap();
                run.steps.push((body.step_index, body.output_tokens));
                run.life = Life::Running { by: who, since: now };
            }
            Body::AgentFinish(body) => self.finish(body.agent_run_id, &body.status, who),
            Body::AgentCancel(body) => {
                let refund = self.runs[&body.agent_run_id].max_fee;
                self.end(body.agent_run_id, "cancelled", None, (0, refund, 0));
            }
            Body::Transfer(body) => {
                self.give(body.to.address, i128::from(body.amount.get()));
                self.give(self.proposer, i128::from(body.fee.get()));
            }
            Body::MinerRegister(_) | Body::ForkVote(_) | Body::ParamVote(_) => {}
            Body::MinerBond(body) => self.stakes.add(who, i128::from(body.amount.get())),
            Body::MinerUnbond(body) => {
                let due = now + self.params.unbond_ms;
                self.stakes.take_out(who, i128::from(body.amount.get()), due);
            }
            Body::MinerOffer(body) => self.offers.set(who, body),
            Body::AgentCall(body) => {
                let agent = &self.agents.all[&body.agent_id];
                let version = &agent.versions[&model_calls::version_of(body).unwrap()];
                let at = (&self.params, self.height);
                self.calls.ask(who, body, (agent.owner, version), at);
            }
            Body::CallCommit(body) => self.calls.commit(who, body),
            Body::CallReveal(body) => self.calls.reveal(who, body),
            // Done with what it costs.
            Body::CallAppeal(_) => {}
            Body::AgentRefuse(body) => self.refuse(body.agent_run_id),
            Body::AgentRegister(body) => {
                self.burned += ModelAgents::fee(body);
                self.agents.register(who, body);
            }
            Body::AgentRetire(body) => self.agents.retire(body),
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

    /// The miner ends a run.
    fn finish(&mut self, id: Hash, word: &str, miner: Address) {
        let run = self.runs.get_mut(&id).unwrap();
        let (submitter, refuse_ms, division) =
            (run.submitter, run.protection.refuse_ms, run.division());
        let gives_up = run.locked > 0 && run.steps.is_empty() && word != "completed";
        if gives_up && run.waits_again(self.params.max_reopens) {
            run.excluded.push(miner);
            run.reopened += 1;
            run.life = Life::Pending { since: self.now };
            self.release(id, miner, 100);
            return;
        }
        if gives_up {
            self.release(id, miner, 100);
        } else if word == "completed" && run.tokens() == 0 {
            self.release(id, miner, i128::MAX);
        } else if refuse_ms == 0 {
            self.release(id, miner, 0);
        }
        let paid_now = (refuse_ms == 0).then_some(miner);
        self.end(id, word, paid_now, division);
        if refuse_ms > 0 {
            self.runs.get_mut(&id).unwrap().held = Some((miner, self.now + refuse_ms));
            self.stakes.figures.entry(submitter).or_default().0 += 1;
        }
    }

    /// The submitter refuses a reward that is held.
    fn refuse(&mut self, id: Hash) {
        let run = self.runs.get_mut(&id).unwrap();
        let (reward, _, _) = run.division();
        let (miner, _) = run.held.take().unwrap();
        run.is_refused = true;
        let submitter = run.submitter;
        self.burned += reward;
        self.stakes.figures.entry(submitter).or_default().1 += 1;
        self.release(id, miner, reward + i128::from(self.params.refuse_stake.get()));
    }

    /// Of what is locked for a run so much is burned, and the rest is free, at the end of the block.
    fn release(&mut self, id: Hash, miner: Address, burned: i128) {
        let locked = std::mem::take(&mut self.runs.get_mut(&id).unwrap().locked);
        self.stakes.release(id, miner, locked, burned);
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
                Life::Ended { .. } => match run.held {
                    Some((_, until)) => until,
                    None => continue,
                },
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
        let mut told: Vec<String> = due.into_iter().map(|(_, _, id)| id).collect();
        for (miner, amount, word) in self.stakes.pay(self.now, most) {
            self.give(miner, amount);
            told.push(word);
        }
        let Self { offers, stakes, params, .. } = self;
        let at = (self.height, self.now);
        let (moves, burned) = self.calls.end_block(at, &mut Around { offers, stakes, params });
        self.burned += burned;
        moves.into_iter().for_each(|(who, amount)| self.give(who, amount));
        let (burned, words) = self.stakes.end_block();
        self.burned += burned;
        told.extend(words);
        self.give(self.proposer, i128::from(self.params.block_reward.get()));
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
        if let Some((miner, _)) = run.held.take() {
            let (reward, _, _) = run.division();
            self.give(miner, reward);
            self.release(id, miner, 0);
            return;
        }
        if let Some(miner) = run.worker() {
            self.release(id, miner, i128::MAX);
        }
        let run = self.runs.get_mut(&id).unwrap();
        if let Life::Claimed { by, .. } = run.life {
            let waits_again = run.waits_again(self.params.max_reopens);
            run.excluded.push(by);
            if waits_again {
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
