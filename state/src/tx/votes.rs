//! What the kinds with which validators vote have in common.

use types::{Address, Code, Event, Rejection, ValidatorSets};

use crate::draft::Draft;
use crate::error::TxError;
use crate::rule_votes::Subject;
use crate::tables::{RuleVote, RuleVotes};
use crate::validators;
use crate::view::Read;
use crate::work;

/// The sets of the next two heights, if the sender is in the first one; otherwise NOT_VALIDATOR.
pub(crate) fn require_validator(
    state: &dyn Read,
    voter: Address,
) -> Result<ValidatorSets, TxError> {
    let sets = validators::sets(state)?;
    let sets = sets.filter(|sets| validators::power_of(&sets.current, &voter) > 0);
    sets.ok_or_else(|| {
        let expected = "the address of a validator of the next block";
        Rejection::new(Code::NotValidator, "from", voter, expected).into()
    })
}

/// The work of a vote on a rule: the rows of the voter, and its part in the count.
pub(crate) const WORK: u64 = work::rows(8);

/// A vote on a rule to be written; it takes the place of the voter's earlier one on the same subject.
pub(crate) struct Vote {
    pub(crate) voter: Address,
    pub(crate) subject: Subject,
    pub(crate) vote: RuleVote,
}

impl Vote {
    /// Writes it.
    pub(crate) fn cast(self, draft: &mut Draft) -> Event {
        let Self { voter, subject, vote } = self;
        draft.put::<RuleVotes>(&(voter, subject.text()), &vote);
        let (value, height) = (vote.value, vote.height);
        match subject {
            Subject::Param(name) => Event::ParamVoted { name, value, height },
            Subject::Fork(fork) => Event::ForkVoted { fork, height },
        }
    }
}
