//! What the tools of a stopped node have to be told of the chain: its rules, its beginning, and who
//! may sign certificates.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::available_parallelism;

use genesis::Genesis;
use state::Changes;
use store::tools::{Certificates, Replay, V7Height};
use types::sign_bytes::Domain;
use types::{Address, Hash, SetMember};

use crate::chain_spec::ChainSpec;
use crate::fault::OtherChain;
use crate::sync::{TrustCheck, TrustedBlock};
use crate::validator_sets::{missed, set_of};

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
        let (spec, first) = (ChainSpec::of(genesis)?, genesis.state());
        Ok(Self { spec, first, trust: TrustCheck::default() })
    }

    /// The same, but no certificate is good for another block at the height of this one.
    pub(crate) fn trusting(self, trusted: Option<TrustedBlock>) -> Self {
        Self { trust: TrustCheck::new(trusted), ..self }
    }

    /// The height of the block that is trusted, if one is.
    pub(crate) fn trusted_height(&self) -> Option<u64> {
        self.trust.height()
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

impl Certificates for ChainReplay {
    fn verify(
        &self,
        v7: V7Height,
        set: Option<&[SetMember]>,
        height: u64,
        hash: &Hash,
        certificate: &[u8],
    ) -> Result<Vec<Address>, String> {
        let stored = set.map(set_of).transpose().map_err(|fault| fault.to_string())?;
        let validators = stored.as_ref().unwrap_or(&self.spec.validators);
        let verify = |v7_from| {
            let domain = Domain { v7_from, ..self.spec.domain_now() };
            consensus::verify_certificate(&domain, validators, height, hash, certificate)
        };
        let certificate = match v7 {
            V7Height::Known(from) => verify(from),
            // What fails in both ways is told as what it most likely is.
            V7Height::Unknown => {
                verify(None).or_else(|error| verify(Some(height)).map_err(|_other| error))
            }
        };
        let certificate = certificate.map_err(|error| error.to_string())?;
        self.trust.check(height, hash).map_err(|other| other.to_string())?;
        Ok(missed(validators, &certificate))
    }
}

#[cfg(test)]
mod tests {
    //! Which version of a certificate is taken.

    use consensus::{Certificate, CommitSignature};
    use state::Forks;
    use types::Keypair;
    use types::sign_bytes::{VoteFields, VoteKind};

    use super::*;

    const HEIGHT: u64 = 9;
    const BLOCK: Hash = Hash::new([7; 32]);

    /// A chain of one validator, and its certificate of a block with v7 from a height on.
    fn certified(v7_from: Option<u64>) -> (ChainReplay, Vec<u8>) {
        let key = Keypair::from_seed(&[1; 32]);
        let genesis =
            Genesis::dev("replay-test", 1, key.public_key(), Vec::new(), &[], Forks::default());
        let replay = ChainReplay::new(&genesis.expect("a genesis")).expect("a chain");
        let domain = Domain { v7_from, ..replay.spec.domain_now() };
        let vote = VoteFields {
            kind: VoteKind::Precommit,
            height: HEIGHT,
            round: 0,
            value: Some(BLOCK),
            validator: key.address(),
        };
        let signature = key.sign(&domain.vote(&vote));
        let signatures = vec![CommitSignature { address: key.address(), signature }];
        let certificate = Certificate { height: HEIGHT, round: 0, block_hash: BLOCK, signatures };
        (replay, certificate.encode())
    }

    #[test]
    fn a_certificate_is_of_the_version_of_its_height_where_that_is_known() {
        let (first, second) = (certified(None), certified(Some(HEIGHT)));
        let passes = |(replay, certificate): &(ChainReplay, Vec<u8>), v7| {
            replay.verify(v7, None, HEIGHT, &BLOCK, certificate).is_ok()
        };
        for (v7, expected) in [
            (V7Height::Known(None), (true, false)),
            (V7Height::Known(Some(HEIGHT + 1)), (true, false)),
            (V7Height::Known(Some(HEIGHT)), (false, true)),
            (V7Height::Known(Some(0)), (false, true)),
            (V7Height::Unknown, (true, true)),
        ] {
            assert_eq!((passes(&first, v7), passes(&second, v7)), expected, "{v7:?}");
        }
        let (replay, mut forged) = second;
        if let Some(last) = forged.last_mut() {
            *last ^= 1;
        }
        assert!(!passes(&(replay, forged), V7Height::Unknown));
    }
}
