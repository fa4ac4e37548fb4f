//! What the kinds with which validators vote have in common.

use types::{Address, Body, Code, Event, Params, Rejection, ValidatorSets};

use crate::draft::Draft;
use crate::error::TxError;
use crate::rule_votes::{self, Subject};
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

/// Whether a vote or an evidence comes too late for block `at`, whatever else holds.
pub(crate) fn is_late(body: &Body, at: u64, params: &Params) -> bool {
    let is_late = |subject: Subject, height| rule_votes::heights(&subject, at, params).0 > height;
    if let Body::ForkVote(vote) = body {
        return is_late(Subject::Fork(vote.fork.clone()), vote.height);
    }
    if let Body::ParamVote(vote) = body {
        return is_late(Subject::Param(vote.name.clone()), vote.height);
    }
    if let Body::Evidence(evidence) = body {
        return evidence.height < at.saturating_sub(params.evidence_age_blocks);
    }
    false
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
