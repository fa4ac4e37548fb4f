//! The record of what a validator signed last, where the chain is to be made shorter than that.
//!
//! A validator among others may lose blocks: it gets them from the others again, and signs nothing
//! before it is further than its record. One that decides alone cannot: nobody has the blocks, and
//! the record forbids it to sign those heights anew. Without the record it would make another
//! chain, which whoever has seen the first one must be told.

use std::path::PathBuf;

use ::genesis::Genesis;
use clap::Args;
use consensus::LastSigned;
use state::store::Store;
use types::Keypair;

use super::client::CliError;
use crate::chain::next_validators;
use crate::config::Home;
use crate::{keyfile, node};

#[derive(Debug, Args)]
pub(super) struct ForgetArgs {
    /// Let the only validator sign heights again that it has signed: whoever has seen the old
    /// blocks must be told. Its record is kept beside the new one
    #[arg(long)]
    forget_signed: bool,
}

/// What is to be done beside the database when that is in its place.
#[must_use]
pub(super) struct Signed {
    /// The folder of the engine's log and the record.
    directory: PathBuf,
    forgets_record: bool,
}

/// Looks whether the node of `home` could go on at `height`.
///
/// # Errors
/// [`CliError::Usage`] if it decides alone, has signed later heights, and the flag is missing, or
/// if the flag is given to one that does not decide alone; [`CliError::Failed`] if files cannot be
/// read.
pub(super) fn look(
    home: &Home,
    genesis: &Genesis,
    store: &Store,
    height: u64,
    args: &ForgetArgs,
) -> Result<Signed, CliError> {
    let failed = |error: &dyn std::fmt::Display| CliError::Failed(error.to_string());
    let directory = home.consensus();
    let kept = Signed { directory: directory.clone(), forgets_record: false };
    if !home.validator_key().exists() {
        return Ok(kept);
    }
    let Some(LastSigned { height: signed, round }) =
        consensus::last_signed(&directory).map_err(|error| failed(&error))?
    else {
        return Ok(kept);
    };
    let seed = keyfile::read(&home.validator_key()).map_err(|error| failed(&error))?;
    let spec = node::chain_spec(genesis).map_err(|error| failed(&error))?;
    let set = next_validators(store, &spec).map_err(|error| failed(&error))?.next;
    let is_only = set.is_only(&Keypair::from_seed(&seed).address());
    match (is_only, args.forget_signed) {
        (false, true) => Err(CliError::Usage(
            "--forget-signed is for a validator that decides alone: this one could contradict \
             itself before the others"
                .to_owned(),
        )),
        (true, false) if signed > height => Err(CliError::Usage(format!(
            "this validator decides alone and has signed height {signed} round {round}; at height \
             {height} it could never sign again, and the node would not go on. With \
             --forget-signed it makes another chain from there (docs/operating.md section 4)"
        ))),
        (true, true) if signed > height => Ok(Signed { directory, forgets_record: true }),
        _ => Ok(kept),
    }
}

/// Has the node of `home` forget what it has signed beyond `height`, the end of its chain.
///
/// # Errors
/// [`CliError::Usage`] if it does not decide alone, or has signed nothing beyond; else as [`look`].
pub(super) fn forget(
    home: &Home,
    genesis: &Genesis,
    store: &Store,
    height: u64,
) -> Result<Signed, CliError> {
    let signed = look(home, genesis, store, height, &ForgetArgs { forget_signed: true })?;
    if signed.forgets_record {
        return Ok(signed);
    }
    let message = format!(
        "the validator of this home has signed nothing beyond block {height}: there is nothing to forget"
    );
    Err(CliError::Usage(message))
}

impl Signed {
    /// Sets the engine's log aside, which is of heights that are no longer there, and the record if
    /// that was asked for.
    ///
    /// # Errors
    /// [`CliError::File`] if they cannot be moved.
    pub(super) fn settle(self) -> Result<(), CliError> {
        let Self { directory, forgets_record } = self;
        let moved = || {
            consensus::archive_log(&directory)?;
            if forgets_record {
                consensus::archive_last_signed(&directory)?;
            }
            Ok(())
        };
        moved().map_err(|source| CliError::File { what: directory.display().to_string(), source })
    }
}
