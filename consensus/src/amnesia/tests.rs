//! Who may sign after a start, and who has to wait.

use parking_lot::Mutex;
use types::Hash;

use super::*;
use crate::Undecided;
use crate::testing::{Kept, key, set_of, tip_of};

#[expect(clippy::unwrap_in_result, reason = "the files of a test can be written")]
/// What is said of a validator that has signed `signed`, with a log of `log`; it has kept its own
/// proposals of the heights `kept`.
fn asked(
    signed: u64,
    log: Option<u64>,
    seeds: &[u8],
    kept: &[u64],
) -> Result<Option<u64>, StartError> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    if let Some(height) = log {
        let bytes = [VERSION.as_slice(), &height.to_be_bytes(), b"entries"].concat();
        std::fs::write(&path, bytes).expect("written");
    }
    let (own, signed) = (key(1).address(), LastSigned { height: signed, round: 0 });
    let block = Undecided { round: 0, proposer: own, seal: None, hash: Hash::ZERO };
    let kept = kept.iter().map(|height| (*height, block.clone())).collect();
    let tip = tip_of(set_of(seeds.iter().copied()));
    withheld(signed, (&tip, own), &Kept(Mutex::new(kept)), &path)
}

const FOUR: &[u8] = &[1, 2, 3, 4];

#[test]
fn a_validator_that_has_its_log_or_has_signed_nothing_further_signs() {
    for (signed, log, seeds) in
        [(10, None, FOUR), (0, None, FOUR), (11, Some(11), FOUR), (11, Some(11), &[1])]
    {
        let withheld = asked(signed, log, seeds, &[]).expect("may start");
        assert_eq!(withheld, None, "{signed} {log:?} {seeds:?}");
    }
}

#[test]
fn a_validator_whose_log_of_what_it_signed_is_lost_waits_until_that_is_decided() {
    for log in [None, Some(10), Some(12), Some(0)] {
        assert_eq!(asked(11, log, &[1, 2], &[]).expect("may start"), Some(11), "{log:?}");
    }
    // The engine begins with height 11 and throws away a log of height 13.
    assert_eq!(asked(13, Some(13), &[1, 2], &[11]).expect("may start"), Some(13));
    // What is kept of the height does not say what the key is bound to.
    assert_eq!(asked(11, None, &[1, 2], &[11]).expect("may start"), Some(11));
}

#[test]
fn the_only_validator_goes_on_with_its_kept_proposal_and_else_does_not_start() {
    assert_eq!(asked(11, None, &[1], &[11]).expect("may start"), None);
    for (signed, kept) in [(11, &[][..]), (12, &[11][..])] {
        let refused = asked(signed, None, &[1], kept).expect_err("it would wait forever");
        assert!(matches!(refused, StartError::Amnesia { tip: 10, .. }), "{refused}");
        assert!(refused.forbids_restart());
    }
}

#[test]
fn a_key_of_the_set_without_a_record_may_have_signed_what_comes_after_the_tip() {
    let height = |seed: u8, tip: &Tip| without_record(tip, key(seed).address());
    let tip = Tip { next_validators: set_of([1, 9]), ..tip_of(set_of([1, 2, 3])) };
    assert_eq!([1, 2, 9].map(|seed| height(seed, &tip)), [tip.height + FORGOTTEN_MAX; 3]);
    assert_eq!(height(8, &tip), 0, "it is in no set yet");
    assert_eq!(height(1, &Tip { height: 0, ..tip }), 0, "all keys of a new chain are new");
    assert_eq!(height(1, &tip_of(set_of([1]))), 0, "nobody else decides");
}

#[test]
fn a_log_that_the_engine_would_not_read_is_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    for bytes in [&b""[..], b"\0\0\0\x01\0\0\0", b"\0\0\0\x02\0\0\0\0\0\0\0\x0b"] {
        std::fs::write(&path, bytes).expect("written");
        assert_eq!(height_of(&path), None);
    }
}

#[test]
fn only_a_log_of_the_height_that_was_signed_last_and_comes_next_is_a_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked =
        |signed, tip| remembers(folder.path(), LastSigned { height: signed, round: 0 }, tip);
    assert!(!asked(11, 10));
    let bytes = [VERSION.as_slice(), &11_u64.to_be_bytes()].concat();
    std::fs::write(folder.path().join(LOG_NAME), bytes).expect("written");
    assert!(asked(11, 10));
    assert!(!asked(11, 9) && !asked(12, 10) && !asked(10, 10));
}
