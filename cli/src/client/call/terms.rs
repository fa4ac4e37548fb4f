//! What is held for a call, and how much of it unasked.

use types::Amount;
use wallet::calls::TermsError;

use crate::client::CliError;
use crate::client::output::ombra;

/// Without `--max-fee` no more is held than this, conditional payments not counted, whatever the node says:
/// 10 OMBRA.
const HELD_MAX: Amount = Amount::new(10_000_000);

impl From<TermsError> for CliError {
    fn from(error: TermsError) -> Self {
        match error {
            TermsError::Missing(_) => Self::Failed(error.to_string()),
            TermsError::Budget => Self::Usage(error.to_string()),
        }
    }
}

/// What is held for a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holding {
    /// What the user named.
    pub(super) wanted: Option<Amount>,
    /// The least that the chain takes, as the node says, conditional payments not counted.
    pub(super) floor: Amount,
    /// What the node suggests, conditional payments not counted.
    pub(super) suggested: Amount,
    /// The conditional payments.
    pub(super) conditional: Amount,
}

impl Holding {
    /// What to hold.
    ///
    /// # Errors
    /// When the user named too little, or the node suggests more than is held unasked.
    pub(super) fn max_fee(&self) -> Result<Amount, CliError> {
        let Self { wanted, floor, suggested, conditional } = *self;
        let with_conditional = |amount: Amount| {
            amount.checked_add(conditional).ok_or_else(|| {
                CliError::Usage(
                    "the call would cost more than the largest amount that exists".to_owned(),
                )
            })
        };
        let least = with_conditional(floor)?;
        match wanted {
            Some(wanted) if wanted < least => {
                let (wanted, least) = (ombra(wanted), ombra(least));
                Err(CliError::Usage(format!("--max-fee {wanted}, expected at least {least}")))
            }
            Some(wanted) => Ok(wanted),
            None if suggested > HELD_MAX => {
                let (fee, most) = (ombra(with_conditional(suggested)?), ombra(HELD_MAX));
                Err(CliError::Usage(format!(
                    "the node estimates that the call holds {fee}; without --max-fee the command \
                     holds at most {most} besides conditional payments: give --max-fee"
                )))
            }
            None => with_conditional(suggested),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Whatever a node suggests, a lot is held only for whoever asks.

    use super::*;

    fn holding(wanted: Option<u64>, suggested: u64) -> Holding {
        Holding {
            wanted: wanted.map(Amount::new),
            floor: Amount::new(100),
            suggested: Amount::new(suggested),
            conditional: Amount::new(50_000_000),
        }
    }

    #[test]
    fn a_node_cannot_have_much_held_unasked() {
        assert_eq!(holding(None, 10_000_000).max_fee().unwrap(), Amount::new(60_000_000));
        let error = holding(None, 10_000_001).max_fee().unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("give --max-fee"), "{error}");
        let wanted = holding(Some(90_000_000), 10_000_001).max_fee().unwrap();
        assert_eq!(wanted, Amount::new(90_000_000));
        assert!(holding(Some(50_000_099), 200).max_fee().is_err(), "below the floor");
        assert!(holding(None, u64::MAX).max_fee().is_err());
    }
}
