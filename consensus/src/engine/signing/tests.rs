//! What is signed verifies, elsewhere it does not, and the guard has the last word.

use malachitebft_core_types::{Context, NilOrVal, PolkaCertificate, Round, ThresholdParams};
use malachitebft_signing::{Signer as _, Verifier as _, VerifierExt as _};

use types::sign_bytes::Domain;

use super::*;
use crate::engine::context::{Address, Height, Validators, Value};
use crate::testing::{CHAIN, domain, key, keys, set, verifier};

struct Desk {
    signer: Signer,
    _directory: tempfile::TempDir,
}

fn desk() -> Desk {
    desk_in(domain(CHAIN).into())
}

fn desk_in(shared: SharedDomain) -> Desk {
    let directory = tempfile::tempdir().expect("a directory");
    let opened = Guard::open(directory.path(), &domain(CHAIN), &key(1).public_key(), 0);
    let signer = Signer::new(
        shared,
        key(1),
        opened.expect("a guard"),
        directory.path().join("log"),
        Counters::default(),
    );
    Desk { signer, _directory: directory }
}

fn value(byte: u8) -> Value {
    Hash::new([byte; 32]).into()
}

fn prevote(signer: &Signer, value: NilOrVal<Value>) -> Vote {
    let address = Address::from(signer.address());
    Ctx.new_prevote(Height(5), Round::new(0), value, address)
}

#[tokio::test]
async fn votes_and_proposals_verify_on_their_chain_only() {
    let Desk { signer, _directory } = desk();
    let key = signer.public_key().into();
    let vote = prevote(&signer, NilOrVal::Val(value(1)));
    let vote = signer.sign_vote(vote).await.expect("a vote");
    let address = signer.address().into();
    let proposal = Ctx.new_proposal(Height(5), Round::new(0), value(1), Round::Nil, address);
    let proposal = signer.sign_proposal(proposal).await.expect("a proposal");
    for (chain, expected) in [(CHAIN, true), ("another", false)] {
        let verifier = verifier(domain(chain));
        let checked = verifier.verify_signed_vote(&vote.message, &vote.signature, &key).await;
        assert_eq!(checked.expect("an answer").is_valid(), expected);
        let checked =
            verifier.verify_signed_proposal(&proposal.message, &proposal.signature, &key).await;
        assert_eq!(checked.expect("an answer").is_valid(), expected);
    }
}

#[tokio::test]
async fn a_vote_for_a_block_whose_log_cannot_be_synced_is_not_recorded() {
    let Desk { signer, _directory } = desk();
    // What is opened cannot be read through a loop of links.
    let log = _directory.path().join("log");
    std::os::unix::fs::symlink(&log, &log).expect("a link to itself");
    let vote = prevote(&signer, NilOrVal::Val(value(1)));
    signer.sign_vote(vote).await.expect_err("a log that cannot be synced");
    let refusal = signer.take_refusal().expect("why");
    assert!(matches!(refusal, GuardError::Io { path, .. } if path == log));
    std::fs::remove_file(&log).expect("no link any more");
    let other = prevote(&signer, NilOrVal::Val(value(2)));
    signer.sign_vote(other).await.expect("nothing of this round was recorded");
}

#[tokio::test]
async fn from_the_height_that_votes_fix_on_everybody_signs_the_second_version() {
    let shared = SharedDomain::from(domain(CHAIN));
    let Desk { signer, _directory } = desk_in(shared.clone());
    let (verifier, late) = (verifier(shared.clone()), verifier(domain(CHAIN)));
    let key = signer.public_key().into();
    let vote = |height| {
        Ctx.new_prevote(Height(height), Round::new(0), NilOrVal::Nil, signer.address().into())
    };
    assert_eq!(shared.fix_v7(6), 6);
    for (height, is_same) in [(5, true), (6, false), (7, false)] {
        let vote = signer.sign_vote(vote(height)).await.expect("a vote");
        for (verifier, expected) in [(&verifier, true), (&late, is_same)] {
            let checked = verifier.verify_signed_vote(&vote.message, &vote.signature, &key).await;
            assert_eq!(checked.expect("an answer").is_valid(), expected, "at height {height}");
        }
    }
}

#[tokio::test]
async fn a_precommit_of_v7_waits_for_the_count_that_says_from_when_on_there_are_such() {
    let keypair = key(1);
    let precommit = |height| {
        let address = keypair.address().into();
        Ctx.new_precommit(Height(height), Round::new(0), NilOrVal::Val(value(1)), address)
    };
    let of_v7 = Domain { v7_from: Some(6), ..domain(CHAIN) };
    let key = keypair.public_key().into();
    for (learned, expected) in [(Some(6), true), (Some(7), false), (None, false)] {
        let (shared, counted) = (SharedDomain::from(domain(CHAIN)), CancellationToken::new());
        let verifier = verifier(shared.clone()).until_counted(counted.clone());
        let vote = precommit(6);
        let signature = keypair.sign(&of_v7.vote(&vote.fields())).into();
        // The check is under way when the votes are counted, unless it has been refused before.
        let (checked, ()) =
            tokio::join!(verifier.verify_signed_vote(&vote, &signature, &key), async {
                if let Some(height) = learned {
                    assert_eq!(shared.fix_v7(height), height);
                    counted.cancel();
                }
            });
        assert_eq!(checked.expect("an answer").is_valid(), expected, "{learned:?}");
    }
}

#[tokio::test]
async fn the_votes_of_a_certificate_are_counted_as_the_engine_checks_them() {
    let (keys, set, verifier) = (keys(), set(), verifier(domain(CHAIN)));
    let quorums = verifier.quorums();
    quorums.open(5, &set);
    let signed = |key: &Keypair| {
        let choice = NilOrVal::Val(value(1));
        let vote = Ctx.new_prevote(Height(5), Round::new(40), choice, key.address().into());
        let signature = key.sign(&domain(CHAIN).vote(&vote.fields())).into();
        SignedMessage::new(vote, signature)
    };
    let check = async |count: usize, is_good: bool| {
        let votes = keys.iter().take(count).map(signed).collect();
        let certificate = PolkaCertificate::new(Height(5), Round::new(40), value(1), votes);
        let thresholds = ThresholdParams::default();
        let set = Validators::from(&set);
        let checked = verifier.verify_polka_certificate(&Ctx, &certificate, &set, thresholds).await;
        assert_eq!(checked.is_ok(), is_good);
    };
    check(2, false).await;
    assert!(!quorums.agreed_on(&Hash::new([1; 32])));
    check(3, true).await;
    assert!(quorums.agreed_on(&Hash::new([1; 32])));
}

#[tokio::test]
async fn a_second_opinion_is_refused_and_remembered() {
    let Desk { signer, _directory } = desk();
    let first = prevote(&signer, NilOrVal::Val(value(1)));
    signer.sign_vote(first).await.expect("the first vote");
    for other in [NilOrVal::Val(value(2)), NilOrVal::Nil] {
        assert!(signer.sign_vote(prevote(&signer, other)).await.is_err());
    }
    assert_eq!((signer.counters.votes.get(), signer.counters.refusals.get()), (1, 2));
    assert!(matches!(signer.take_refusal(), Some(GuardError::Conflict { height: 5, round: 0 })));
}

#[tokio::test]
async fn alone_a_vote_for_nil_does_not_stand_in_the_way() {
    let Desk { signer, _directory } = desk();
    signer.set_alone(true);
    signer.sign_vote(prevote(&signer, NilOrVal::Nil)).await.expect("a vote for nil");
    signer.sign_vote(prevote(&signer, NilOrVal::Val(value(1)))).await.expect("a vote");
    assert!(signer.sign_vote(prevote(&signer, NilOrVal::Val(value(2)))).await.is_err());
}

#[tokio::test]
async fn a_validator_proof_binds_the_key_to_the_peer() {
    let Desk { signer, _directory } = desk();
    let key = signer.public_key().as_bytes().to_vec();
    let mut proof = signer.sign_validator_proof(key, vec![7; 38]).await.expect("a proof");
    let verifier = verifier(domain("any chain"));
    assert!(verifier.verify_validator_proof(&proof).await.expect("an answer").is_valid());
    proof.peer_id[0] ^= 1;
    assert!(verifier.verify_validator_proof(&proof).await.expect("an answer").is_invalid());
    proof.public_key.pop();
    assert!(verifier.verify_validator_proof(&proof).await.expect("an answer").is_invalid());
}

#[tokio::test]
async fn vote_extensions_are_neither_signed_nor_valid() {
    let Desk { signer, _directory } = desk();
    let address = signer.address().into();
    let scope = || VoteExtensionScope::new(Height(1), Round::new(0), value(1), address);
    assert!(signer.sign_vote_extension(scope(), vec![1]).await.is_err());
    let signature = signer.keypair.sign(b"anything").into();
    let key = signer.public_key().into();
    let checked = verifier(domain(CHAIN))
        .verify_signed_vote_extension(&scope(), &vec![1], &signature, &key)
        .await;
    assert!(checked.expect("an answer").is_invalid());
}
