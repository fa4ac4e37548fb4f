//! What the engine saw of validators that contradicted themselves.

use malachitebft_app::types::MisbehaviorEvidence;
use malachitebft_core_types::{SignedProposal, SignedVote};

use super::chain::AppChain;
use crate::engine::context::Ctx;
use crate::ports::{Equivocation, SignedChoice, SignedKind};
use crate::{ConsensusFault, Counters};
use types::sign_bytes::VoteKind;

/// Logs, counts and keeps the contradicting messages of a height. Which of them are seen
/// depends on timing, so nothing is decided from it.
pub(super) async fn report(
    evidence: &MisbehaviorEvidence<Ctx>,
    chain: &AppChain,
    counters: &Counters,
) -> Result<(), ConsensusFault> {
    let pairs = pairs(evidence);
    if pairs.is_empty() {
        return Ok(());
    }
    for Equivocation { validator, height, round, kind, .. } in &pairs {
        tracing::warn!(%validator, height, round, ?kind, "a validator contradicts itself");
    }
    counters.equivocations.inc_by(u64::try_from(pairs.len()).unwrap_or(u64::MAX));
    let pairs = proofs(pairs);
    if pairs.is_empty() {
        return Ok(());
    }
    chain.archive(move |archive| archive.keep_evidence(&pairs)).await
}

/// What the chain takes as EVIDENCE: the two messages are for different things. Few pairs of a validator
/// are kept, and it must not be able to push those out by others that prove nothing.
fn proofs(mut pairs: Vec<Equivocation>) -> Vec<Equivocation> {
    pairs.retain(|pair| pair.first.block_hash != pair.second.block_hash);
    pairs
}

fn pairs(evidence: &MisbehaviorEvidence<Ctx>) -> Vec<Equivocation> {
    let proposals = evidence.proposals.iter().flat_map(|(_, pairs)| pairs);
    let votes = evidence.votes.iter().flat_map(|(_, pairs)| pairs);
    proposals
        .map(|(first, second)| proposed_twice(first, second))
        .chain(votes.map(|(first, second)| voted_twice(first, second)))
        .collect()
}

fn proposed_twice(first: &SignedProposal<Ctx>, second: &SignedProposal<Ctx>) -> Equivocation {
    let choice = |signed: &SignedProposal<Ctx>| {
        let fields = signed.message.fields();
        SignedChoice {
            block_hash: Some(fields.value),
            valid_round: fields.valid_round,
            signature: signed.signature.get(),
        }
    };
    let fields = first.message.fields();
    Equivocation {
        validator: fields.validator,
        height: fields.height,
        round: u32::try_from(fields.round).unwrap_or_default(),
        kind: SignedKind::Proposal,
        first: choice(first),
        second: choice(second),
    }
}

fn voted_twice(first: &SignedVote<Ctx>, second: &SignedVote<Ctx>) -> Equivocation {
    let choice = |signed: &SignedVote<Ctx>| SignedChoice {
        block_hash: signed.message.fields().value,
        valid_round: -1,
        signature: signed.signature.get(),
    };
    let fields = first.message.fields();
    Equivocation {
        validator: fields.validator,
        height: fields.height,
        round: u32::try_from(fields.round).unwrap_or_default(),
        kind: match fields.kind {
            VoteKind::Prevote => SignedKind::Prevote,
            VoteKind::Precommit => SignedKind::Precommit,
        },
        first: choice(first),
        second: choice(second),
    }
}

#[cfg(test)]
mod tests {
    //! The engine's evidence as the ports tell it.

    use malachitebft_core_types::{Context, NilOrVal, Round, SignedMessage};
    use types::{Hash, Signature};

    use super::*;
    use crate::engine::context::{Height, Value};
    use crate::testing::key;

    fn hash(byte: u8) -> Hash {
        Hash::new([byte; 32])
    }

    fn choice(byte: u8, block_hash: Option<Hash>, valid_round: i64) -> SignedChoice {
        SignedChoice { block_hash, valid_round, signature: Signature::new([byte; 64]) }
    }

    fn pair(kind: SignedKind, first: SignedChoice, second: SignedChoice) -> Equivocation {
        Equivocation { validator: key(1).address(), height: 7, round: 2, kind, first, second }
    }

    #[test]
    fn both_messages_of_a_pair_are_kept_with_their_signatures() {
        let validator = key(1).address();
        let (height, round) = (Height(7), Round::new(2));
        let mut evidence =
            MisbehaviorEvidence { proposals: Default::default(), votes: Default::default() };
        let proposal = |byte: u8, valid| {
            let value = Value::from(hash(byte));
            let proposal = Ctx.new_proposal(height, round, value, valid, validator.into());
            SignedMessage::new(proposal, Signature::new([byte; 64]).into())
        };
        evidence.proposals.add(proposal(1, Round::Nil), proposal(2, Round::new(1)));
        let vote = |byte: u8, value| {
            let vote = Ctx.new_precommit(height, round, value, validator.into());
            SignedMessage::new(vote, Signature::new([byte; 64]).into())
        };
        let block = NilOrVal::Val(Value::from(hash(3)));
        evidence.votes.add(vote(3, block), vote(4, NilOrVal::Nil));

        let proposed = (choice(1, Some(hash(1)), -1), choice(2, Some(hash(2)), 1));
        let voted = (choice(3, Some(hash(3)), -1), choice(4, None, -1));
        let proposed = pair(SignedKind::Proposal, proposed.0, proposed.1);
        let voted = pair(SignedKind::Precommit, voted.0, voted.1);
        assert_eq!(pairs(&evidence), [proposed, voted]);
    }

    #[test]
    fn two_proposals_of_one_block_prove_nothing_and_are_not_kept() {
        let proposed = |byte: u8, valid_round| choice(byte, Some(hash(byte)), valid_round);
        let beside = |second| pair(SignedKind::Proposal, proposed(1, -1), second);
        let proof = beside(proposed(2, -1));
        let all = vec![beside(proposed(1, 0)), proof, beside(proposed(1, 1))];
        assert_eq!(proofs(all), [proof]);
    }
}
