//! FORK_VOTE: a validator votes for a fork that is to come (docs/protocol.md section 5.12). The votes
//! are counted at the end of the block, in [`crate::rule_votes`].
//!
//! Refused with NOT_VALIDATOR, FORK_UNKNOWN, INVALID_FIELD, in this order.

use types::tx::ForkVote;
use types::{Code, Event, Rejection, Transaction};

use super::votes::{self, Vote};
use super::{Inclusion, Kind};
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::rule_votes::{self, Subject};
use crate::tables::{ForkRows, RuleVote};
use crate::view::{self, Read};

impl Kind for ForkVote {
    type Plan = Vote;

    const INCLUSION: Inclusion = Inclusion::FreeVote;

    fn check(
        &self,
        tx: &Transaction,
        state: &dyn Read,
        ctx: &Context<'_>,
    ) -> Result<Vote, TxError> {
        votes::require_validator(state, tx.from())?;
        if !rule_votes::is_votable(&self.fork) {
            let expected = "a fork from v8 to v99";
            return Err(Rejection::new(Code::ForkUnknown, "fork", &self.fork, expected).into());
        }
        if let Some(fixed) = view::get::<ForkRows>(state, &self.fork)? {
            let expected = format_args!("a fork whose height is open: this is {}", fixed.height);
            return Err(Rejection::new(Code::ForkUnknown, "fork", &self.fork, expected).into());
        }
        let subject = Subject::Fork(self.fork.clone());
        rule_votes::check_height(&subject, self.height, ctx.height, &ctx.rules.params)?;
        let vote = RuleVote { value: 0, height: self.height, at: ctx.height };
        Ok(Vote { voter: tx.from(), subject, vote })
    }

    fn work(_: &Vote) -> u64 {
        votes::WORK
    }

    fn apply(plan: Vote, draft: &mut Draft, _: &Context<'_>) -> Result<Event, StorageError> {
        Ok(plan.cast(draft))
    }
}
