//! The record of what a validator signed last, where the chain is to be made shorter than that.
//!
//! A validator among others may lose blocks: it gets them from the others again, and signs nothing
//! before it is further than its record. That works only while the others decide without it. Where they
//! cannot, the chain may stand for ever, so the commands refuse unless they are told that it may.
//!
//! A validator that decides alone has nobody to wait for, and the record forbids it to sign those
//! heights anew. Without the record it makes another chain, which whoever has seen the first one must
//! be told. The same holds for validators that have all forgotten what they signed: no node can know
//! that, so their operators have to agree and say so.

use std::path::PathBuf;

use ::genesis::Genesis;
use clap::Args;
use consensus::{LastSigned, ValidatorSet};
use node::chain_spec::ChainSpec;
use node::config::Home;
use node::keyfile;
use node::validator_sets::next_validators;
use store::Store;
use types::{Address, Keypair};

use super::client::CliError;

#[derive(Debug, Args)]
pub(super) struct ForgetArgs {
    /// Let the only validator sign heights again that it has already signed; tell everyone who has
    /// seen the old blocks. Its old record is kept beside the new one
    #[arg(long)]
    forget_signed: bool,
    /// Proceed even if the others are no quorum without this validator. The chain stops unless they
    /// already have the block that it signed
    #[arg(long)]
    may_stop_chain: bool,
}

#[derive(Debug, Args)]
pub(super) struct AgreedArgs {
    /// Say that the operators of all validators have agreed on this last block, and that no node
    /// has a later one. Only for a chain that has stopped because its validators have forgotten
    /// what they signed
    #[arg(long)]
    all_validators_agreed: bool,
}

/// What is to be done beside the database when that is in its place.
#[must_use]
pub(super) struct Signed {
    /// The folder of the engine's log and the record.
    directory: PathBuf,
    forgets_record: bool,
    follows_until: Option<u64>,
}

/// A validator of some home.
struct Owner {
    directory: PathBuf,
    last: LastSigned,
    address: Address,
    /// Who decides the next block.
    set: ValidatorSet,
}

impl Owner {
    /// The validator of `home`; none if it has no key or has signed nothing.
    fn read(home: &Home, genesis: &Genesis, store: &Store) -> Result<Option<Self>, CliError> {
        let failed = |error: &dyn std::fmt::Display| CliError::Failed(error.to_string());
        let directory = home.consensus();
        if !home.validator_key().exists() {
            return Ok(None);
        }
        let last = consensus::last_signed(&directory).map_err(|error| failed(&error))?;
        let Some(last) = last else { return Ok(None) };
        let seed = keyfile::read(&home.validator_key()).map_err(|error| failed(&error))?;
        let spec = ChainSpec::of(genesis).map_err(|error| failed(&error))?;
        let set = next_validators(store, &spec).map_err(|error| failed(&error))?.next;
        let address = Keypair::from_seed(&seed).address();
        Ok(Some(Self { directory, last, address, set }))
    }

    fn is_only(&self) -> bool {
        self.set.is_only(&self.address)
    }
}

/// Looks whether the node of `home` could go on at `height`.
///
/// # Errors
/// [`CliError::Usage`] if it has signed later heights, nobody could decide them without it, and the
/// flag for that is missing; or if `--forget-signed` is given to one that does not decide alone.
/// [`CliError::Failed`] if files cannot be read.
pub(super) fn look(
    home: &Home,
    genesis: &Genesis,
    store: &Store,
    height: u64,
    args: &ForgetArgs,
) -> Result<Signed, CliError> {
    let ForgetArgs { forget_signed, may_stop_chain } = *args;
    let directory = home.consensus();
    let kept = Signed { directory, forgets_record: false, follows_until: None };
    let Some(owner) = Owner::read(home, genesis, store)? else { return Ok(kept) };
    let LastSigned { height: signed, round } = owner.last;
    if forget_signed && !owner.is_only() {
        return Err(CliError::Usage(
            "--forget-signed is only for a validator that decides alone: this one could contradict \
             itself to the others. If the chain has stopped, see docs/operations.md section 8.6"
                .to_owned(),
        ));
    }
    if signed <= height {
        return Ok(kept);
    }
    if owner.is_only() && !forget_signed {
        return Err(CliError::Usage(format!(
            "this validator decides alone and has signed height {signed} round {round}. At height \
             {height} it could never sign again and the chain would stop. To start a different \
             chain from there, add --forget-signed (docs/operations.md section 10)"
        )));
    }
    if owner.is_only() {
        return Ok(Signed { forgets_record: true, ..kept });
    }
    if !may_stop_chain && !owner.set.is_quorum_without(&owner.address) {
        return Err(CliError::Usage(format!(
            "this validator has signed height {signed} round {round}. At height {height} it signs \
             nothing until the others have decided height {signed}, and they are not a quorum \
             without it: unless they have that block already, the chain stops. Add \
             --may-stop-chain to do it anyway (docs/operations.md section 8.6)"
        )));
    }
    Ok(Signed { follows_until: Some(signed), ..kept })
}

/// Has the node of `home` forget what it has signed beyond `height`, the end of its chain.
///
/// # Errors
/// [`CliError::Usage`] if it has signed nothing beyond, or remembers what it signed, or if others
/// decide with it and `args` does not say that they agreed; [`CliError::Failed`] if files cannot be read.
pub(super) fn forget(
    home: &Home,
    genesis: &Genesis,
    store: &Store,
    height: u64,
    args: &AgreedArgs,
) -> Result<Signed, CliError> {
    let owner = Owner::read(home, genesis, store)?.filter(|owner| owner.last.height > height);
    let Some(owner) = owner else {
        return Err(CliError::Usage(format!(
            "the validator of this home has signed nothing beyond block {height}: there is nothing to \
             forget"
        )));
    };
    let signed = owner.last.height;
    if !owner.is_only() && !args.all_validators_agreed {
        return Err(CliError::Usage(format!(
            "this validator does not decide alone, and has signed height {signed}. If any node has \
             block {signed}, start that node: this one gets the block and signs again on its own. \
             If it signs height {signed} again although the block exists, there are two blocks of \
             one height: confirmed payments can vanish, and the two signatures prove the key's \
             fault. --all-validators-agreed is only for a chain that has stopped; first follow \
             docs/operations.md section 8.6"
        )));
    }
    if !owner.is_only() && consensus::remembers(&owner.directory, owner.last, height) {
        return Err(CliError::Usage(format!(
            "this validator remembers what it signed at height {signed}: start it, and it signs on \
             its own. What it remembers protects a block that may exist"
        )));
    }
    Ok(Signed { directory: owner.directory, forgets_record: true, follows_until: None })
}

impl Signed {
    /// The height that the validator follows to without signing; none if it signs at once.
    pub(super) const fn follows_until(&self) -> Option<u64> {
        self.follows_until
    }

    /// Sets the engine's log aside, which is of heights that are no longer there, and the record if
    /// that was asked for.
    ///
    /// # Errors
    /// [`CliError::File`] if they cannot be moved.
    pub(super) fn settle(self) -> Result<(), CliError> {
        let Self { directory, forgets_record, follows_until: _ } = self;
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
