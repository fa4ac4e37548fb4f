//! The names of subjects, which forks may be voted for, and how long votes count.

use std::sync::Arc;

use types::{Forks, Hash, Keypair};

use super::*;
use crate::chain::ChainRules;
use crate::memory::Memory;

#[test]
fn a_vote_counts_until_it_is_a_million_blocks_old() {
    const AT: u64 = 5;
    let member = |seed| {
        let public_key = Keypair::from_seed(&[seed; 32]).public_key();
        SetMember { public_key, power: 1 }
    };
    let validators = vec![member(1), member(2)];
    let voter = validators::address(&member(1));
    let forks = Forks { v6: 0, validator_vote: Some(0), v7: Some(0), v8: None };
    let (chain_id, genesis_hash, params) = ("test".to_owned(), Hash::ZERO, Params::default());
    let chain = ChainRules { chain_id, genesis_hash, params, forks, validators };
    let memory = Arc::new(Memory::default());
    memory.apply(&chain.first_state(&BTreeMap::new()).unwrap());
    let left_after = |height| {
        let mut draft = Draft::new(Arc::<Memory>::clone(&memory));
        let vote = RuleVote { value: 0, height: AT + FORK_VOTE_BLOCKS, at: AT };
        draft.put::<RuleVotes>(&(voter, Subject::Fork("v8".to_owned()).text()), &vote);
        mark(&mut draft, voter, AT);
        let rules = Rules::at(&chain, &draft, height).unwrap();
        assert_eq!(end_block(&mut draft, &rules, height).unwrap(), []);
        votes(&draft).unwrap().len()
    };
    assert_eq!(left_after(AT + FORK_VOTE_BLOCKS - 1), 2);
    assert_eq!(left_after(AT + FORK_VOTE_BLOCKS), 0, "nor is there a mark of the last vote");
}

#[test]
fn a_subject_is_what_its_text_says() {
    for subject in [Subject::Fork("v8".to_owned()), Subject::Param("baseFeeFloor".to_owned())] {
        assert_eq!(Subject::parse(&subject.text()), Some(subject));
    }
    assert_eq!(Subject::parse(&LAST), None);
    assert_eq!(Subject::parse("v8"), None);
}

#[test]
fn forks_from_v8_to_v99_may_be_voted_for() {
    for fork in ["v8", "v9", "v10", "v99"] {
        assert!(is_votable(fork), "{fork}");
    }
    for fork in ["", "v", "v7", "v07", "v08", "v100", "8", "V8", "v8 ", "v+8", "w8", "v8v8"] {
        assert!(!is_votable(fork), "{fork:?}");
    }
}
