//! The market of the fake node: agents, miners that offer, calls.

use agent::executor::Agent;
use async_trait::async_trait;
use serde_json::json;
use state::table::Key;
use state::tables::{AgentTexts, CallMembers, Calls as CallTable, Offers, SettledMembers};
use state::view;
use types::agent::ExecutorId;
use types::call::{Call, CallMember, CallStatus, Consensus};
use types::ids::compute_agent_id;
use types::params::Models;
use types::tx::{AgentCall, AgentRegister, HexBytes, WorkLimits};
use types::{Address, Amount, Body, Hash, Keypair, Offer, Params};

use super::node::{State, rows, submitter};
use super::{CHAIN, FakeChain};
use crate::chain::{CallView, CallWatch, Calls, ChainError, MemberView, RoundView};

/// The model of the agents.
pub(crate) const MANIFEST: Hash = Hash::new([7; 32]);
/// What offers are for.
pub(crate) const EXECUTOR: ExecutorId = ExecutorId::Model { manifest: MANIFEST };
pub(crate) const MIN_BOND: u64 = 1_000_000;
/// What a call of the tests pays for itself, and for a billion units of fuel.
pub(crate) const PER_CALL: u64 = 1_000;

/// Metadata of an agent with one method, `f(string)`, that has these tools.
pub(crate) fn metadata(name: &str, tools: &[String]) -> String {
    json!({
        "name": name, "description": "An agent.", "version": "1.0.0",
        "container_image": format!("ombra-model:{MANIFEST}"),
        "executor": {
            "kind": "model", "model": MANIFEST, "basePrompt": "Be brief.", "tools": tools,
            "maxIterations": 2, "maxOutputTokens": 8,
        },
        "abi": [{
            "type": "function", "name": "f",
            "inputs": [{"name": "text", "type": "string"}],
            "outputs": [{"name": "said", "type": "string"}],
        }],
    })
    .to_string()
}

/// The call of `f` with a text.
pub(crate) fn payload(text: &str) -> Vec<u8> {
    let agent = Agent::read(Hash::ZERO, metadata("any", &[]).as_bytes()).unwrap();
    agent.metadata.methods[0].encode_arguments(&json!([text]).to_string()).unwrap()
}

fn in_order(params: &mut Params) {
    params.min_bond = Amount::new(MIN_BOND);
    params.slashable_models = Models::All;
    params.dissent_penalty = Amount::new(10_000);
}

impl FakeChain {
    /// The same chain with the rules of v8. Nothing has happened on it.
    pub(crate) fn with_v8(self) -> Self {
        self.change_params(in_order);
        self.state.lock().begin_with_v8();
        self
    }

    /// Somebody gets money.
    pub(crate) fn fund(&self, who: Address, micro: u64) {
        self.submit(&fixtures::transfer(who, micro));
    }

    /// An agent of the submitter.
    pub(crate) fn add_agent(&self, name: &str, tools: &[String]) -> Hash {
        let agent_id = compute_agent_id(&submitter().address(), name);
        let metadata = metadata(name, tools);
        self.submit(&Body::AgentRegister(AgentRegister { agent_id, metadata }));
        agent_id
    }

    /// An agent of the submitter that is a program, these bytes, and uses these tools.
    pub(crate) fn add_program_agent(&self, name: &str, program: &[u8], tools: &[String]) -> Hash {
        let blob = format!("blob-{name}");
        for body in fixtures::blob(&blob, program) {
            self.submit(&body);
        }
        let mut text: serde_json::Value = serde_json::from_str(&metadata(name, tools)).unwrap();
        text["container_image"] = json!(format!("ombra-blob:{blob}"));
        text["executor"] =
            json!({ "kind": "wasm", "blobId": blob, "runtime": "wasm-1", "tools": tools });
        let agent_id = compute_agent_id(&submitter().address(), name);
        let metadata = text.to_string();
        self.submit(&Body::AgentRegister(AgentRegister { agent_id, metadata }));
        agent_id
    }

    /// A miner with twice the least bond that offers to work.
    pub(crate) fn add_miner(&self, key: &Keypair) {
        self.fund(key.address(), 5 * MIN_BOND);
        self.act(key, &fixtures::bond(2 * MIN_BOND));
        self.act(key, &offer(4));
    }

    /// A call with so many members, who are drawn.
    pub(crate) fn add_call(
        &self,
        agent: Hash,
        text: &str,
        change: impl FnOnce(&mut AgentCall),
    ) -> Hash {
        let from = submitter().address();
        let nonce = self.state.lock().account(&from).nonce;
        let mut call = AgentCall {
            payload: HexBytes(payload(text)),
            committee_size: 1,
            prices: fixtures::prices([PER_CALL, 0, 0, PER_CALL]),
            limits: WorkLimits {
                input_tokens: 100,
                output_tokens: 100,
                fuel: 1_000_000_000,
                result_bytes: 1_024,
            },
            max_fee: Amount::new(1_000_000),
            timeout_ms: 60_000,
            ..fixtures::call(CHAIN, from, nonce, agent)
        };
        let call_id = call.call_id;
        change(&mut call);
        self.submit(&Body::AgentCall(call));
        self.pass(1);
        call_id
    }

    /// A call as the chain has it.
    pub(crate) fn call_of(&self, id: &Hash) -> CallView {
        self.state.lock().call(id).unwrap()
    }

    /// Lets time pass until a call is settled.
    pub(crate) fn settle(&self, id: &Hash) {
        for _ in 0..200 {
            if self.call_of(id).is_settled {
                return;
            }
            self.pass(10_000);
        }
        panic!("{:?}", self.call_of(id));
    }
}

/// An offer for the tests' executor; 0 takes it back.
pub(crate) fn offer(capacity: u64) -> Body {
    fixtures::offer(EXECUTOR, capacity, [PER_CALL, 0, 0, 0]).into()
}

impl State {
    /// All calls.
    pub(crate) fn calls(&self) -> Vec<Hash> {
        rows::<CallTable>(self.memory(), &[], None).into_iter().map(|(id, _)| id).collect()
    }

    fn all_offers(&self, miner: &Address) -> Vec<(ExecutorId, Offer)> {
        let offers = rows::<Offers>(self.memory(), &[], None);
        let mine = offers.into_iter().filter(|((whose, _), _)| whose == miner);
        mine.map(|((_, executor), offer)| (executor, offer)).collect()
    }

    /// How many offers a miner has.
    pub(crate) fn offers_of(&self, miner: &Address) -> usize {
        self.all_offers(miner).len()
    }

    /// The capacity of a miner's offer.
    pub(crate) fn capacity(&self, miner: &Address) -> Option<u64> {
        self.all_offers(miner).first().map(|(_, offer)| offer.capacity)
    }

    pub(crate) fn call(&self, id: &Hash) -> Option<CallView> {
        let call = view::get::<CallTable>(self.memory(), id).unwrap()?;
        Some(self.call_view(&call))
    }

    fn call_view(&self, call: &Call) -> CallView {
        let request = self.included(&call.request).unwrap();
        let Body::AgentCall(request) = request.body() else {
            unreachable!("a call begins with its request")
        };
        let rounds = call.rounds.iter().zip(0..);
        let rounds = rounds.map(|(round, number)| RoundView {
            is_decided: round.decided_at.is_some(),
            members: self.members(call, number),
        });
        CallView {
            id: call.call_id,
            agent: call.agent_id,
            version: call.agent_version.clone(),
            requester: call.requester,
            status: call.status,
            is_settled: call.is_settled(),
            is_compared: call.consensus == Consensus::Majority,
            limits: call.limits,
            budget_micro: call.terms.budget.get(),
            payload: Some(request.payload.0.clone()),
            payload_hash: call.payload_hash,
            deadline_ms: call.deadline.map(|it| it.at),
            rounds: rounds.collect(),
        }
    }

    fn members(&self, call: &Call, round: u8) -> Vec<MemberView> {
        let (from, to) = (
            (call.call_id, Address::new([0; 20])).to_bytes(),
            (call.call_id, Address::new([0xff; 20])).to_bytes(),
        );
        let open = rows::<CallMembers>(self.memory(), &from, Some(&to));
        let settled = rows::<SettledMembers>(self.memory(), &from, Some(&to));
        let group = call.standing().map(|(_, group)| *group);
        let one = |((_, address), member): ((Hash, Address), CallMember)| MemberView {
            address,
            commitment: member.commitment.map(|it| it.hash),
            revealed: member.reveal.map(|it| it.answer),
            agreed: group.map(|group| member.reveal.is_some_and(|it| group.has(&it.answer))),
            paid_micro: member.paid.get(),
            penalty_micro: member.penalty.get(),
        };
        let all = open.into_iter().chain(settled).filter(|(_, member)| member.round == round);
        all.map(one).collect()
    }
}

type Answer<T> = Result<T, ChainError>;

#[async_trait]
impl Calls for FakeChain {
    async fn bond_micro_min(&self) -> Answer<Option<u64>> {
        self.reach().await?;
        let state = self.state.lock();
        Ok(state.is_v8().then(|| state.params().min_bond.get()))
    }

    async fn assigned(&self, miner: &Address) -> Answer<Vec<Hash>> {
        self.reach().await?;
        let state = self.state.lock();
        let calls = rows::<CallTable>(state.memory(), &[], None);
        let is_mine = |call: &Call| {
            matches!(call.status, CallStatus::Committing | CallStatus::Revealing)
                && state.call_view(call).round_of(miner).is_some()
        };
        Ok(calls.into_iter().filter(|(_, call)| is_mine(call)).map(|(id, _)| id).collect())
    }

    async fn drawn(&self, miner: &Address, _: usize) -> Answer<Vec<Hash>> {
        self.reach().await?;
        let state = self.state.lock();
        let mut calls = rows::<CallTable>(state.memory(), &[], None);
        calls.retain(|(_, call)| state.call_view(call).round_of(miner).is_some());
        calls.sort_by_key(|(_, call)| std::cmp::Reverse(call.created_at));
        Ok(calls.into_iter().map(|(id, _)| id).collect())
    }

    async fn call(&self, id: &Hash) -> Answer<Option<CallView>> {
        self.reach().await?;
        Ok(self.state.lock().call(id))
    }

    async fn metadata(&self, agent: &Hash, version: &str) -> Answer<Option<String>> {
        self.reach().await?;
        let key = (*agent, version.to_owned());
        Ok(view::get::<AgentTexts>(self.state.lock().memory(), &key).unwrap())
    }

    async fn program(&self, blob: &str, bytes_max: usize) -> Answer<Option<Vec<u8>>> {
        self.reach().await?;
        let blob = self.state.lock().blob(blob);
        let whole = blob.filter(|(blob, bytes)| blob.is_final && bytes.len() <= bytes_max);
        Ok(whole.map(|(_, bytes)| bytes))
    }

    async fn offers(&self, miner: &Address) -> Answer<Vec<(ExecutorId, Offer)>> {
        self.reach().await?;
        let mut state = self.state.lock();
        state.offers_read += 1;
        let offers = state.all_offers(miner);
        drop(state);
        self.moved.notify_waiters();
        Ok(offers)
    }
}

/// Notices that a test sends.
#[derive(Debug)]
pub(crate) struct FakeCallWatch(pub(crate) tokio::sync::mpsc::Receiver<Hash>);

#[async_trait]
impl CallWatch for FakeCallWatch {
    async fn begin(&mut self, _: u64) -> Answer<()> {
        Ok(())
    }

    async fn next(&mut self) -> Answer<Hash> {
        match self.0.recv().await {
            Some(call) => Ok(call),
            None => std::future::pending().await,
        }
    }
}
