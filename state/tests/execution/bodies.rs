//! What wallets send: a body of each kind, with what most tests do not care about.

use types::sign_bytes::{Domain, acceptance};
use types::tx::{
    AgentCancel, AgentClaim, AgentFinish, AgentRefuse, AgentRequest, AgentStep, BlobChunk,
    BlobFinalize, BlobInit, ChatTurn, Evidence, ForkVote, MinerBond, MinerOffer, MinerRegister,
    MinerUnbond, NIL, ParamVote, Protection, Transfer, ValidatorVote,
};
use types::{Amount, Bid, Body, Hash, Late, Run, Settlement, Signature, ids};

use crate::world::{START, Who, genesis_hash};

/// Finishes a run with the amounts that its steps give.
pub fn finish_body(run: &Run, status: &str) -> Body {
    let totals = state::settlement(run).unwrap();
    let Settlement { miner_reward, user_refund, network_fee } = totals.settlement;
    Body::AgentFinish(AgentFinish {
        agent_run_id: run.agent_run_id,
        total_tokens_out: totals.total_tokens_out,
        status: status.to_owned(),
        miner_reward,
        user_refund,
        network_fee,
        final_answer_inline: Some("done".to_owned()),
        final_answer_blob_id: None,
    })
}

pub const PROMPT: &str = "What is the answer?";

pub fn request_body(who: Who, nonce: u64, max_fee: u64, max_steps: u64) -> Body {
    let from = who.address().to_string();
    Body::AgentRequest(AgentRequest {
        agent_run_id: ids::compute_agent_run_id(&from, nonce, PROMPT),
        conversation_id: conversation(),
        prompt: PROMPT.to_owned(),
        tools_whitelist: Vec::new(),
        max_fee: Amount::new(max_fee),
        max_steps,
        prompt_blob_id: None,
        model_hint: None,
        protection: Late::default(),
        agent: Late::default(),
    })
}

pub fn conversation() -> Hash {
    Hash::digest(b"conversation")
}

pub fn claim(who: Who, agent_run_id: Hash) -> Body {
    Body::AgentClaim(AgentClaim {
        agent_run_id,
        miner_address: who.address().into(),
        model_info: "model".to_owned(),
        hardware_tier: "server".to_owned(),
    })
}

pub fn step(agent_run_id: Hash, step_index: u64, output_tokens: u64) -> Body {
    Body::AgentStep(AgentStep {
        agent_run_id,
        step_index,
        output_tokens,
        output_hash: Hash::ZERO,
        thought_blob_id: None,
        tool_calls: None,
        output_blob_id: None,
    })
}

pub fn cancel(agent_run_id: Hash) -> Body {
    Body::AgentCancel(AgentCancel { agent_run_id })
}

pub fn transfer(to: Who, amount: u64, fee: u64) -> Body {
    Body::Transfer(Transfer::new(to.address(), Amount::new(amount), Amount::new(fee)))
}

pub fn turn(content: &str) -> ChatTurn {
    ChatTurn {
        conversation_id: conversation(),
        role: "user".to_owned(),
        content: content.to_owned(),
        content_blob_id: None,
        parent_turn_hash: None,
        agent_run_id: None,
        attachments: None,
    }
}

pub fn chat(content: &str) -> Body {
    Body::ChatTurn(turn(content))
}

pub fn blob_init(id: &str, bytes: &[u8]) -> Body {
    let total_bytes = u64::try_from(bytes.len()).unwrap();
    Body::BlobInit(BlobInit {
        blob_id: id.to_owned(),
        content_type: "text/plain".to_owned(),
        total_bytes,
        total_chunks: total_bytes.div_ceil(400_000),
        content_hash: Hash::digest(bytes),
    })
}

pub fn blob_chunk(id: &str, chunk_index: u64, bytes: &[u8]) -> Body {
    Body::BlobChunk(BlobChunk { blob_id: id.to_owned(), chunk_index, chunk_data: bytes.to_vec() })
}

pub fn blob_finalize(id: &str) -> Body {
    Body::BlobFinalize(BlobFinalize { blob_id: id.to_owned() })
}

/// A day in milliseconds.
pub const DAY: u64 = 24 * 3_600_000;

/// A vote that counts for a day.
pub fn vote(candidate: Who, power: u64) -> Body {
    vote_until(candidate, power, START + DAY)
}

pub fn vote_until(candidate: Who, power: u64, expires_at: u64) -> Body {
    let vote = ValidatorVote::new(candidate.public_key(), power, expires_at);
    let message = acceptance(&genesis_hash(), &candidate.address(), expires_at);
    Body::ValidatorVote(vote.with_acceptance(candidate.sign(&message)))
}

/// A vote that counts for a day, without the acceptance of the candidate's key.
pub fn bare_vote(candidate: Who, power: u64) -> Body {
    let expires_at = START + DAY;
    Body::ValidatorVote(ValidatorVote::new(candidate.public_key(), power, expires_at))
}

/// Evidence that a key signed prevotes for two blocks of this height.
pub fn evidence(accused: Who, height: u64) -> Evidence {
    evidence_of(accused, height, "prevote", [Some(1), Some(2)])
}

/// Evidence that a key signed both in round 0; none is nil.
pub fn evidence_of(
    accused: Who,
    height: u64,
    kind: &str,
    [first, second]: [Option<u8>; 2],
) -> Evidence {
    let text = |value: Option<u8>| {
        value.map_or_else(|| NIL.to_owned(), |byte| Hash::new([byte; 32]).to_string())
    };
    let nothing = Signature::new([0; 64]);
    let evidence = Evidence {
        validator_key: accused.public_key(),
        height,
        round: 0,
        kind: kind.to_owned(),
        first_value: text(first),
        first_signature: nothing,
        second_value: text(second),
        second_signature: nothing,
        first_valid_round: None,
        second_valid_round: None,
    };
    signed_by(accused, evidence)
}

/// The same evidence with signatures of that key.
pub fn signed_by(signer: Who, evidence: Evidence) -> Evidence {
    let domain = Domain { chain_id: "test".into(), genesis_hash: genesis_hash(), v7_from: Some(0) };
    signed_in(&domain, signer, evidence)
}

/// The same with signatures as that domain has them.
pub fn signed_in(domain: &Domain, signer: Who, evidence: Evidence) -> Evidence {
    let sign = |message| signer.sign(&evidence.signed_bytes(message, domain).unwrap());
    let [first_signature, second_signature] = evidence.messages().each_ref().map(sign);
    Evidence { first_signature, second_signature, ..evidence }
}

pub fn register_miner(name: &str) -> Body {
    Body::MinerRegister(MinerRegister {
        name: name.to_owned(),
        capabilities: Vec::new(),
        model_info: "model".to_owned(),
    })
}

pub fn bond(amount: u64) -> Body {
    Body::MinerBond(MinerBond { amount: Amount::new(amount) })
}

pub fn unbond(amount: u64) -> Body {
    Body::MinerUnbond(MinerUnbond { amount: Amount::new(amount) })
}

/// An offer of work at a price for the call alone.
pub fn offer(executor: &str, capacity: u64, per_call: u64) -> Body {
    Body::MinerOffer(MinerOffer {
        executor: executor.to_owned(),
        capacity,
        per_call: Amount::new(per_call),
        prompt_per_m: Amount::ZERO,
        completion_per_m: Amount::ZERO,
        fuel_per_g: Amount::ZERO,
    })
}

pub fn refuse(agent_run_id: Hash) -> Body {
    Body::AgentRefuse(AgentRefuse { agent_run_id })
}

/// A vote for the height of a fork.
pub fn fork(name: &str, height: u64) -> Body {
    Body::ForkVote(ForkVote { fork: name.to_owned(), height })
}

/// A vote for the value of a parameter from a height on.
pub fn param(name: &str, value: u64, height: u64) -> Body {
    Body::ParamVote(ParamVote { name: name.to_owned(), value, height })
}

pub fn bid(max_base_fee: u64, tip: u64) -> Bid {
    Bid { max_base_fee: Some(Amount::new(max_base_fee)), tip: Some(Amount::new(tip)) }
}

/// The protection of a run whose claim locks so much, and nothing else.
pub fn claim_bond(amount: u64) -> Protection {
    Protection { claim_bond: Some(Amount::new(amount)), ..Protection::default() }
}

/// The same request, of a run that is protected so.
pub fn protected(mut request: Body, protection: Protection) -> Body {
    let Body::AgentRequest(body) = &mut request else { panic!("not a request") };
    body.protection = protection.into();
    request
}
