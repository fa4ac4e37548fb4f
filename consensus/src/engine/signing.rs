//! Signatures: the verifier, and the signer that asks the guard first.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use malachitebft_core_types::{SignedMessage, ValidatorProof, VoteExtensionScope};
use malachitebft_signing::{Error, VerificationResult};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use types::sign_bytes::{BodyFields, Domain, ProposalFields, SharedDomain, VoteFields, VoteKind};
use types::{Hash, Keypair};

use super::context::{Ctx, Proposal, Vote};
use super::scheme::{PublicKey, Signature};
use crate::Counters;
use crate::guard::{Guard, GuardError, Kind, LastSigned};
use crate::presence::Presence;
use crate::quorums::Quorums;

/// How long a precommit of fork v7 waits for the votes to be counted that say from which height on there
/// are such. The engine asks its peers for the block again when it is refused, at once and without end.
const COUNT_WAIT: Duration = Duration::from_millis(500);

/// Checks signatures of validators on this chain.
#[derive(Clone, Debug)]
pub(crate) struct Verifier {
    domain: SharedDomain,
    /// Cancelled when the domain is known: the votes in earlier blocks are counted.
    is_counted: CancellationToken,
    /// Told of each good signature of a validator.
    presence: Presence,
    /// Told of each good vote.
    quorums: Quorums,
}

impl Verifier {
    pub(crate) fn new(domain: SharedDomain, presence: Presence) -> Self {
        let is_counted = CancellationToken::new();
        is_counted.cancel();
        Self { domain, is_counted, presence, quorums: Quorums::default() }
    }

    /// The same on a node that may not know the height of fork v7 until this is cancelled.
    pub(crate) fn until_counted(self, is_counted: CancellationToken) -> Self {
        Self { is_counted, ..self }
    }

    /// Waits a moment if a precommit is refused only for the height of v7, which is not known yet. Answers
    /// whether it is to be checked once more.
    async fn has_learned(&self, vote: &VoteFields, key: &PublicKey, signature: &Signature) -> bool {
        let may_learn = vote.kind == VoteKind::Precommit
            && !self.is_counted.is_cancelled()
            && self.domain.v7_from().is_none();
        if !may_learn {
            return false;
        }
        let of_v7 = Domain { v7_from: Some(vote.height), ..self.domain.now() };
        if !key.0.verify(&of_v7.vote(vote), &signature.0) {
            return false;
        }
        tokio::time::timeout(COUNT_WAIT, self.is_counted.cancelled()).await.is_ok()
    }

    /// What a quorum has voted for, as far as this verifier and its clones have seen.
    pub(crate) fn quorums(&self) -> Quorums {
        self.quorums.clone()
    }

    /// Whether the rules of fork v7 hold at a height.
    pub(crate) fn is_v7(&self, height: u64) -> bool {
        self.domain.now().v7_from.is_some_and(|from| height >= from)
    }

    /// Whether a proposer sealed this body.
    pub(crate) fn is_sealed(
        &self,
        body: &BodyFields,
        key: &types::PublicKey,
        seal: &types::Signature,
    ) -> bool {
        key.verify(&self.domain.now().body(body), seal)
    }

    /// What is signed of a vote.
    pub(crate) fn vote_bytes(&self, vote: &VoteFields) -> Vec<u8> {
        self.domain.now().vote(vote)
    }

    /// What is signed of a proposal.
    pub(crate) fn proposal_bytes(&self, proposal: &ProposalFields) -> Vec<u8> {
        self.domain.now().proposal(proposal)
    }

    /// Whether a validator signed these bytes of a vote or proposal. On a node that does not know yet from
    /// which height on v7 applies, everything counts as signed: it does not know what is signed.
    pub(crate) fn is_signed(
        &self,
        bytes: &[u8],
        key: &types::PublicKey,
        signature: &types::Signature,
    ) -> bool {
        !self.is_counted.is_cancelled() || key.verify(bytes, signature)
    }

    /// Whether a validator signed this vote.
    pub(crate) fn is_vote(
        &self,
        vote: &VoteFields,
        key: &types::PublicKey,
        signature: &types::Signature,
    ) -> bool {
        key.verify(&self.domain.now().vote(vote), signature)
    }
}

impl Verifier {
    /// Checks what a validator signed for a height; if it is good, the validator is there.
    fn checked_at(
        &self,
        height: u64,
        key: &PublicKey,
        message: &[u8],
        signature: &Signature,
    ) -> VerificationResult {
        let result = checked(key, message, signature);
        if matches!(result, VerificationResult::Valid) {
            self.presence.heard(key.0.address(), height);
        }
        result
    }
}

fn checked(key: &PublicKey, message: &[u8], signature: &Signature) -> VerificationResult {
    VerificationResult::from_bool(key.0.verify(message, &signature.0))
}

#[async_trait]
impl malachitebft_signing::Verifier<Ctx> for Verifier {
    async fn verify_signed_vote(
        &self,
        vote: &Vote,
        signature: &Signature,
        public_key: &PublicKey,
    ) -> Result<VerificationResult, Error> {
        let fields = vote.fields();
        let check = || {
            let message = self.domain.now().vote(&fields);
            self.checked_at(fields.height, public_key, &message, signature)
        };
        let mut result = check();
        if matches!(result, VerificationResult::Invalid)
            && self.has_learned(&fields, public_key, signature).await
        {
            result = check();
        }
        if matches!(result, VerificationResult::Valid) {
            self.quorums.voted(&fields);
        }
        Ok(result)
    }

    async fn verify_signed_proposal(
        &self,
        proposal: &Proposal,
        signature: &Signature,
        public_key: &PublicKey,
    ) -> Result<VerificationResult, Error> {
        let fields = proposal.fields();
        let message = self.domain.now().proposal(&fields);
        Ok(self.checked_at(fields.height, public_key, &message, signature))
    }

    /// Vote extensions are not used on this chain: none is valid.
    async fn verify_signed_vote_extension(
        &self,
        _: &VoteExtensionScope<Ctx>,
        _: &Vec<u8>,
        _: &Signature,
        _: &PublicKey,
    ) -> Result<VerificationResult, Error> {
        Ok(VerificationResult::Invalid)
    }

    async fn verify_validator_proof(
        &self,
        proof: &ValidatorProof<Ctx>,
    ) -> Result<VerificationResult, Error> {
        let Ok(key) = proof.decoded_public_key() else {
            return Ok(VerificationResult::Invalid);
        };
        Ok(checked(&key, &proof.preimage(), &proof.signature))
    }
}

/// Signs for one validator on one chain, never against itself.
#[derive(Clone)]
pub(crate) struct Signer {
    domain: SharedDomain,
    keypair: Keypair,
    guard: Arc<Guard>,
    /// The engine's log.
    log: Arc<PathBuf>,
    /// Whether this validator is the whole set of the height that is being decided.
    alone: Arc<AtomicBool>,
    counters: Counters,
    /// Why the guard refused first, if it did.
    refusal: Arc<Mutex<Option<GuardError>>>,
}

impl Signer {
    pub(crate) fn new(
        domain: SharedDomain,
        keypair: Keypair,
        guard: Guard,
        log: PathBuf,
        counters: Counters,
    ) -> Self {
        let alone = Arc::new(AtomicBool::new(false));
        let refusal = Arc::new(Mutex::new(None));
        let (guard, log) = (Arc::new(guard), Arc::new(log));
        Self { domain, keypair, guard, log, alone, counters, refusal }
    }

    /// What the key has signed last.
    pub(crate) fn last_signed(&self) -> LastSigned {
        self.guard.last()
    }

    /// Takes the reason of a refusal, once.
    pub(crate) fn take_refusal(&self) -> Option<GuardError> {
        self.refusal.lock().take()
    }

    pub(crate) fn address(&self) -> types::Address {
        self.keypair.address()
    }

    pub(crate) fn public_key(&self) -> types::PublicKey {
        self.keypair.public_key()
    }

    /// To be told before a height starts.
    pub(crate) fn set_alone(&self, alone: bool) {
        self.alone.store(alone, Ordering::Release);
    }

    /// Seals a body of a proposal of our own. Needs no guard: a seal is no vote, and
    /// contradicting ones harm nobody.
    pub(crate) fn seal(&self, body: &BodyFields) -> types::Signature {
        self.keypair.sign(&self.domain.now().body(body))
    }

    /// Asks the guard on a blocking thread (it syncs to disk).
    async fn ask(
        &self,
        question: impl FnOnce(&Guard) -> Result<(), GuardError> + Send + 'static,
    ) -> Result<(), Error> {
        let guard = Arc::clone(&self.guard);
        match tokio::task::spawn_blocking(move || question(&guard)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(refusal)) => {
                tracing::error!(%refusal, "the guard refuses to sign");
                self.counters.refusals.inc();
                let error = Error::from_source(refusal.to_string());
                self.refusal.lock().get_or_insert(refusal);
                Err(error)
            }
            Err(panic) => Err(Error::from_source(panic)),
        }
    }
}

/// Brings what the engine has written to its log to the disk.
fn sync(log: &Path) -> Result<(), GuardError> {
    let synced = match File::open(log) {
        Ok(file) => file.sync_data(),
        // Nothing was written yet.
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(fault) => Err(fault),
    };
    synced.map_err(|source| GuardError::Io { path: log.to_owned(), source })
}

#[async_trait]
impl malachitebft_signing::Signer<Ctx> for Signer {
    async fn sign_vote(&self, vote: Vote) -> Result<SignedMessage<Ctx, Vote>, Error> {
        let fields = vote.fields();
        let message = self.domain.now().vote(&fields);
        let digest = Hash::digest(&message);
        let kind = match fields.kind {
            VoteKind::Prevote => Kind::Prevote,
            VoteKind::Precommit => Kind::Precommit,
        };
        let is_alone = self.alone.load(Ordering::Acquire);
        let decides_nothing = fields.value.is_none() && is_alone;
        // The engine syncs its log after the signature. If the power failed in between, the record would
        // hold the validator to a proposal that the log has lost and nobody sends again.
        let needs_log = kind == Kind::Prevote && fields.value.is_some() && !is_alone;
        let log = Arc::clone(&self.log);
        self.ask(move |guard| {
            if needs_log {
                sync(&log)?;
            }
            if decides_nothing {
                guard.permit_nil_alone(fields.height, fields.round)
            } else {
                guard.permit(fields.height, fields.round, kind, digest)
            }
        })
        .await?;
        self.counters.votes.inc();
        Ok(SignedMessage::new(vote, self.keypair.sign(&message).into()))
    }

    async fn sign_proposal(
        &self,
        proposal: Proposal,
    ) -> Result<SignedMessage<Ctx, Proposal>, Error> {
        let fields = proposal.fields();
        let message = self.domain.now().proposal(&fields);
        let digest = Hash::digest(&message);
        if self.alone.load(Ordering::Acquire) && fields.valid_round < 0 {
            let [prevote, precommit] = [VoteKind::Prevote, VoteKind::Precommit].map(|kind| {
                let vote = VoteFields {
                    kind,
                    height: fields.height,
                    round: fields.round,
                    value: Some(fields.value),
                    validator: fields.validator,
                };
                Hash::digest(&self.domain.now().vote(&vote))
            });
            let digests = [digest, prevote, precommit];
            self.ask(move |guard| guard.permit_alone(fields.height, fields.round, digests)).await?;
        } else {
            self.ask(move |guard| {
                guard.permit(fields.height, fields.round, Kind::Proposal, digest)
            })
            .await?;
        }
        self.counters.proposals.inc();
        Ok(SignedMessage::new(proposal, self.keypair.sign(&message).into()))
    }

    /// Vote extensions are not used on this chain.
    async fn sign_vote_extension(
        &self,
        _: VoteExtensionScope<Ctx>,
        _: Vec<u8>,
    ) -> Result<SignedMessage<Ctx, Vec<u8>>, Error> {
        Err(Error::new())
    }

    async fn sign_validator_proof(
        &self,
        public_key: Vec<u8>,
        peer_id: Vec<u8>,
    ) -> Result<ValidatorProof<Ctx>, Error> {
        let message = ValidatorProof::<Ctx>::signing_bytes(&public_key, &peer_id);
        let signature = self.keypair.sign(&message).into();
        Ok(ValidatorProof::new(public_key, peer_id, signature))
    }
}

#[cfg(test)]
mod tests;
