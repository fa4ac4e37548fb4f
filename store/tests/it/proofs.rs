//! Proofs made by the database, checked with nothing but a header.

use state::table::{Key, Table, decode_value};
use state::tables::{Accounts, Runs};
use store::tree::ProofError;
use store::{Options, StateProof, Store};
use types::{Address, Hash, RunStatus};

use crate::fixture::{TestChain, whole_run};

/// What a client does: the proof against the root in the header that it trusts.
fn check<T: Table>(chain: &TestChain, key: &T::Key, proof: &StateProof) {
    let header = chain.store.snapshot().header(proof.header_height).unwrap().unwrap().header;
    assert_eq!(header.state_root, proof.root);
    proof.proof.verify(header.state_root, T::ID, &key.to_bytes(), proof.value.as_deref()).unwrap();
}

/// The proof of the newest state, checked.
pub(crate) fn proved<T: Table>(chain: &TestChain, key: &T::Key) -> StateProof {
    let proof = chain.store.snapshot().prove::<T>(key).unwrap().unwrap();
    check::<T>(chain, key, &proof);
    proof
}

#[test]
fn an_account_and_a_run_are_proved_as_they_were_before_the_last_block() {
    let (_dir, mut chain) = TestChain::fresh(2);
    let (user, miner) = chain.pair(0, 1);
    let (run, txs) = whole_run(1, user, miner);
    chain.block(&txs[..5]);
    chain.block(&txs[5..]);
    let user = chain.wallets[0].address();

    let proof = proved::<Runs>(&chain, &run);
    assert_eq!((proof.height, proof.header_height), (1, 2));
    let record = decode_value::<Runs>(proof.value.as_deref().unwrap()).unwrap();
    assert_eq!((record.status, record.step_count), (RunStatus::Running, 3));

    chain.block(&[]);
    let proof = proved::<Runs>(&chain, &run);
    let record = decode_value::<Runs>(proof.value.as_deref().unwrap()).unwrap();
    assert_eq!(record.status, RunStatus::Completed);
    proved::<Accounts>(&chain, &user);
}

#[test]
fn absence_is_proved_as_well() {
    let (_dir, chain) = TestChain::fresh(5);
    chain.block(&[]);
    for number in 0..50_u8 {
        let nobody = Address::new([number; 20]);
        assert_eq!(proved::<Accounts>(&chain, &nobody).value, None);
    }
}

#[test]
fn there_is_no_proof_without_a_header_or_for_a_forgotten_state() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { provable_heights: 3, ..Options::default() };
    let mut chain = TestChain::with(Store::open(dir.path(), options).unwrap(), 2);
    let user = chain.wallets[0].address();
    assert!(chain.store.snapshot().prove::<Accounts>(&user).unwrap().is_none());
    for amount in 1..20 {
        let tx = chain.transfer(0, 1, amount);
        chain.block(&[tx]);
    }
    let snapshot = chain.store.snapshot();
    assert!(snapshot.prove_at::<Accounts>(&user, 20).unwrap().is_none(), "no such header");
    assert!(snapshot.prove_at::<Accounts>(&user, 5).unwrap().is_none(), "forgotten");
    for header in 17..=19 {
        let proof = snapshot.prove_at::<Accounts>(&user, header).unwrap().unwrap();
        assert_eq!(proof.height, header - 1);
        check::<Accounts>(&chain, &user, &proof);
        let value = proof.value.as_deref();
        let other = proof.proof.verify(Hash::ZERO, Accounts::ID, &user.to_bytes(), value);
        assert_eq!(other, Err(ProofError::Root { found: proof.root, expected: Hash::ZERO }));
    }
}
