//! Who decides the next blocks, by the committed state, and who missed the turn to propose one.

use consensus::Validator;
use state::{StorageError, validators};
use store::Store;
use types::{Address, Keypair, SetMember, ValidatorSets};

use crate::chain_spec::ChainSpec;

/// Who decides the blocks that come next.
#[derive(Clone, Debug)]
pub struct NextValidators {
    /// The set of the next height.
    pub next: consensus::ValidatorSet,
    /// The set of the height after that.
    pub after: consensus::ValidatorSet,
}

/// The sets that the committed state has, or those of genesis.
///
/// # Errors
/// [`StorageError`] if they cannot be read, or are no set.
pub fn next_validators(store: &Store, spec: &ChainSpec) -> Result<NextValidators, StorageError> {
    let Some(ValidatorSets { current, next, .. }) = validators::sets(&*store.latest())? else {
        let set = &spec.validators;
        return Ok(NextValidators { next: set.clone(), after: set.clone() });
    };
    let first = set_of(&current)?;
    let after = next.as_deref().map(set_of).transpose()?;
    Ok(NextValidators { after: after.unwrap_or_else(|| first.clone()), next: first })
}

impl NextValidators {
    /// Logs whether a node with this key is among those that decide the blocks after `height`.
    pub(crate) fn tell_role(&self, key: &Keypair, height: u64) {
        let Self { next, after } = self;
        let (address, public_key) = (key.address(), key.public_key());
        match next.by_address(&address).or_else(|| after.by_address(&address)) {
            Some(Validator { power, .. }) => {
                tracing::info!(%public_key, power, height, "this node is a validator");
            }
            None => tracing::warn!(
                %public_key,
                height,
                "this node's key is not among the validators: the node does not vote until the \
                 validators vote it in"
            ),
        }
    }
}

/// A stored set, as consensus knows it.
pub(crate) fn set_of(members: &[SetMember]) -> Result<consensus::ValidatorSet, StorageError> {
    const NO_SET: StorageError =
        StorageError::Inconsistent { what: "the stored validators are not a valid set" };
    let members = members.iter().map(|member| (member.public_key, member.power));
    consensus::ValidatorSet::new(members).map_err(|_no_set| NO_SET)
}

/// The proposers of the rounds before the one that decided: they missed their turn.
pub(crate) fn missed(
    validators: &consensus::ValidatorSet,
    certificate: &consensus::Certificate,
) -> Vec<Address> {
    let rounds = 0..certificate.round;
    rounds.map(|round| validators.proposer(certificate.height, round).address).collect()
}
