//! The names of subjects, and which forks may be voted for.

use super::*;

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
