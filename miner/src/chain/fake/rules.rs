//! The rules of the chain in memory (docs/protocol.md section 5), as far as a miner meets them.

use std::collections::BTreeMap;

use types::tx::{AgentClaim, AgentFinish, AgentStep, BlobChunk, BlobFinalize, BlobInit};
use types::{Address, Body, Hash, Keypair, Params, RunStatus, Transaction};
use wallet::{Envelope, Signed};

use super::{CHAIN, State, parse};
use crate::chain::{BlobView, Fate, RunView, StepView};

/// How far a nonce may be beyond the next one.
const WINDOW: u64 = 64;

impl State {
    pub(super) fn execute(&mut self, tx: &Transaction) -> Result<(), &'static str> {
        let from = tx.from();
        let nonce = self.nonces.get(&from).copied().unwrap_or_default();
        if tx.nonce() != nonce {
            return Err(if tx.nonce() < nonce { "NONCE_STALE" } else { "NONCE_TOO_HIGH" });
        }
        match tx.body() {
            Body::AgentClaim(claim) => self.claim(claim.agent_run_id, from)?,
            Body::AgentStep(step) => self.step(step, from)?,
            Body::AgentFinish(finish) => self.finish(finish, from)?,
            Body::ChatTurn(turn) => {
                self.burn(from, 100)?;
                self.turns.push((turn.role.clone(), turn.content.clone()));
            }
            Body::Transfer(transfer) => {
                self.burn(from, transfer.amount.get() + transfer.fee.get())?;
                *self.balances.entry(transfer.to.address).or_default() += transfer.amount.get();
            }
            Body::BlobInit(init) => self.blob_init(init, from)?,
            Body::BlobChunk(chunk) => self.blob_chunk(chunk, from)?,
            Body::BlobFinalize(end) => self.blob_finalize(end)?,
            Body::AgentRequest(_)
            | Body::AgentCancel(_)
            | Body::MinerRegister(_)
            | Body::ValidatorVote(_) => return Err("UNSUPPORTED_TYPE"),
        }
        self.nonces.insert(from, nonce + 1);
        self.included.insert(tx.hash());
        self.log.push((from, tx.body().type_name(), tx.nonce()));
        Ok(())
    }

    fn claim(&mut self, id: Hash, miner: Address) -> Result<(), &'static str> {
        let deadline_ms = Some(self.now_ms + 120_000);
        let run = self.runs.get_mut(&id).ok_or("RUN_NOT_FOUND")?;
        if run.status != RunStatus::Pending {
            return Err("RUN_NOT_PENDING");
        }
        if run.excluded.contains(&miner) {
            return Err("MINER_EXCLUDED");
        }
        (run.status, run.miner, run.deadline_ms) = (RunStatus::Claimed, Some(miner), deadline_ms);
        Ok(())
    }

    fn step(&mut self, step: &AgentStep, miner: Address) -> Result<(), &'static str> {
        if let Some(left) = self.bad_steps.checked_sub(1) {
            self.bad_steps = left;
            return Err("STEP_OUT_OF_ORDER");
        }
        if step.output_tokens > self.step_tokens_limit() {
            return Err("TOKENS_LIMIT");
        }
        let deadline_ms = Some(self.now_ms + 600_000);
        let run = open(&mut self.runs, &step.agent_run_id, miner)?;
        let steps = self.steps.entry(run.id).or_default();
        if steps.last().is_some_and(|last| last.index >= step.step_index) {
            return Err("STEP_OUT_OF_ORDER");
        }
        if step.step_index >= run.steps_max {
            return Err("STEP_LIMIT");
        }
        if (run.steps + 1) * 100 > run.max_fee_micro {
            return Err("ESCROW_EXHAUSTED");
        }
        for id in [&step.thought_blob_id, &step.output_blob_id].into_iter().flatten() {
            if !self.blobs.get(id).ok_or("BLOB_NOT_FOUND")?.0.is_final {
                return Err("BLOB_NOT_FINAL");
            }
        }
        let calls = step.tool_calls.iter().flatten();
        steps.push(StepView {
            index: step.step_index,
            output_tokens: step.output_tokens,
            output_hash: step.output_hash,
            calls: calls.map(|call| (call.args_hash, call.result_hash)).collect(),
        });
        run.steps += 1;
        run.tokens += step.output_tokens;
        (run.status, run.deadline_ms) = (RunStatus::Running, deadline_ms);
        self.step_bodies.push(step.clone());
        Ok(())
    }

    pub(super) fn step_tokens_limit(&self) -> u64 {
        self.step_tokens_max.unwrap_or_else(|| Params::default().max_output_tokens_per_step)
    }

    fn finish(&mut self, finish: &AgentFinish, miner: Address) -> Result<(), &'static str> {
        let run = open(&mut self.runs, &finish.agent_run_id, miner)?;
        let fee = run.steps * 100;
        let reward = run.tokens.min(run.max_fee_micro - fee);
        let refund = run.max_fee_micro - fee - reward;
        let stated =
            [finish.miner_reward, finish.user_refund, finish.network_fee].map(|it| it.get());
        if finish.total_tokens_out != run.tokens || stated != [reward, refund, fee] {
            return Err("SETTLEMENT_MISMATCH");
        }
        run.status = RunStatus::parse(&finish.status).ok_or("INVALID_FIELD")?;
        (run.reward_micro, run.deadline_ms) = (Some(reward), None);
        *self.balances.entry(miner).or_default() += reward;
        self.answers.insert(run.id, finish.clone());
        Ok(())
    }

    pub(super) fn rival_claim(&self, run: Hash, rival: &Keypair) -> Transaction {
        let claim = AgentClaim {
            agent_run_id: run,
            miner_address: rival.address().into(),
            model_info: "other".into(),
            hardware_tier: "server".into(),
        };
        let nonce = self.nonces.get(&rival.address()).copied().unwrap_or_default();
        let envelope = Envelope { nonce, timestamp: self.now_ms, chain_id: Some(CHAIN.into()) };
        parse(Signed::new(rival, &envelope, &Body::AgentClaim(claim)).text()).unwrap()
    }

    /// What is wrong with a nonce: one that is used up or pending, or far beyond the next one.
    pub(super) fn nonce_fault(&self, tx: &Transaction) -> Option<&'static str> {
        let (nonce, from) = (tx.nonce(), tx.from());
        let is_pooled = |other: &Transaction| (other.from(), other.nonce()) == (from, nonce);
        if nonce < self.nonces.get(&from).copied().unwrap_or_default() {
            Some("NONCE_STALE")
        } else if self.pool.iter().any(is_pooled) {
            Some("NONCE_TAKEN")
        } else {
            (nonce >= self.next_nonce(&from) + WINDOW).then_some("NONCE_TOO_HIGH")
        }
    }

    /// The nonce after those that are in blocks or in the pool without a gap.
    pub(super) fn next_nonce(&self, address: &Address) -> u64 {
        let mut next = self.nonces.get(address).copied().unwrap_or_default();
        while self.pool.iter().any(|tx| (tx.from(), tx.nonce()) == (*address, next)) {
            next += 1;
        }
        next
    }

    fn burn(&mut self, from: Address, micro: u64) -> Result<(), &'static str> {
        let balance = self.balances.entry(from).or_default();
        *balance = balance.checked_sub(micro).ok_or("INSUFFICIENT_BALANCE")?;
        Ok(())
    }

    fn blob_init(&mut self, init: &BlobInit, from: Address) -> Result<(), &'static str> {
        if self.blobs.contains_key(&init.blob_id) {
            return Err("BLOB_EXISTS");
        }
        let content_hash = init.content_hash;
        let view = BlobView { owner: from, received: 0, is_final: false, content_hash };
        self.blobs.insert(init.blob_id.clone(), (view, init.total_chunks, vec![]));
        Ok(())
    }

    fn blob_chunk(&mut self, chunk: &BlobChunk, from: Address) -> Result<(), &'static str> {
        let blob = self.blobs.get(&chunk.blob_id).ok_or("BLOB_NOT_FOUND")?;
        if chunk.chunk_index != blob.0.received || chunk.chunk_index >= blob.1 {
            return Err("BLOB_CHUNK");
        }
        self.burn(from, 100)?;
        let blob = self.blobs.get_mut(&chunk.blob_id).ok_or("BLOB_NOT_FOUND")?;
        blob.0.received += 1;
        blob.2.extend_from_slice(&chunk.chunk_data);
        Ok(())
    }

    fn blob_finalize(&mut self, end: &BlobFinalize) -> Result<(), &'static str> {
        let blob = self.blobs.get_mut(&end.blob_id).ok_or("BLOB_NOT_FOUND")?;
        if blob.0.is_final || Hash::digest(&blob.2) != blob.0.content_hash {
            return Err("BLOB_HASH");
        }
        blob.0.is_final = true;
        Ok(())
    }

    pub(super) fn fate(&self, tx: &Hash) -> Fate {
        if self.included.contains(tx) {
            return Fate::Included;
        }
        if let Some(code) = self.dropped.get(tx) {
            return Fate::Dropped(code.clone());
        }
        let is_pooled = self.pool.iter().any(|pooled| pooled.hash() == *tx);
        if is_pooled { Fate::Pending } else { Fate::Unknown }
    }

    /// Acts on deadlines as docs/protocol.md section 5.7 says.
    pub(crate) fn sweep(&mut self) {
        for run in self.runs.values_mut() {
            if run.deadline_ms.is_none_or(|deadline| deadline > self.now_ms) {
                continue;
            }
            if run.status == RunStatus::Claimed {
                run.excluded.extend(run.miner.take());
                run.status = RunStatus::Pending;
                run.deadline_ms = Some(self.now_ms + 900_000);
            } else {
                (run.status, run.deadline_ms) = (RunStatus::Timeout, None);
            }
        }
    }
}

fn open<'a>(
    runs: &'a mut BTreeMap<Hash, RunView>,
    id: &Hash,
    miner: Address,
) -> Result<&'a mut RunView, &'static str> {
    let run = runs.get_mut(id).ok_or("RUN_NOT_FOUND")?;
    if !matches!(run.status, RunStatus::Claimed | RunStatus::Running) {
        return Err("RUN_NOT_ACTIVE");
    }
    if run.miner == Some(miner) { Ok(run) } else { Err("NOT_RUN_MINER") }
}
