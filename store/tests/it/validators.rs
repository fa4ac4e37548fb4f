//! The validators of every height, certificates that are checked with the right set, and what was
//! seen of validators that contradicted themselves.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use state::table::{Table, decode_value};
use state::tables::Validators;
use state::{ChainRules, Changes, Forks, validators};
use store::tools::{self, Certificates, Replay, ToolError, V7Height};
use store::{Equivocation, Equivocations, SignedChoice};
use tempfile::TempDir;
use types::codec;
use types::tx::ValidatorVote;
use types::{Address, Body, CheckedTx, Hash, SetMember, Signature};

use crate::fixture::{TIME, TestChain, Wallet, chain_of, input, open, rules, rules_with};
use crate::tools::{quiet, verify};

fn member(wallet: &Wallet, power: u64) -> SetMember {
    SetMember { public_key: wallet.key.public_key(), power }
}

fn sorted(mut set: Vec<SetMember>) -> Vec<SetMember> {
    set.sort_by_key(|member| member.public_key.address());
    set
}

/// The rules of a chain that votes can change, with wallet 0 as the only validator.
pub(crate) fn chain_rules() -> Arc<ChainRules> {
    let forks = Forks { validator_vote: Some(0), ..Forks::default() };
    rules_with(forks, &[(Wallet::new(0).key.public_key(), 10)])
}

/// The certificate of a block is the set that may decide it.
fn certificate(set: &[SetMember]) -> Vec<u8> {
    codec::encode(&set.to_vec())
}

/// Wallet 0 takes wallet 1 in with block 1, and both remove wallet 0 with block 4.
fn chain() -> (TempDir, TestChain, Changes) {
    let (dir, mut chain, changes) = chain_of(2, chain_rules());
    let wallets = &mut chain.wallets;
    let keys = [0, 1].map(|at: usize| wallets[at].key.public_key());
    let mut vote = |voter: usize, candidate: usize, power| -> CheckedTx {
        let (candidate_key, expires_at) = (keys[candidate], TIME + 1_000_000);
        wallets[voter].tx(&Body::ValidatorVote(ValidatorVote::new(
            candidate_key,
            power,
            expires_at,
        )))
    };
    let blocks = [
        vec![vote(0, 1, 10)],
        vec![],
        vec![],
        vec![vote(0, 0, 0), vote(1, 0, 0)],
        vec![],
        vec![],
        vec![],
    ];
    for txs in blocks {
        let sets = validators::sets(&*chain.store.latest()).unwrap().unwrap();
        let executed = chain.execute(&txs);
        chain.store.commit_block(&input(&executed), &certificate(&sets.current)).unwrap();
    }
    (dir, chain, changes)
}

/// Accepts [`certificate`] of the set that it is given, and keeps the sizes of the sets.
#[derive(Default)]
struct Strict(Mutex<Vec<usize>>);

impl Certificates for Strict {
    fn verify(
        &self,
        _: V7Height,
        set: Option<&[SetMember]>,
        height: u64,
        _: &Hash,
        bytes: &[u8],
    ) -> Result<Vec<Address>, String> {
        let set = set.ok_or("no set")?;
        self.0.lock().map_err(|poisoned| poisoned.to_string())?.push(set.len());
        let is_right = bytes == certificate(set);
        if is_right { Ok(Vec::new()) } else { Err(format!("not the set of {height}")) }
    }
}

fn replay<'a>(changes: &'a Changes, certificates: &'a Strict) -> Replay<'a> {
    let (chain, threads) = (chain_rules(), NonZeroUsize::MIN);
    Replay { chain, certificates, threads, ..crate::tools::replay(changes) }
}

#[test]
fn the_set_of_every_height_is_known_up_to_two_above_the_tip() {
    let (_dir, chain, _) = chain();
    let [zero, one] = [0, 1].map(|at: usize| member(&chain.wallets[at], 10));
    let both = sorted(vec![zero, one]);
    let snapshot = chain.store.snapshot();
    for height in 1..=9 {
        let expected = match height {
            1..3 => (1, vec![zero]),
            3..6 => (3, both.clone()),
            _ => (6, vec![one]),
        };
        let stored = snapshot.validator_set(height).unwrap().unwrap();
        assert_eq!((stored.since, stored.members), expected, "height {height}");
    }
}

#[test]
fn a_client_follows_the_sets_from_headers_that_sets_known_before_have_certified() {
    let (_dir, chain, _) = chain();
    let snapshot = chain.store.snapshot();
    let mut known = vec![member(&chain.wallets[0], 10)];
    for header_height in 1..=chain.tip().height {
        // The header is certified by the set that the client knows, and proves the next one.
        assert_eq!(snapshot.certificate(header_height).unwrap(), Some(certificate(&known)));
        let header = snapshot.header(header_height).unwrap().unwrap().header;
        let proof = snapshot.prove_at::<Validators>(&(), header_height).unwrap().unwrap();
        let value = proof.value.unwrap();
        proof.proof.verify(header.state_root, Validators::ID, &[], Some(&value)).unwrap();
        let sets = decode_value::<Validators>(&value).unwrap();
        assert_eq!(sets.current, known);
        known = sets.next.unwrap_or(known);
    }
}

#[test]
fn a_chain_without_the_fork_has_no_sets() {
    let (_dir, chain) = TestChain::fresh(1);
    chain.block(&[]);
    assert_eq!(chain.store.snapshot().validator_set(1).unwrap(), None);
    assert_eq!(validators::sets(&*chain.store.latest()).unwrap(), None);
}

#[test]
fn every_block_is_verified_with_the_set_of_its_height() {
    let (dir, chain, changes) = chain();
    let strict = Strict::default();
    let verified = verify(&chain.store, dir.path(), &replay(&changes, &strict)).unwrap();
    assert_eq!(verified.tip, chain.tip());
    assert_eq!(*strict.0.lock().unwrap(), [1, 1, 2, 2, 2, 1, 1]);
}

#[test]
fn an_import_checks_each_certificate_with_its_own_set() {
    let (dir, chain, changes) = chain();
    let file = dir.path().join("blocks");
    tools::export(&chain.store, &file, (1, None), &mut quiet).unwrap();
    let copy = open(&dir.path().join("copy"));
    let strict = Strict::default();
    let tip = tools::import(&copy, &file, &replay(&changes, &strict), &mut quiet).unwrap();
    assert_eq!(tip, chain.tip());

    // A chain that keeps its first set refuses the first block that another set decided.
    let kept = open(&dir.path().join("kept"));
    let stubborn = Replay { chain: rules(), ..replay(&changes, &strict) };
    let refused = tools::import(&kept, &file, &stubborn, &mut quiet).unwrap_err();
    assert!(matches!(refused, ToolError::Replay { height: 1, .. }), "{refused}");
}

fn pair(height: u64) -> Equivocation {
    let choice = |byte: u8| SignedChoice {
        block_hash: Some(Hash::new([byte; 32])),
        valid_round: -1,
        signature: Signature::new([byte; 64]),
    };
    let (first, second) = (choice(1), choice(2));
    Equivocation { height, round: 0, kind: Equivocation::PRECOMMIT, first, second }
}

#[test]
fn contradictions_are_counted_and_the_last_are_kept_over_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let [one, other] = [Address::new([1; 20]), Address::new([2; 20])];
    {
        let chain = TestChain::new(dir.path(), 1);
        let pairs: Vec<_> = (1..=20).map(|height| (one, pair(height))).collect();
        chain.store.add_equivocations(&pairs).unwrap();
        chain.store.add_equivocations(&[(one, pair(20)), (other, pair(3))]).unwrap();
    }
    let store = open(dir.path());
    let snapshot = store.snapshot();
    let last: Vec<_> = (5..=20).map(pair).collect();
    assert_eq!(last.len(), Equivocations::KEPT_MAX);
    assert_eq!(snapshot.equivocations(&one).unwrap(), Equivocations { count: 20, last });
    assert_eq!(snapshot.equivocations(&other).unwrap().count, 1);
    assert_eq!(snapshot.equivocations(&Address::new([3; 20])).unwrap(), Equivocations::default());
}

#[test]
fn what_a_node_saw_is_no_part_of_what_is_verified() {
    let (dir, chain, changes) = chain();
    chain.store.add_equivocations(&[(Address::new([1; 20]), pair(1))]).unwrap();
    let strict = Strict::default();
    verify(&chain.store, dir.path(), &replay(&changes, &strict)).unwrap();
}
