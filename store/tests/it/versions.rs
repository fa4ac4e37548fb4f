//! Of which version the signatures of each height must be, where blocks are executed, verified behind a
//! snapshot, or proved by one.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use state::{ChainRules, Changes, Forks};
use store::Store;
use store::snapshots::{ImportError, Offer, OfferError, SnapshotStore};
use store::tools::{EncodedBlock, Replay, ReplayError, Supply, ToolError, V7Height};
use tempfile::TempDir;
use types::sign_bytes::acceptance;
use types::tx::ValidatorVote;
use types::{Body, CheckedTx};

use crate::fixture::{self, TIME, TestChain, Wallet, input, open, proposing};
use crate::peers::{imported, offered};
use crate::tools::{self, Judge, verify};

const V1: &[u8] = b"v1";
const V2: &[u8] = b"v2";

/// Takes certificates that say of which version they are, where that version is right.
static VERSIONED: Judge = Judge(|asked| match asked.v7 {
    V7Height::Unknown => [V1, V2].contains(&asked.certificate),
    V7Height::Known(Some(from)) if asked.height >= from => asked.certificate == V2,
    V7Height::Known(_) => asked.certificate == V1,
});

/// The rules of a chain that wallet 0 decides; somebody with less power makes the blocks.
fn rules(v7: Option<u64>) -> Arc<ChainRules> {
    let forks = Forks { validator_vote: Some(0), v7, ..Forks::default() };
    let powers = [(proposing().public_key(), 1), (Wallet::new(0).key.public_key(), 10)];
    fixture::rules_with(forks, &powers)
}

fn chain(v7: Option<u64>) -> (TempDir, TestChain, Changes) {
    fixture::chain_of(1, rules(v7))
}

fn block(chain: &TestChain, txs: &[CheckedTx], certificate: &[u8]) {
    chain.store.commit_block(&input(&chain.execute(txs)), certificate).unwrap();
}

fn replay(changes: &Changes, v7: Option<u64>) -> Replay<'_> {
    let threads = NonZeroUsize::MIN;
    Replay { chain: rules(v7), certificates: &VERSIONED, threads, ..tools::replay(changes) }
}

/// The height of the block whose certificate was refused, if one was.
fn refused<T>(outcome: Result<T, ToolError>) -> Option<u64> {
    let error = outcome.err()?;
    let height = if let ToolError::Replay { height, source } = &error {
        matches!(**source, ReplayError::Certificate { .. }).then_some(*height)
    } else {
        None
    };
    assert!(height.is_some(), "{error}");
    height
}

/// Makes an offer of the tip's state, which the next block completes.
fn offer(chain: &TestChain, dir: &Path, next: &[u8]) -> (SnapshotStore, Offer) {
    offered(&chain.store, &dir.join("snapshot_store"), || block(chain, &[], next))
}

#[test]
fn every_block_that_is_executed_has_the_version_of_its_height() {
    let cases = [
        ([V1, V1, V2, V2], None),
        ([V1, V2, V2, V2], Some(2)),
        ([V1, V1, V1, V2], Some(3)),
        ([V1, V1, V2, V1], Some(4)),
    ];
    for (certificates, wrong) in cases {
        let (dir, chain, changes) = chain(Some(3));
        for certificate in certificates {
            block(&chain, &[], certificate);
        }
        let verified = verify(&chain.store, dir.path(), &replay(&changes, Some(3)));
        assert_eq!(refused(verified), wrong);
    }
}

#[test]
fn a_database_behind_a_snapshot_is_verified_by_the_version_of_each_height() {
    for (last, wrong) in [(V2, None), (V1, Some(5))] {
        let (dir, chain, changes) = chain(Some(3));
        for certificate in [V1, V1, V2] {
            block(&chain, &[], certificate);
        }
        let offer = offer(&chain, dir.path(), V2);
        let replay = replay(&changes, Some(3));
        let (store, _) = imported(&offer, &replay, dir.path()).unwrap();
        let new = TestChain { store, chain: rules(Some(3)), wallets: Vec::new() };
        block(&new, &[], V2);
        block(&new, &[], last);
        let verified = verify(&new.store, dir.path(), &replay);
        assert_eq!(refused(verified), wrong);
    }
}

#[test]
fn an_offer_is_of_the_versions_that_genesis_gives() {
    for (v7, next, wrong) in [(4, V2, None), (4, V1, Some(4)), (5, V2, Some(4))] {
        let (dir, chain, changes) = chain(Some(v7));
        for _ in 0..3 {
            block(&chain, &[], V1);
        }
        let (_, offer) = offer(&chain, dir.path(), next);
        let refused = match offer.verify(&replay(&changes, Some(v7))) {
            Ok(_) => None,
            Err(OfferError::Certificate { height, .. }) => Some(height),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(refused, wrong, "v7 from {v7} on");
    }
}

#[test]
fn the_links_of_a_snapshot_are_of_the_version_that_its_rows_give() {
    for (certificate, wrong) in [(V2, None), (V1, Some(2))] {
        let (dir, mut chain, changes) = chain(Some(0));
        let (newcomer, expires_at) = (Wallet::new(1).key, TIME + 1_000_000);
        let text = acceptance(&chain.chain.genesis_hash, &newcomer.address(), expires_at);
        let vote = ValidatorVote::new(newcomer.public_key(), 1, expires_at)
            .with_acceptance(newcomer.sign(&text));
        let vote = chain.wallets[0].tx(&Body::ValidatorVote(vote));
        block(&chain, &[vote], V2);
        // This header proves the changed set.
        block(&chain, &[], certificate);
        block(&chain, &[], V2);
        let offer = offer(&chain, dir.path(), V2);
        assert_eq!(offer.1.links.len(), 1);
        // As on a chain whose validators have fixed the height by votes.
        let refused = match imported(&offer, &replay(&changes, None), dir.path()) {
            Ok(_) => None,
            Err(ImportError::Offer(OfferError::Certificate { height, .. })) => Some(height),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(refused, wrong);
    }
}

#[test]
fn who_lacks_the_votes_for_v7_is_told_that_a_block_belongs_to_it_and_nobody_else_is() {
    let (dir, chain, changes) = chain(None);
    for _ in 0..3 {
        block(&chain, &[], V1);
    }
    let offer = offer(&chain, dir.path(), V1);
    let replay = replay(&changes, None);
    let (new, _) = imported(&offer, &replay, dir.path()).unwrap();
    let whole = open(&dir.path().join("whole"));
    let bytes = |height| chain.store.snapshot().block_bytes(height).unwrap().unwrap();
    let give = |store: &Store, height, certificate: &[u8]| {
        let (bytes, certificate) = (bytes(height), certificate.to_vec());
        let block = EncodedBlock { height, bytes, certificate, stated_hash: None };
        store::tools::follow(store, &replay, [Supply::Block(block)].into_iter(), |_, _| {})
    };
    assert_eq!(refused(give(&new, 4, b"v3")), Some(4));
    let waits = give(&new, 4, V2).unwrap_err();
    assert!(waits.storage().is_some_and(state::StorageError::is_uncounted_fork), "{waits}");
    assert_eq!(waits.wrong_block(), None, "nobody's fault");
    give(&new, 4, V1).unwrap();
    for height in 1..=3 {
        give(&whole, height, V1).unwrap();
    }
    assert_eq!(refused(give(&whole, 4, V2)), Some(4), "it has seen every vote");
}
