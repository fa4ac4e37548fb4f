//! EVIDENCE: a validator that signed two different things loses its power for good (docs/protocol.md
//! section 5.17). The set changes at the end of the block, in [`crate::validators`].
//!
//! Refused with EVIDENCE_INVALID, VALIDATOR_SET_LIMIT, in this order.

use types::tx::Evidence;
use types::{Code, Event, KeyStanding, PublicKey, Rejection, Transaction, ValidatorSets};

use super::{Inclusion, Kind};
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::rules::Rules;
use crate::tables::ConsensusKeys;
use crate::validators;
use crate::view::{self, Read};
use crate::work;

/// The key that loses its power.
pub(crate) struct Plan {
    key: PublicKey,
    standing: KeyStanding,
    /// The height that the evidence is about.
    height: u64,
}

/// What two signatures cost that are not checked in a batch, in units of [`work`].
const SIGNATURES_WORK: u64 = 100;
/// Rows that the check reads and that are written, and the votes that the end of the block deletes.
const EVIDENCE_ROWS: u64 = 45;

impl Kind for Evidence {
    type Plan = Plan;

    /// Whoever proves it pays nothing: each key can be punished once, so there is not much of it.
    const INCLUSION: Inclusion = Inclusion::Free;

    fn check(
        &self,
        tx: &Transaction,
        state: &dyn Read,
        ctx: &Context<'_>,
    ) -> Result<Plan, TxError> {
        const NO_SETS: StorageError =
            StorageError::Inconsistent { what: "a chain with v7 has no validators" };
        let key = self.validator_key;
        let sets = validators::sets(state)?.ok_or(NO_SETS)?;
        let standing = view::get::<ConsensusKeys>(state, &key)?.unwrap_or_default();
        if let Some(at) = standing.punished_at {
            let got = format_args!("{key}, punished in block {at}");
            return Err(invalid("validatorKey", got, "a key that has not been punished").into());
        }
        if !validators::keys(&sets).contains(&key) {
            let expected = "the key of a validator of one of the next two heights";
            return Err(invalid("validatorKey", key, expected).into());
        }
        self.check_age(ctx)?;
        self.check_messages(tx, ctx.rules)?;
        self.check_alone(&sets, &standing)?;
        check_others(state, &sets, key)?;
        Ok(Plan { key, standing, height: self.height })
    }

    fn work(_: &Plan) -> u64 {
        work::rows(EVIDENCE_ROWS).saturating_add(SIGNATURES_WORK)
    }

    fn apply(plan: Plan, draft: &mut Draft, ctx: &Context<'_>) -> Result<Event, StorageError> {
        let Plan { key, standing, height } = plan;
        let standing = KeyStanding { punished_at: Some(ctx.height), ..standing };
        draft.put::<ConsensusKeys>(&key, &standing);
        draft.note_punished(key);
        Ok(Event::EvidenceTaken { public_key: key, height })
    }
}

fn invalid(
    field: &'static str,
    got: impl std::fmt::Display,
    expected: impl std::fmt::Display,
) -> Rejection {
    Rejection::new(Code::EvidenceInvalid, field, got, expected)
}

/// Whether somebody decides beside this key, who is not punished in this block.
fn check_others(state: &dyn Read, sets: &ValidatorSets, key: PublicKey) -> Result<(), TxError> {
    for other in validators::latest(sets).iter().map(|member| member.public_key) {
        if other != key && !validators::is_punished(state, &other)? {
            return Ok(());
        }
    }
    let expected = "a validator beside which there are others";
    Err(Rejection::new(Code::ValidatorSetLimit, "validatorKey", key, expected).into())
}

trait Checks {
    fn check_alone(&self, sets: &ValidatorSets, standing: &KeyStanding) -> Result<(), Rejection>;
    fn check_age(&self, ctx: &Context<'_>) -> Result<(), Rejection>;
    fn check_messages(&self, tx: &Transaction, rules: &Rules) -> Result<(), Rejection>;
}

impl Checks for Evidence {
    /// A validator that decides alone may sign against itself without harm: votes for nil decide nothing
    /// then, and it does not record them (docs/consensus.md section 5).
    fn check_alone(&self, sets: &ValidatorSets, standing: &KeyStanding) -> Result<(), Rejection> {
        let was_alone = standing.alone_until.is_some_and(|last| self.height <= last);
        if sets.current.len() > 1 && !was_alone {
            return Ok(());
        }
        let expected = "a height that more than one validator decides";
        Err(Rejection::new(Code::ValidatorSetLimit, "height", self.height, expected))
    }

    fn check_age(&self, ctx: &Context<'_>) -> Result<(), Rejection> {
        let oldest = ctx.height.saturating_sub(ctx.rules.params.evidence_age_blocks);
        let first = ctx.rules.forks.v7_from().max(oldest);
        if self.height >= first {
            return Ok(());
        }
        Err(invalid("height", self.height, format_args!("at least {first}")))
    }

    /// Whether the key signed both, and they are for different things. A pair of proposals that differs
    /// in its valid rounds alone proves nothing: both are for the same block.
    fn check_messages(&self, tx: &Transaction, rules: &Rules) -> Result<(), Rejection> {
        let [first, second] = self.messages();
        if first.value == second.value {
            let expected = "another value than firstValue";
            return Err(invalid("secondValue", &self.second_value, expected));
        }
        let Some(forged) = tx.forged_message(&rules.domain) else { return Ok(()) };
        let expected = format_args!(
            "the signature of validatorKey over its {} of height {} and round {}",
            self.kind, self.height, self.round
        );
        Err(invalid(forged.member, forged.signature, expected))
    }
}
