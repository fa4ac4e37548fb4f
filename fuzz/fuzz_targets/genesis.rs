//! Any bytes are a genesis or a list of faults; a genesis has one canonical form, and its state is
//! in order.
#![no_main]

use genesis::Genesis;
use libfuzzer_sys::fuzz_target;
use state::{Memory, invariants};
use types::Amount;

fuzz_target!(|bytes: &[u8]| {
    match Genesis::parse(bytes) {
        Err(faults) => assert!(!faults.to_string().is_empty(), "refused without a reason"),
        Ok(genesis) => {
            same_after_writing(&genesis);
            supply_is_the_sum(&genesis);
        }
    }
});

fn same_after_writing(genesis: &Genesis) {
    let canonical = genesis.canonical();
    for text in [&canonical, &genesis.to_file()] {
        let again = Genesis::parse(text.as_bytes()).expect("its own text");
        assert_eq!(again, *genesis);
        assert_eq!((again.hash(), again.canonical()), (genesis.hash(), canonical.clone()));
    }
}

fn supply_is_the_sum(genesis: &Genesis) {
    let add = |sum: Option<Amount>, balance: &Amount| sum?.checked_add(*balance);
    let sum = genesis.accounts().values().fold(Some(Amount::ZERO), add);
    assert_eq!(sum, Some(genesis.supply()));
    let memory = Memory::default();
    memory.apply(&genesis.state());
    assert_eq!(state::supply(&memory).expect("memory does not fail").genesis, genesis.supply());
    let report = invariants::verify(&memory, &genesis.chain().params).expect("nor does this");
    assert!(report.broken.is_empty(), "{:?}", report.broken);
}
