//! The worker of a request: looks where it is, and does the one thing that is next.

use std::time::Duration;

use miner::outbox::{Halt, Pauses, patiently};
use tokio::sync::watch;
use types::tx::{AgentCancel, Protection};
use types::{Amount, Body, Code, Hash, ids};
use wallet::client::records::Run;
use wallet::sign::{Request, claim_bond_default};

use super::ended::ended;
use super::service::PAUSE_MS;
use super::{Job, Progress, RequestService};
use crate::model::Model;
use crate::openai::ApiFault;
use crate::question::Question;
use crate::record::{Bill, Included, Phase, Purpose, Record, RequestId, Unpaid, Work};
use crate::store::About;

/// A run or a call is asked for at least so often, whatever the subscriptions say.
pub(super) const POLL: Duration = Duration::from_secs(2);
/// How often an answer is asked for that the chain says there is.
pub(super) const ANSWER_TRIES: u32 = 5;

/// How often a request is signed. Another program that uses the wallet may take a nonce now and then; a node
/// that always says so would get one signed request after the other, each with an escrow of its own.
const SIGNED_MAX: u32 = 3;

/// Somebody works on it, and so many steps are done. Who waits is woken only by news.
pub(super) fn tell_steps(tell: &watch::Sender<Progress>, steps: u64) {
    tell.send_if_modified(|it| {
        let before = (it.is_claimed, it.steps);
        (it.is_claimed, it.steps) = (true, steps);
        before != (true, steps)
    });
}

impl RequestService {
    /// Brings a request to its end, and tells how far it is.
    pub(super) async fn work(
        &self,
        id: RequestId,
        job: Option<Job>,
        tell: &watch::Sender<Progress>,
    ) -> Result<(), Halt> {
        let (mut signed, mut pauses) = (0_u32, Pauses::new(PAUSE_MS));
        loop {
            let Some(record) = self.store.request(id)? else {
                tell.send_modify(|it| it.end(Err(ApiFault::internal())));
                return Ok(());
            };
            tell.send_modify(|it| {
                (it.run, it.call) = (record.run(), record.call());
                it.request_tx = record.request_tx();
                it.created_s = record.created_ms / 1_000;
            });
            match &record.phase {
                Phase::Reserved => {
                    let Some(job) = &job else {
                        self.end_unpaid(&record, Unpaid::Interrupted).await?;
                        continue;
                    };
                    if signed == SIGNED_MAX {
                        let code = Code::NonceStale.as_str().to_owned();
                        self.end_unpaid(&record, Unpaid::Refused(code)).await?;
                        continue;
                    }
                    if signed > 0 {
                        pauses.pause(&self.stop).await?;
                    }
                    signed = signed.saturating_add(1);
                    match job {
                        Job::Ask(question) => self.ask(&record, question).await?,
                        Job::Call(question) => self.ask_call(&record, question).await?,
                    }
                }
                Phase::Refused { code } => {
                    self.end_unpaid(&record, Unpaid::Refused(code.clone())).await?;
                }
                // Only while its outbox is being recovered: the fate of what is signed is on its way.
                Phase::Signed { run } => self.wait(*run, POLL).await?,
                Phase::Sent { run, .. } | Phase::Running { run } => match &record.work {
                    Work::Run => self.follow(&record, *run, tell).await?,
                    Work::Call(_) => self.follow_call(&record, *run, tell).await?,
                },
                Phase::Settled(_) | Phase::Unpaid { .. } => {
                    return self.tell_end(&record, tell).await;
                }
            }
        }
    }

    /// Asks the chain: the blob first, if there is one, then the run.
    async fn ask(&self, record: &Record, question: &Question) -> Result<(), Halt> {
        let blob_id = match &question.blob {
            None => None,
            Some(text) => match self.keep_blob(record.id, text).await? {
                Ok(id) => Some(id),
                // Ended with what is written down of it by then: a part of the blob may be paid for.
                Err(code) => {
                    return Ok(self.store.advance(record.id, Phase::Refused { code }).await?);
                }
            },
        };
        let protection = self.protection(question).await?;
        let turn = self.outbox.turn().await?;
        let body = self.body(record, question, (blob_id, protection), turn.nonce());
        let run = body.agent_run_id;
        let slip = turn.sign(&Body::AgentRequest(body)).await?;
        let about = About::Request { id: record.id, purpose: Purpose::Request };
        self.store.sign(&slip, about, Some(Phase::Signed { run })).await?;
        turn.send(&slip).await?;
        Ok(())
    }

    fn body(
        &self,
        record: &Record,
        question: &Question,
        (blob_id, protection): (Option<String>, Protection),
        nonce: u64,
    ) -> types::tx::AgentRequest {
        let seed = format!("gateway {}", record.id.0);
        let creator = self.wallet().to_string();
        let (hint, agent) = match &question.model {
            Model::Any => (None, None),
            Model::Named(name) => (Some(name.clone()), None),
            Model::Agent { id, version } => (None, Some((*id, version.clone()))),
        };
        let request = Request {
            conversation_id: ids::compute_conversation_id(&creator, Some(&seed), record.created_ms),
            prompt: question.prompt.clone(),
            tools_whitelist: Vec::new(),
            max_fee: Amount::new(question.max_fee_micro),
            max_steps: question.steps_max,
            prompt_blob_id: blob_id,
            model_hint: hint,
            protection,
            agent,
        };
        request.into_body(&self.key, nonce)
    }

    /// How the run is protected against miners that take it and do nothing.
    async fn protection(&self, question: &Question) -> Result<Protection, Halt> {
        let (_, has_v7) = patiently(PAUSE_MS, &self.stop, &mut || self.prices()).await?;
        let default = || claim_bond_default(Amount::new(question.max_fee_micro));
        let bond = self.settings.claim_bond_micro.map_or_else(default, Amount::new);
        let claim_bond = Some(bond).filter(|bond| has_v7 && !bond.is_zero());
        Ok(Protection { claim_bond, ..Protection::default() })
    }

    /// The run of a request, if the node has it.
    async fn run_of(&self, record: &Record, id: &Hash) -> Result<Option<Run>, Halt> {
        let ask = &mut || self.node.run(id, record.max_fee_micro);
        patiently(PAUSE_MS, &self.stop, ask).await
    }

    /// Looks at the run, and does what follows.
    async fn follow(
        &self,
        record: &Record,
        id: Hash,
        tell: &watch::Sender<Progress>,
    ) -> Result<(), Halt> {
        let run = self.run_of(record, &id).await?;
        // A node that is behind does not have it yet.
        let Some(run) = run else { return self.wait(id, POLL).await };
        match (run.status.as_str(), &record.phase) {
            ("pending", Phase::Sent { since_ms, .. }) => {
                self.wait_for_miner(record, id, *since_ms).await
            }
            // The claim lapsed: it waits again.
            ("pending", _) => {
                let since_ms = self.clock.now_ms();
                Ok(self.store.advance(record.id, Phase::Sent { run: id, since_ms }).await?)
            }
            ("claimed" | "running", phase) => {
                tell_steps(tell, run.step_count);
                if !matches!(phase, Phase::Running { .. }) {
                    return Ok(self.store.advance(record.id, Phase::Running { run: id }).await?);
                }
                self.wait(id, POLL).await
            }
            (_, _) => self.settle(record, &run).await,
        }
    }

    /// Waits for a miner, and takes the escrow back if none comes.
    async fn wait_for_miner(&self, record: &Record, id: Hash, since_ms: u64) -> Result<(), Halt> {
        let waited_ms = self.clock.now_ms().saturating_sub(since_ms);
        let left_ms = self.settings.claim_wait_ms.saturating_sub(waited_ms);
        if left_ms > 0 {
            return self.wait(id, POLL.min(Duration::from_millis(left_ms))).await;
        }
        let request = record.id.0;
        tracing::info!(request, run = %id, "no miner claimed the run; taking its escrow back");
        let turn = self.outbox.turn().await?;
        let slip = turn.sign(&Body::AgentCancel(AgentCancel { agent_run_id: id })).await?;
        let about = About::Request { id: record.id, purpose: Purpose::Cancel };
        self.store.sign(&slip, about, None).await?;
        turn.send(&slip).await?;
        // Included or not: the run's record says what became of it.
        let run = self.run_of(record, &id).await?;
        if run.is_some_and(|run| run.status == "pending") {
            self.wait(id, POLL).await?;
        }
        Ok(())
    }

    /// Writes down what a run that has ended cost.
    async fn settle(&self, record: &Record, run: &Run) -> Result<(), Halt> {
        let amount = |amount: Option<Amount>| amount.unwrap_or_default().get();
        let (reward_micro, network_fee_micro) = (amount(run.miner_reward), amount(run.network_fee));
        let is_paid = reward_micro > 0 || network_fee_micro > 0;
        if !is_paid {
            let has_no_miner = run.status == "cancelled" || run.status == "timeout";
            let why = if !has_no_miner {
                self.why(run).await?
            } else if matches!(record.phase, Phase::Sent { since_ms: 0, .. }) {
                Unpaid::Cancelled
            } else {
                Unpaid::NoMiner
            };
            return self.end_unpaid(record, why).await;
        }
        let ended_by = self.chain_events.ended_by(run.agent_run_id).await;
        let bill = Bill {
            run: run.agent_run_id,
            status: run.status.clone(),
            reward_micro,
            network_fee_micro,
            fees_micro: self.fees_micro(record).await?,
            settlement_tx: ended_by.and_then(|it| it.tx),
            block: ended_by.map(|it| it.block),
        };
        Ok(self.store.advance(record.id, Phase::Settled(bill)).await?)
    }

    /// What the miner said of a run that it did not work on.
    async fn why(&self, run: &Run) -> Result<Unpaid, Halt> {
        let answer = patiently(PAUSE_MS, &self.stop, &mut || self.node.answer(run)).await?;
        let answer = answer.unwrap_or_else(|| format!("the run ended with {}", run.status));
        let why = crate::openai::Reply::parse(&answer, &run.status).err();
        Ok(Unpaid::Failed(why.unwrap_or_else(|| format!("the run ended with {}", run.status))))
    }

    pub(super) async fn end_unpaid(&self, record: &Record, why: Unpaid) -> Result<(), Halt> {
        let run = record.made();
        if let Some(run) = &run {
            self.chain_events.leave(run);
        }
        let fees_micro = self.fees_micro(record).await?;
        Ok(self.store.advance(record.id, Phase::Unpaid { run, why, fees_micro }).await?)
    }

    /// What the transactions of a request burned, micro-OMBRA. Where the node began with a snapshot after one
    /// of them, nobody knows what its place cost, and that counts as nothing.
    pub(super) async fn fees_micro(&self, record: &Record) -> Result<u64, Halt> {
        let mut sum_micro = 0_u64;
        for Included { hash, purpose } in &record.included {
            let asked = &mut || self.node.inclusion_fee_micro(hash);
            let place_micro = patiently(PAUSE_MS, &self.stop, asked).await?;
            if place_micro.is_none() {
                let request = record.id.0;
                tracing::warn!(request, tx = %hash, "the node cannot tell what a place in a block cost");
            }
            let place_micro = place_micro.unwrap_or_default();
            let burned_micro = match purpose {
                Purpose::Blob { burns_micro } => *burns_micro,
                Purpose::Request | Purpose::Cancel => 0,
            };
            sum_micro = sum_micro.saturating_add(place_micro).saturating_add(burned_micro);
        }
        Ok(sum_micro)
    }

    /// Tells how a request ended.
    async fn tell_end(&self, record: &Record, tell: &watch::Sender<Progress>) -> Result<(), Halt> {
        if let Work::Call(called) = &record.work {
            return self.tell_end_of_call(record, called, tell).await;
        }
        let (mut run, mut answer) = (None, None);
        if let Phase::Settled(bill) = &record.phase {
            run = self.run_of(record, &bill.run).await?;
            if let Some(run) = &run {
                answer = self.answer(run).await?;
            }
        }
        if let Some(ended) = ended(record, run.as_ref(), answer.as_deref()) {
            tell.send_modify(|it| it.end(ended));
        }
        Ok(())
    }

    /// The answer of a run. The node may have a blob a moment later than what names it.
    async fn answer(&self, run: &Run) -> Result<Option<String>, Halt> {
        let is_named = run.final_answer_inline.is_some() || run.final_answer_blob_id.is_some();
        let mut pauses = Pauses::new(PAUSE_MS);
        for _ in 0..ANSWER_TRIES {
            let answer = patiently(PAUSE_MS, &self.stop, &mut || self.node.answer(run)).await?;
            if answer.is_some() || !is_named {
                return Ok(answer);
            }
            pauses.pause(&self.stop).await?;
        }
        Ok(None)
    }

    /// Waits until something happens to a run, and at most so long.
    pub(super) async fn wait(&self, run: Hash, most: Duration) -> Result<(), Halt> {
        let notify = self.chain_events.wait_for(run);
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(Halt::Stopped),
            () = notify.notified() => Ok(()),
            () = tokio::time::sleep(most) => Ok(()),
        }
    }
}
