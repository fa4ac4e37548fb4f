//! Ids and hashes that anybody can compute.

use types::call::{Answer, Outcome};
use types::ids::{self, Committer, compute_call_id, compute_commitment};
use types::{Address, Hash, Usage};

use super::Context;
use crate::error::RpcError;
use crate::ports::Ports;
use crate::wire::{CommitmentQuery, ConversationId};

/// The id of the run that an AGENT_REQUEST asks for.
pub(crate) fn agent_run_id(from: &str, nonce: u64, prompt: &str) -> Result<Hash, RpcError> {
    parse_address("from", from)?;
    Ok(ids::compute_agent_run_id(from, nonce, prompt))
}

/// Computes the id of a new conversation, and returns it with the time used.
pub(crate) fn conversation_id(
    ports: &Ports,
    creator: &str,
    seed: Option<&str>,
    now: Option<u64>,
) -> ConversationId {
    let now = now.unwrap_or_else(|| ports.clock.now_ms());
    let conversation_id = ids::compute_conversation_id(creator, seed, now);
    ConversationId { conversation_id, now }
}

/// The id of an agent.
pub(crate) fn agent_id(owner: &str, name: &str) -> Result<Hash, RpcError> {
    let owner = parse_address("owner", owner)?;
    Ok(ids::compute_agent_id(&owner, name))
}

/// The hash of a content.
pub(crate) fn content_hash(content: &str) -> Hash {
    ids::compute_content_hash(content)
}

/// The id of the call that an AGENT_CALL makes.
pub(crate) fn call_id(context: &Context, from: &str, nonce: u64) -> Result<Hash, RpcError> {
    let from = parse_address("from", from)?;
    Ok(compute_call_id(&context.facts.chain_id, &from, nonce))
}

/// What hides a member's answer.
pub(crate) fn commitment(answer: &CommitmentQuery) -> Result<Hash, RpcError> {
    if answer.round > 1 {
        return Err(RpcError::invalid("round", answer.round.to_string(), "0 or 1"));
    }
    let outcome = Outcome::parse(&answer.outcome).ok_or_else(|| {
        let expected = format!("one of {}", Outcome::WORDS.join(", "));
        RpcError::invalid("outcome", answer.outcome.as_str(), expected)
    })?;
    let CommitmentQuery { input_tokens, output_tokens, fuel, .. } = *answer;
    let hidden = Answer {
        outcome,
        result_hash: answer.result_hash.0,
        usage: Usage { input_tokens, output_tokens, fuel },
        receipt_hash: answer.receipt_hash.0,
    };
    let (call_id, member) = (answer.call_id.0, answer.member.0);
    let by = Committer { call_id, round: answer.round, member };
    Ok(compute_commitment(&by, &answer.salt.0, &hidden))
}

/// An address in either written form.
pub(super) fn parse_address(field: &'static str, text: &str) -> Result<Address, RpcError> {
    Address::parse(text).map_err(|e| RpcError::invalid(field, e.got, e.expected))
}
