//! The beginning of a chain for one person: one validator, funded accounts, short block intervals.

use state::Forks;
use types::params::Models;
use types::{Address, Amount, Params, PublicKey};

use crate::fault::Faults;
use crate::genesis::Genesis;
use crate::params::{ParamError, set_param};
use crate::spec::{Spec, Validator};

/// The shortest time between blocks of a development chain (docs/protocol.md section 6).
const MIN_BLOCK_INTERVAL_MS: u64 = 50;

/// Why a development genesis cannot be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DevError {
    /// A parameter was given wrongly.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// The parts do not fit together.
    #[error(transparent)]
    Faults(#[from] Faults),
}

impl Genesis {
    /// A genesis with one validator, everything at its default but the block interval, and then
    /// `params` set in order, each `name=value`. The rules of `forks` hold from their heights on.
    ///
    /// # Errors
    /// [`DevError`] for a parameter that does not exist or cannot have its value, an account
    /// twice, or balances that overflow.
    pub fn dev(
        chain_id: &str,
        genesis_time: u64,
        validator: PublicKey,
        accounts: Vec<(Address, Amount)>,
        params: &[String],
        forks: Forks,
    ) -> Result<Self, DevError> {
        let mut values =
            Params { min_block_interval_ms: MIN_BLOCK_INTERVAL_MS, ..Params::default() };
        if forks.v8.is_some() {
            // One machine makes every answer of the chain.
            values.slashable_models = Models::All;
        }
        for text in params {
            set_param(&mut values, text)?;
        }
        let name = Some("dev".to_owned());
        let spec = Spec {
            chain_id: chain_id.to_owned(),
            genesis_time,
            validators: vec![Validator { public_key: validator, power: 1, name }],
            accounts,
            agents: Vec::new(),
            forks,
            params: values,
        };
        Ok(Self::new(spec)?)
    }
}
