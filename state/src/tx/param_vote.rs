//! PARAM_VOTE: a validator votes for another value of a parameter (docs/protocol.md section 5.13). The
//! votes are counted at the end of the block, in [`crate::rule_votes`].
//!
//! Refused with NOT_VALIDATOR, PARAM_BOUNDS, INVALID_FIELD, in this order.

use types::tx::ParamVote;
use types::{Code, Event, Rejection, Transaction};

use super::votes::{self, Vote};
use super::{Inclusion, Kind};
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::params::{CHANGEABLE, Changeable};
use crate::rule_votes::{self, Subject};
use crate::tables::RuleVote;
use crate::view::Read;

impl Kind for ParamVote {
    type Plan = Vote;

    const INCLUSION: Inclusion = Inclusion::FreeVote;

    fn check(
        &self,
        tx: &Transaction,
        state: &dyn Read,
        ctx: &Context<'_>,
    ) -> Result<Vote, TxError> {
        votes::require_validator(state, tx.from())?;
        let Self { name, value, height } = self;
        let is_votable = |param: &&Changeable| param.is_votable(&ctx.rules.forks, ctx.height);
        let Some(param) = Changeable::find(name).filter(is_votable) else {
            let names: Vec<_> = CHANGEABLE.iter().filter(is_votable).map(|p| p.name).collect();
            let names = names.join(", ");
            let expected = format_args!("one of {names}");
            return Err(Rejection::new(Code::ParamBounds, "name", name, expected).into());
        };
        let Changeable { min, max, .. } = param;
        if !(min..=max).contains(&value) {
            let expected = format_args!("{min} to {max} for {name}");
            return Err(Rejection::new(Code::ParamBounds, "value", value, expected).into());
        }
        let conflict = rule_votes::conflict_with(&ctx.rules.decided, param, *value);
        if let Some((field, expected)) = conflict {
            let got = format_args!("{value} for {name}");
            let expected = format_args!("a set of parameters in which {field} is {expected}");
            return Err(Rejection::new(Code::ParamBounds, "value", got, expected).into());
        }
        let subject = Subject::Param(name.clone());
        rule_votes::check_height(&subject, *height, ctx.height, &ctx.rules.params)?;
        let vote = RuleVote { value: *value, height: *height, at: ctx.height };
        Ok(Vote { voter: tx.from(), subject, vote })
    }

    fn work(_: &Vote) -> u64 {
        votes::WORK
    }

    fn apply(plan: Vote, draft: &mut Draft, _: &Context<'_>) -> Result<Event, StorageError> {
        Ok(plan.cast(draft))
    }
}
