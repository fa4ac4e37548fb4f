//! What the genesis file of a chain fixes.

use std::sync::Arc;

use genesis::Genesis;
use rpc::ports::ChainFacts;
use txpool::verifier;
use types::sign_bytes::{Domain, SharedDomain};
use types::{Hash, Params};

/// What genesis fixes.
#[derive(Clone, Debug)]
pub struct ChainSpec {
    pub(crate) rules: Arc<state::chain::ChainRules>,
    pub(crate) genesis_hash: Hash,
    pub(crate) genesis_time: u64,
    /// The first validators, and the only ones of a chain that cannot change them.
    pub(crate) validators: consensus::ValidatorSet,
    /// What separates the signatures of this chain's validators from those of others'. It learns the
    /// height of v7 when votes fix it.
    pub(crate) domain: SharedDomain,
}

impl ChainSpec {
    /// What a genesis file fixes.
    ///
    /// # Errors
    /// [`consensus::ValidatorSetError`] if its validators cannot decide anything.
    pub fn of(genesis: &Genesis) -> Result<Self, consensus::ValidatorSetError> {
        let validators =
            genesis.validators().iter().map(|validator| (validator.public_key, validator.power));
        let (rules, genesis_hash) = (Arc::new(genesis.chain()), genesis.hash());
        let chain_id = rules.chain_id.as_str().into();
        let domain = Domain { chain_id, genesis_hash, v7_from: rules.forks.v7 };
        Ok(Self {
            rules,
            genesis_hash,
            genesis_time: genesis.time(),
            validators: consensus::ValidatorSet::new(validators)?,
            domain: domain.into(),
        })
    }

    pub(crate) fn params(&self) -> &Params {
        &self.rules.params
    }

    /// What clients are told of it.
    pub(crate) fn facts(&self) -> ChainFacts {
        ChainFacts {
            chain_id: self.rules.chain_id.clone(),
            genesis_hash: self.genesis_hash,
            genesis_time_ms: self.genesis_time,
            forks: self.rules.forks,
            params: self.params().clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// [`ChainSpec::domain`] with what is known now.
    pub(crate) fn domain_now(&self) -> Domain {
        self.domain.now()
    }

    /// What the chain fixes about transactions at every height.
    pub(crate) fn static_rules(&self) -> verifier::Rules {
        verifier::Rules {
            chain_id: self.rules.chain_id.clone(),
            params: self.params().clone(),
            forks: self.rules.forks,
            genesis_hash: self.rules.genesis_hash,
        }
    }
}
