//! The plainest fields of the kinds of the agent market: an agent, an offer, a call, and what a member of
//! the call says.

use types::agent::ExecutorId;
use types::ids::{self, Committer, compute_commitment};
use types::tx::{
    AgentCall, AgentRegister, CallCommit, CallPrices, CallReveal, HexBytes, MinerBond, MinerOffer,
    WorkLimits,
};
use types::{Amount, Body, Hash};

use super::{PER_CALL, SELECTOR, VERSION};
use crate::actor::Actor;

/// The model of an agent that nobody has to execute.
pub const MANIFEST: Hash = Hash::new([0xee; 32]);
/// The salt of a commitment that nobody has to hide.
pub const SALT: Hash = Hash::new([5; 32]);

/// The metadata of the agent `judge` with the one method `f()`; `more` members follow the others.
#[must_use]
pub fn judge(manifest: Hash, more: &str) -> String {
    format!(
        "{{\"name\":\"judge\",\"description\":\"d\",\"version\":\"{VERSION}\",\
         \"container_image\":\"ombra-model:{manifest}\",\
         \"executor\":{{\"kind\":\"model\",\"model\":\"{manifest}\",\"basePrompt\":\"\",\
         \"tools\":[],\"maxIterations\":1,\"maxOutputTokens\":9}},\
         \"abi\":[{{\"type\":\"function\",\"name\":\"f\",\"inputs\":[],\"outputs\":[]}}]{more}}}"
    )
}

/// The id of the owner's agent `judge`.
#[must_use]
pub fn judge_of(owner: &Actor) -> Hash {
    ids::compute_agent_id(&owner.address(), "judge")
}

/// What publishes the owner's agent `judge`.
#[must_use]
pub fn register(owner: &Actor, metadata: String) -> Body {
    Body::AgentRegister(AgentRegister { agent_id: judge_of(owner), metadata })
}

#[must_use]
pub const fn bond(micro: u64) -> Body {
    Body::MinerBond(MinerBond { amount: Amount::new(micro) })
}

/// An offer to execute a model for [`PER_CALL`], and nothing for what it reads and writes.
#[must_use]
pub fn offer(manifest: Hash, capacity: u64) -> MinerOffer {
    MinerOffer {
        executor: ExecutorId::Model { manifest }.to_string(),
        capacity,
        per_call: Amount::new(PER_CALL),
        prompt_per_m: Amount::ZERO,
        completion_per_m: Amount::ZERO,
        fuel_per_g: Amount::ZERO,
    }
}

/// What a requester would ask of three members with its next nonce, at the price of [`offer`].
#[must_use]
pub fn call(chain_id: &str, requester: &Actor, agent_id: Hash) -> AgentCall {
    AgentCall {
        call_id: ids::compute_call_id(chain_id, &requester.address(), requester.nonce),
        agent_id,
        agent_version: VERSION.to_owned(),
        payload: HexBytes(SELECTOR.to_vec()),
        consensus: "majority".to_owned(),
        committee_size: 3,
        prices: CallPrices {
            per_call: Amount::new(PER_CALL),
            prompt_per_m: Amount::ZERO,
            completion_per_m: Amount::ZERO,
            fuel_per_g: Amount::ZERO,
        },
        limits: WorkLimits { input_tokens: 10, output_tokens: 10, fuel: 0, result_bytes: 100 },
        max_fee: Amount::new(5_000),
        timeout_ms: 600_000,
        threshold: None,
        appealable: None,
        on_result: None,
        conversation_id: None,
    }
}

/// A success with this result, in the first round.
#[must_use]
pub fn reveal(call_id: Hash, result: &[u8]) -> CallReveal {
    CallReveal {
        call_id,
        round: 0,
        salt: SALT,
        outcome: "success".to_owned(),
        result: HexBytes(result.to_vec()),
        input_tokens: 1,
        output_tokens: 1,
        fuel: 0,
        receipt_hash: SALT,
        reason: None,
    }
}

/// The commitment of a member to what it will reveal; none if that has no outcome that there is.
#[must_use]
pub fn commit(member: &Actor, reveal: &CallReveal) -> Option<CallCommit> {
    let CallReveal { call_id, round, salt, .. } = *reveal;
    let by = Committer { call_id, round, member: member.address() };
    let commitment = compute_commitment(&by, &salt, &reveal.answer()?);
    Some(CallCommit { call_id, round, commitment })
}
