//! Every way in which a round can end.

use types::call::{Answer, CallMember, CallStatus, Consensus, Group, Outcome};
use types::{Amount, Hash, Usage};

use super::{Decision, decide};
use crate::market::scene::{Does, failure, member, says, success, unable};

const FAILS: Does = Does::Says(Answer { outcome: Outcome::Failure, ..ANSWER });
const ANSWER: Answer = Answer {
    outcome: Outcome::Success,
    result_hash: Hash::ZERO,
    usage: Usage { input_tokens: 1, output_tokens: 1, fuel: 1 },
    receipt_hash: Hash::ZERO,
};

fn members(does: &[Does]) -> Vec<CallMember> {
    does.iter().map(|does| member(0, *does, Amount::ZERO)).collect()
}

fn majority(size: u8, does: &[Does]) -> Decision {
    decide(Consensus::Majority, size, &members(does))
}

fn threshold(needed: u8, size: u8, does: &[Does]) -> Decision {
    decide(Consensus::Threshold(needed), size, &members(does))
}

/// A decision without a group.
fn undecided(status: CallStatus) -> Decision {
    Decision { status, group: None, agreeing: 0 }
}

#[test]
fn more_than_half_of_the_members_decide() {
    let group = Some(Group::Same(success(1)));
    let decided = Decision { status: CallStatus::Success, group, agreeing: 2 };
    assert_eq!(majority(3, &[says(1), says(2), says(1)]), decided);
    assert_eq!(
        majority(5, &[says(1), says(2), says(1), says(3), says(4)]),
        undecided(CallStatus::Failed)
    );
    assert_eq!(majority(1, &[says(1)]), Decision { agreeing: 1, ..decided });
}

#[test]
fn a_group_of_failures_decides_that_the_call_failed() {
    let group = Some(Group::Same(failure()));
    let fails = Does::Says(failure());
    let decided = Decision { status: CallStatus::Failed, group, agreeing: 2 };
    assert_eq!(majority(3, &[fails, fails, says(1)]), decided);
}

#[test]
fn a_majority_agrees_about_every_part_of_the_answer() {
    let usage = ANSWER.usage;
    let others = [
        Answer { outcome: Outcome::Failure, ..ANSWER },
        Answer { result_hash: Hash::new([1; 32]), ..ANSWER },
        Answer { receipt_hash: Hash::new([1; 32]), ..ANSWER },
        Answer { usage: Usage { input_tokens: 2, ..usage }, ..ANSWER },
        Answer { usage: Usage { output_tokens: 2, ..usage }, ..ANSWER },
        Answer { usage: Usage { fuel: 2, ..usage }, ..ANSWER },
    ];
    for other in others {
        let decision = majority(3, &[Does::Says(ANSWER), Does::Says(other), Does::Nothing]);
        assert_eq!(decision, undecided(CallStatus::Failed), "{other:?}");
    }
}

#[test]
fn unable_and_silence_are_in_no_group() {
    assert_eq!(majority(3, &[unable(), unable(), unable()]), undecided(CallStatus::Failed));
    assert_eq!(threshold(1, 3, &[unable(), unable(), unable()]), undecided(CallStatus::Failed));
    assert_eq!(majority(3, &[says(1), unable(), Does::Nothing]), undecided(CallStatus::Failed));
}

#[test]
fn a_threshold_counts_all_successes_first_and_then_all_failures() {
    let successes = Some(Group::Of(Outcome::Success));
    let decided = Decision { status: CallStatus::Success, group: successes, agreeing: 2 };
    assert_eq!(threshold(2, 3, &[says(1), says(2), FAILS]), decided);
    assert_eq!(threshold(2, 5, &[FAILS, FAILS, FAILS, says(1), says(2)]), decided);
    let failures = Some(Group::Of(Outcome::Failure));
    let failed = Decision { status: CallStatus::Failed, group: failures, agreeing: 2 };
    assert_eq!(threshold(2, 3, &[FAILS, says(1), Does::Says(failure())]), failed);
    assert_eq!(threshold(3, 3, &[says(1), says(2), FAILS]), undecided(CallStatus::Failed));
}

#[test]
fn a_round_in_which_nobody_committed_timed_out() {
    assert_eq!(majority(3, &[Does::Nothing; 3]), undecided(CallStatus::TimedOut));
    assert_eq!(majority(3, &[]), undecided(CallStatus::TimedOut));
    assert_eq!(threshold(2, 3, &[Does::Nothing; 3]), undecided(CallStatus::TimedOut));
}

#[test]
fn a_round_timed_out_that_those_who_withheld_could_have_decided() {
    let withholds = Does::Withholds;
    assert_eq!(majority(3, &[says(1), withholds, says(2)]), undecided(CallStatus::TimedOut));
    assert_eq!(majority(3, &[says(1), withholds]), undecided(CallStatus::TimedOut));
    assert_eq!(majority(3, &[withholds, withholds]), undecided(CallStatus::TimedOut));
    let too_few = [says(1), says(2), says(3), withholds, Does::Nothing];
    assert_eq!(majority(5, &too_few), undecided(CallStatus::Failed));
    assert_eq!(majority(3, &[withholds, unable(), unable()]), undecided(CallStatus::Failed));
    let enough = [says(1), says(1), withholds, says(3), says(4)];
    assert_eq!(majority(5, &enough), undecided(CallStatus::TimedOut));
    assert_eq!(threshold(3, 3, &[FAILS, FAILS, withholds]), undecided(CallStatus::TimedOut));
    assert_eq!(threshold(3, 3, &[says(1), FAILS, withholds]), undecided(CallStatus::Failed));
}

#[test]
fn empty_seats_count_as_silence() {
    assert_eq!(majority(5, &[says(1), says(1)]), undecided(CallStatus::Failed));
    assert_eq!(majority(5, &[says(1), says(1), says(1)]).status, CallStatus::Success);
    assert_eq!(threshold(2, 5, &[says(1), says(2)]).status, CallStatus::Success);
}
