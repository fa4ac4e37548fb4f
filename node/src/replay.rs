//! What the tools of a stopped node have to be told of the chain: its rules, its beginning, and who
//! may sign certificates.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::available_parallelism;

use genesis::Genesis;
use state::Changes;
use store::tools::{Certificates, Replay};
use types::{Address, Hash, SetMember};

use crate::chain::{ChainSpec, set_of};
use crate::fault::OtherChain;
use crate::sync::{TrustCheck, TrustedBlock};

/// One chain, for executing its blocks again.
#[derive(Debug)]
pub struct ChainReplay {
    spec: ChainSpec,
    first: Changes,
    trust: TrustCheck,
}

impl ChainReplay {
    /// The replay of the chain that begins with `genesis`.
    ///
    /// # Errors
    /// [`consensus::ValidatorSetError`] if its validators cannot decide anything.
    pub fn new(genesis: &Genesis) -> Result<Self, consensus::ValidatorSetError> {
        let (spec, first) = (crate::node::chain_spec(genesis)?, genesis.state());
        Ok(Self { spec, first, trust: TrustCheck::default() })
    }

    /// The same, but no certificate is good for another block at the height of this one.
    pub(crate) fn trusting(self, trusted: Option<TrustedBlock>) -> Self {
        Self { trust: TrustCheck::new(trusted), ..self }
    }

    /// The chain that was refused because it has another block there.
    pub(crate) fn other_chain(&self) -> Option<OtherChain> {
        self.trust.other_chain()
    }

    /// What the tools take.
    #[must_use]
    pub fn replay(&self) -> Replay<'_> {
        Replay {
            chain: Arc::clone(&self.spec.rules),
            genesis_hash: self.spec.genesis_hash,
            genesis_time: self.spec.genesis_time,
            genesis_changes: &self.first,
            certificates: self,
            threads: available_parallelism().unwrap_or(NonZeroUsize::MIN),
        }
    }
}

/// The proposers of the rounds before the one that decided: they missed their turn.
pub(crate) fn missed(
    validators: &consensus::ValidatorSet,
    certificate: &consensus::Certificate,
) -> Vec<Address> {
    let rounds = 0..certificate.round;
    rounds.map(|round| validators.proposer(certificate.height, round).address).collect()
}

impl Certificates for ChainReplay {
    fn verify(
        &self,
        set: Option<&[SetMember]>,
        height: u64,
        hash: &Hash,
        certificate: &[u8],
    ) -> Result<Vec<Address>, String> {
        let stored = set.map(set_of).transpose().map_err(|fault| fault.to_string())?;
        let validators = stored.as_ref().unwrap_or(&self.spec.validators);
        let certificate = consensus::verify_certificate(
            &self.spec.domain(),
            validators,
            height,
            hash,
            certificate,
        )
        .map_err(|error| error.to_string())?;
        self.trust.check(height, hash).map_err(|other| other.to_string())?;
        Ok(missed(validators, &certificate))
    }
}
