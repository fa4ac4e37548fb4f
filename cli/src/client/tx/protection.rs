//! How a request protects its run: from fork v7 on, unless it is told otherwise.

use clap::{Args, value_parser};
use types::params::INTEGER_MAX;
use types::tx::{Protection, REFUSE_MS_MAX};
use types::{Address, Amount};
use wallet::client::records::RunProtection;
use wallet::sign::{REFUSE_MS_DEFAULT, claim_bond_default};

use crate::client::{CliError, input};

/// What a submitter says about the protection of a run.
#[derive(Args, Clone, Debug, Default)]
pub struct ProtectionArgs {
    /// How much of the miner's bond a claim locks until the reward is paid, in micro-OMBRA or with
    /// unit, from fork v7 on [default: 0.01ombra more than the escrow, at least 0.1ombra]
    #[arg(long, value_name = "AMOUNT", value_parser = input::amount, conflicts_with = "unprotected")]
    claim_bond: Option<Amount>,
    /// How long the reward is held after the end, so that `ombra tx refuse` can burn it, in
    /// milliseconds, from fork v7 on [default: 600000]
    #[arg(long, value_name = "MS", conflicts_with = "unprotected",
        value_parser = value_parser!(u64).range(..=REFUSE_MS_MAX))]
    refuse_ms: Option<u64>,
    /// The only miners that may claim the run, separated by commas, from fork v7 on [default: everybody]
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',', value_parser = input::address)]
    miners: Vec<Address>,
    /// The most output tokens of one step, from fork v7 on [default: what the chain allows]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=INTEGER_MAX))]
    max_tokens_per_step: Option<u64>,
    /// Require no bond, and have the reward paid at once
    #[arg(long)]
    unprotected: bool,
}

impl ProtectionArgs {
    /// The members of a request with this escrow for a chain that has fork v7 or not.
    ///
    /// # Errors
    /// When an option asks for what the chain does not have yet.
    pub(super) fn on(&self, has_v7: bool, max_fee: Amount) -> Result<Protection, CliError> {
        if has_v7 { Ok(self.with_defaults(max_fee)) } else { self.nothing() }
    }

    /// The members as they are given, for a chain that cannot be asked.
    pub(super) fn as_given(&self) -> Protection {
        let Self { claim_bond, refuse_ms, miners, max_tokens_per_step, unprotected: _ } = self;
        let miners: Vec<_> = miners.iter().copied().map(Into::into).collect();
        Protection {
            miners: Some(miners).filter(|miners| !miners.is_empty()),
            claim_bond: claim_bond.filter(|bond| !bond.is_zero()),
            max_tokens_per_step: *max_tokens_per_step,
            refuse_ms: refuse_ms.filter(|ms| *ms > 0),
        }
    }

    /// The same for a run that continues an earlier one: `miners` and `maxTokensPerStep` of that run hold
    /// unless the command line names others.
    pub(in crate::client) fn after(mut self, before: Option<&RunProtection>) -> Self {
        if let Some(before) = before {
            if self.miners.is_empty() {
                self.miners.clone_from(&before.miners);
            }
            self.max_tokens_per_step = self.max_tokens_per_step.or(before.max_tokens_per_step);
        }
        self
    }

    fn with_defaults(&self, max_fee: Amount) -> Protection {
        if self.unprotected {
            return self.as_given();
        }
        let bond = self.claim_bond.unwrap_or_else(|| claim_bond_default(max_fee));
        let refuse_ms = self.refuse_ms.unwrap_or(REFUSE_MS_DEFAULT);
        Self { claim_bond: Some(bond), refuse_ms: Some(refuse_ms), ..self.clone() }.as_given()
    }

    /// The members for a chain before v7: none, so none may be asked for.
    fn nothing(&self) -> Result<Protection, CliError> {
        self.named().map_or_else(
            || Ok(Protection::default()),
            |option| {
                Err(CliError::Usage(format!(
                    "{option}: runs are protected from fork v7 on, which is not active"
                )))
            },
        )
    }

    /// An option that means something only from v7 on.
    const fn named(&self) -> Option<&'static str> {
        let Self { claim_bond, refuse_ms, miners, max_tokens_per_step, unprotected: _ } = self;
        if claim_bond.is_some() {
            Some("--claim-bond")
        } else if refuse_ms.is_some() {
            Some("--refuse-ms")
        } else if !miners.is_empty() {
            Some("--miners")
        } else if max_tokens_per_step.is_some() {
            Some("--max-tokens-per-step")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    //! What is written into requests.

    use types::Amount;
    use types::tx::Protection;
    use wallet::client::records::RunProtection;

    use super::ProtectionArgs;

    const ESCROW: Amount = Amount::new(1_000_000);
    const USUAL_BOND: Option<Amount> = Some(Amount::new(1_010_000));

    #[test]
    fn a_run_is_protected_unless_that_is_switched_off() {
        let usual = ProtectionArgs::default().with_defaults(ESCROW);
        assert_eq!(USUAL_BOND, usual.claim_bond);
        assert_eq!(Some(600_000), usual.refuse_ms);
        assert_eq!((None, None), (usual.miners, usual.max_tokens_per_step));
        let off = ProtectionArgs { unprotected: true, ..ProtectionArgs::default() };
        assert_eq!(Protection::default(), off.with_defaults(ESCROW));
    }

    #[test]
    fn what_is_given_takes_the_place_of_what_is_usual_and_zeros_are_not_written() {
        let zero = Some(Amount::ZERO);
        let given = ProtectionArgs { claim_bond: zero, refuse_ms: Some(0), ..Default::default() };
        assert_eq!(Protection::default(), given.with_defaults(ESCROW));
        let given = ProtectionArgs { refuse_ms: Some(5), ..Default::default() };
        let written = given.with_defaults(ESCROW);
        assert_eq!((USUAL_BOND, Some(5)), (written.claim_bond, written.refuse_ms));
        assert_eq!(Protection { claim_bond: None, ..written }, given.as_given());
    }

    #[test]
    fn before_v7_nothing_is_written_and_nothing_can_be_asked_for() {
        assert_eq!(Protection::default(), ProtectionArgs::default().nothing().unwrap());
        let given = ProtectionArgs { refuse_ms: Some(5), ..Default::default() };
        let said = given.nothing().unwrap_err().to_string();
        assert!(said.contains("--refuse-ms: runs are protected from fork v7 on"), "{said}");
    }

    #[test]
    fn a_run_that_goes_on_keeps_its_miners_and_the_bound_of_its_steps() {
        let before = RunProtection {
            miners: vec![types::Address::new([7; 20])],
            claim_bond: Amount::new(1),
            max_tokens_per_step: Some(50),
            refuse_ms: 1,
        };
        let after = ProtectionArgs::default().after(Some(&before)).with_defaults(ESCROW);
        assert_eq!(1, after.miners.unwrap().len());
        assert_eq!(Some(50), after.max_tokens_per_step);
        assert_eq!((USUAL_BOND, Some(600_000)), (after.claim_bond, after.refuse_ms));
        let said = ProtectionArgs { max_tokens_per_step: Some(9), ..Default::default() };
        assert_eq!(Some(9), said.after(Some(&before)).as_given().max_tokens_per_step);
    }
}
