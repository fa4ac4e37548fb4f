//! What the engine saw of validators that contradicted themselves.

use std::sync::Arc;

use malachitebft_app::types::MisbehaviorEvidence;
use malachitebft_core_types::{SignedProposal, SignedVote};

use super::App;
use crate::Fault;
use crate::engine::context::Ctx;
use crate::ports::{Equivocation, SignedChoice, SignedKind};
use crate::sign_bytes::VoteKind;

impl App {
    /// Logs, counts and keeps the contradicting messages of a height. Which of them are seen
    /// depends on timing, so nothing is decided from it.
    pub(super) async fn report(&self, evidence: &MisbehaviorEvidence<Ctx>) -> Result<(), Fault> {
        let pairs = pairs(evidence);
        if pairs.is_empty() {
            return Ok(());
        }
        for Equivocation { validator, height, round, kind, .. } in &pairs {
            tracing::warn!(%validator, height, round, ?kind, "a validator contradicts itself");
        }
        self.counters.equivocations.inc_by(u64::try_from(pairs.len()).unwrap_or(u64::MAX));
        let archive = Arc::clone(&self.ports.archive);
        self.blocking(move || archive.keep_evidence(&pairs)).await
    }
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
