//! What wallets send: a body of each kind, with what most tests do not care about.

use fixtures::sign_evidence;
use types::sign_bytes::{Domain, acceptance};
use types::tx::{AgentClaim, AgentFinish, Evidence, NIL, Protection, Transfer, ValidatorVote};
use types::{Amount, Bid, Body, Hash, Run, Settlement};

use crate::world::{START, Who, genesis_hash};

pub use fixtures::{
    blob_chunk, blob_finalize, bond, cancel, conversation, fork_vote as fork, param_vote as param,
    refuse, register_miner, step, turn, unbond,
};

/// Finishes a run with the amounts that its steps give.
pub fn finish_body(run: &Run, status: &str) -> Body {
    let totals = state::settlement(run).unwrap();
    let Settlement { miner_reward, user_refund, network_fee } = totals.settlement;
    let parts = [miner_reward, user_refund, network_fee].map(Amount::get);
    Body::AgentFinish(AgentFinish {
        status: status.to_owned(),
        final_answer_inline: Some("done".to_owned()),
        ..fixtures::finish(run.agent_run_id, totals.total_tokens_out, parts)
    })
}

pub const PROMPT: &str = "What is the answer?";

pub fn request_body(who: Who, nonce: u64, max_fee: u64, max_steps: u64) -> Body {
    fixtures::request(who.address(), nonce, PROMPT, max_fee, max_steps).into()
}

pub fn claim(who: Who, agent_run_id: Hash) -> Body {
    let hardware_tier = "server".to_owned();
    AgentClaim { hardware_tier, ..fixtures::claim(who.address(), agent_run_id) }.into()
}

pub fn transfer(to: Who, amount: u64, fee: u64) -> Body {
    Transfer::new(to.address(), Amount::new(amount), Amount::new(fee)).into()
}

pub fn chat(content: &str) -> Body {
    turn(content).into()
}

pub fn blob_init(id: &str, bytes: &[u8]) -> Body {
    fixtures::blob_init(id, bytes).into()
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
    let values = [text(first), text(second)];
    signed_by(accused, fixtures::evidence(accused.public_key(), height, kind, values))
}

/// The same evidence with signatures of that key.
pub fn signed_by(signer: Who, evidence: Evidence) -> Evidence {
    let domain = Domain { chain_id: "test".into(), genesis_hash: genesis_hash(), v7_from: Some(0) };
    signed_in(&domain, signer, evidence)
}

/// The same with signatures as that domain has them.
pub fn signed_in(domain: &Domain, signer: Who, evidence: Evidence) -> Evidence {
    sign_evidence(&signer.key(), domain, evidence)
}

/// An offer of work at a price for the call alone.
pub fn offer(executor: &str, capacity: u64, per_call: u64) -> Body {
    fixtures::offer(executor, capacity, [per_call, 0, 0, 0]).into()
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
