//! Calls of agents: the work of their requests.

use std::sync::Arc;

use miner::outbox::{Halt, Pauses, patiently};
use tokio::sync::watch;
use tokio::time::Instant;
use types::ids::compute_call_id;
use types::{Body, Hash};

use super::ended::unpaid;
use super::service::PAUSE_MS;
use super::submit::{away, in_time};
use super::work::{ANSWER_TRIES, POLL, tell_steps};
use super::{Answered, Ended, Job, Progress, RequestService, Submitted};
use crate::keys::Key;
use crate::market::{AskedCall, CallAnswer, CallQuestion, CallState, Published};
use crate::openai::ApiFault;
use crate::record::{Bill, Called, Phase, Purpose, Record, Unpaid, Work};
use crate::store::{About, Identity, NewRequest};

/// A call as it came in.
#[derive(Debug)]
pub(crate) struct CallSubmission {
    /// Whose it is.
    pub(crate) key: Key,
    /// What is asked.
    pub(crate) asked: AskedCall,
    /// SHA-256 of its body.
    pub(crate) body: Hash,
    /// SHA-256 of the key that makes it idempotent, if it has one.
    pub(crate) name: Option<Hash>,
    /// Whether the client says that it has sent this before.
    pub(crate) is_retry: bool,
    /// When the client gives up.
    pub(crate) deadline: Instant,
}

impl RequestService {
    /// A version of a published agent.
    ///
    /// # Errors
    /// When the chain does not have it, or the node does not answer.
    pub(crate) async fn published(
        &self,
        id: Hash,
        version: &str,
    ) -> Result<Arc<Published>, ApiFault> {
        if let Some(known) = self.agents.get(id, version) {
            return Ok(known);
        }
        let found = self.node.published(&id, version).await.map_err(|error| away(&error))?;
        let found =
            found.ok_or_else(|| ApiFault::no_such_agent(&format!("agent:{id}@{version}")))?;
        Ok(self.agents.keep(found))
    }

    /// Says what a call costs at most, and takes it in.
    ///
    /// # Errors
    /// Why it is not taken in.
    pub(crate) async fn submit_call(
        self: &Arc<Self>,
        entry: CallSubmission,
    ) -> Result<Submitted, ApiFault> {
        let CallSubmission { key, asked, body, name, is_retry, deadline } = entry;
        if !self.is_open() {
            return Err(ApiFault::node_away(
                "the gateway is still finishing work from before its start",
            ));
        }
        // What was asked before is followed, whoever could be drawn now.
        let identity = Identity { key: key.id, body, name, is_retry };
        if let Some(submitted) = self.repeated(identity).await? {
            return Ok(submitted);
        }
        let reads = async {
            let published = self.published(asked.agent, &asked.version).await?;
            let draft = asked.draft(published)?;
            let (prices, _) = self.prices().await.map_err(|error| away(&error))?;
            let estimate =
                self.node.estimate(&draft.estimate()).await.map_err(|error| away(&error))?;
            let estimate = estimate.map_err(|why| ApiFault::not_callable(&why))?;
            let question = draft.priced(&estimate, prices, self.settings.call_micro_max)?;
            let balance_micro =
                self.node.balance_micro(&self.wallet()).await.map_err(|error| away(&error))?;
            Ok((question, prices, balance_micro))
        };
        let (question, prices, balance_micro) = in_time(deadline, reads).await?;
        let new = NewRequest {
            key,
            body,
            name,
            is_retry,
            model: question.model(),
            work: Work::Call(question.called()),
            max_fee_micro: question.max_fee_micro,
            micro: question.micro(prices),
            balance_micro,
        };
        self.take(new, Job::Call(question)).await
    }

    /// Asks the chain for a call.
    pub(super) async fn ask_call(
        &self,
        record: &Record,
        question: &CallQuestion,
    ) -> Result<(), Halt> {
        let turn = self.outbox.turn().await?;
        let call = compute_call_id(&self.chain_id, &self.wallet(), turn.nonce());
        let slip = turn.sign(&Body::AgentCall(question.body(call))).await?;
        let about = About::Request { id: record.id, purpose: Purpose::Request };
        self.store.sign(&slip, about, Some(Phase::Signed { run: call })).await?;
        turn.send(&slip).await?;
        Ok(())
    }

    /// Looks at the call, and does what follows.
    pub(super) async fn follow_call(
        &self,
        record: &Record,
        id: Hash,
        tell: &watch::Sender<Progress>,
    ) -> Result<(), Halt> {
        let signed_micro = record.max_fee_micro;
        let ask = &mut || self.node.call(&id, signed_micro);
        let call = patiently(PAUSE_MS, &self.stop, ask).await?;
        // A node that is behind does not have it yet.
        let Some(call) = call else { return self.wait(id, POLL).await };
        if let Some(closed) = call.closed() {
            return self.settle_call(record, &call, closed).await;
        }
        if call.status != "electing" {
            tell_steps(tell, call.revealed());
            if !matches!(record.phase, Phase::Running { .. }) {
                return Ok(self.store.advance(record.id, Phase::Running { run: id }).await?);
            }
        }
        self.wait(id, POLL).await
    }

    /// Writes down what a call that is settled cost.
    async fn settle_call(
        &self,
        record: &Record,
        call: &CallState,
        closed: crate::market::Closed,
    ) -> Result<(), Halt> {
        if closed.cost_micro() == 0 {
            let why = match call.status.as_str() {
                "unassigned" => Unpaid::NoMiner,
                _ => Unpaid::Failed(call.why()),
            };
            return self.end_unpaid(record, why).await;
        }
        let ended_by = self.chain_events.ended_by(call.call_id).await;
        let bill = Bill {
            run: call.call_id,
            status: call.status.clone(),
            reward_micro: closed.paid_micro,
            network_fee_micro: closed.burned_micro,
            fees_micro: self.fees_micro(record).await?,
            settlement_tx: ended_by.and_then(|it| it.tx),
            block: ended_by.map(|it| it.block),
        };
        Ok(self.store.advance(record.id, Phase::Settled(bill)).await?)
    }

    /// Tells how a call ended.
    pub(super) async fn tell_end_of_call(
        &self,
        record: &Record,
        called: &Called,
        tell: &watch::Sender<Progress>,
    ) -> Result<(), Halt> {
        let ended = match &record.phase {
            Phase::Unpaid { why: Unpaid::NoMiner, .. } => {
                Err(ApiFault::no_committee("too few miners could be drawn; its escrow came back"))
            }
            Phase::Unpaid { why, .. } => Err(unpaid(why)),
            Phase::Settled(bill) => self.answer_of_call(record, bill, called).await?,
            Phase::Reserved
            | Phase::Signed { .. }
            | Phase::Refused { .. }
            | Phase::Sent { .. }
            | Phase::Running { .. } => return Ok(()),
        };
        tell.send_modify(|it| it.end(ended));
        Ok(())
    }

    async fn answer_of_call(
        &self,
        record: &Record,
        bill: &Bill,
        called: &Called,
    ) -> Result<Ended, Halt> {
        let Called { agent, version, method, .. } = called;
        let state = self.settled_call(record, bill).await?;
        let published = match self.agents.get(*agent, version) {
            Some(known) => Some(known),
            None => {
                let ask = &mut || self.node.published(agent, version);
                let found = patiently(PAUSE_MS, &self.stop, ask).await?;
                found.map(|found| self.agents.keep(found))
            }
        };
        let (Some(state), Some(published)) = (state, published) else {
            return Ok(Err(ApiFault::answer_missing()));
        };
        let answer = match published.method(method) {
            Ok(method) => CallAnswer::new((record, bill), called, method, &state),
            Err(why) => Err(ApiFault::call_failed_paid(&why)),
        };
        Ok(answer.map(Answered::Call))
    }

    /// A call with the result that it has; a node that is behind has it a moment later.
    async fn settled_call(&self, record: &Record, bill: &Bill) -> Result<Option<CallState>, Halt> {
        let ask = &mut || self.node.call(&bill.run, record.max_fee_micro);
        let mut pauses = Pauses::new(PAUSE_MS);
        for _ in 0..ANSWER_TRIES {
            let state = patiently(PAUSE_MS, &self.stop, ask).await?;
            if state.as_ref().is_some_and(CallState::is_whole) {
                return Ok(state);
            }
            pauses.pause(&self.stop).await?;
        }
        Ok(None)
    }
}
