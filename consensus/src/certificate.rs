//! The proof that a block is final: precommits of more than two thirds of the voting power.
//!
//! ```text
//! certificate bytes (borsh: integers little-endian)
//!   height      8 bytes
//!   round       4 bytes
//!   block hash  32 bytes
//!   count       4 bytes
//!   count times, addresses strictly ascending
//!     address   20 bytes
//!     signature 64 bytes
//! ```
//!
//! To check one without this program: for each entry build the precommit bytes described in
//! [`sign_bytes`](types::sign_bytes), verify the signature with the validator's public key, add
//! up the powers, and ask for more than two thirds of the set's total.

use borsh::{BorshDeserialize, BorshSerialize};
use serde::{Deserialize, Serialize};
use types::sign_bytes::{Domain, VoteFields, VoteKind};
use types::{Address, Hash, Signature};

use crate::ValidatorSet;
use crate::validators::VALIDATORS_MAX;

/// The precommits that made a block final. In JSON: `{"height", "round", "blockHash",
/// "signatures": [{"address", "signature"}]}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Certificate {
    /// The decided height.
    pub height: u64,
    /// The round it was decided in.
    pub round: u32,
    /// The decided block.
    pub block_hash: Hash,
    /// One precommit of each validator that is counted, sorted by address.
    pub signatures: Vec<CommitSignature>,
}

/// One validator's precommit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitSignature {
    /// Who signed.
    pub address: Address,
    /// The signature over the precommit.
    pub signature: Signature,
}

/// Why bytes do not prove that a block is final.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// Not the canonical encoding of a certificate.
    #[error("the certificate bytes are not canonical")]
    Encoding,
    /// The certificate is for another height or block.
    #[error("the certificate is for block {block_hash} at height {height}")]
    OtherBlock {
        /// The height it is for.
        height: u64,
        /// The block it is for.
        block_hash: Hash,
    },
    /// A signer is not in the set.
    #[error("{address} is not a validator of this height")]
    Stranger {
        /// The signer.
        address: Address,
    },
    /// A signature does not verify.
    #[error("the signature of validator {address} is wrong")]
    Signature {
        /// The signer.
        address: Address,
    },
    /// Two thirds or less signed.
    #[error("validators with power {signed} of {total} signed, but more than two thirds must sign")]
    Quorum {
        /// Power of the signers.
        signed: u64,
        /// Power of all.
        total: u64,
    },
}

#[derive(BorshSerialize, BorshDeserialize)]
struct Wire {
    height: u64,
    round: u32,
    block_hash: [u8; 32],
    signatures: Vec<([u8; 20], [u8; 64])>,
}

impl Certificate {
    /// The canonical bytes, as kept with the block.
    ///
    /// # Panics
    /// Never: writing to memory does not fail.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Self { height, round, block_hash, signatures } = self;
        let mut entries: Vec<_> = signatures
            .iter()
            .map(|entry| (*entry.address.as_bytes(), *entry.signature.as_bytes()))
            .collect();
        entries.sort_unstable();
        let wire = Wire {
            height: *height,
            round: *round,
            block_hash: *block_hash.as_bytes(),
            signatures: entries,
        };
        borsh::to_vec(&wire).expect("writing to a vector cannot fail")
    }

    /// Reads canonical bytes; nothing is verified.
    ///
    /// # Errors
    /// [`CertificateError::Encoding`] for short, long, unsorted or oversized input.
    pub fn decode(bytes: &[u8]) -> Result<Self, CertificateError> {
        let wire: Wire =
            borsh::from_slice(bytes).map_err(|_unreadable| CertificateError::Encoding)?;
        let ascending = wire.signatures.windows(2).all(|pair| match pair {
            [(first, _), (second, _)] => first < second,
            _ => true,
        });
        if !ascending || wire.signatures.len() > VALIDATORS_MAX {
            return Err(CertificateError::Encoding);
        }
        let signatures = wire
            .signatures
            .into_iter()
            .map(|(address, signature)| CommitSignature {
                address: Address::new(address),
                signature: Signature::new(signature),
            })
            .collect();
        let block_hash = Hash::new(wire.block_hash);
        Ok(Self { height: wire.height, round: wire.round, block_hash, signatures })
    }

    /// Checks every signature and the quorum. A certificate with a wrong or a stranger's
    /// signature is refused as a whole, even if the others would do.
    ///
    /// # Errors
    /// [`CertificateError`], first failing check.
    pub fn verify(&self, domain: &Domain, set: &ValidatorSet) -> Result<(), CertificateError> {
        let mut signed = 0_u64;
        let mut previous: Option<Address> = None;
        for CommitSignature { address, signature } in &self.signatures {
            if previous.is_some_and(|before| before >= *address) {
                return Err(CertificateError::Encoding);
            }
            previous = Some(*address);
            let Some(validator) = set.by_address(address) else {
                return Err(CertificateError::Stranger { address: *address });
            };
            let vote = VoteFields {
                kind: VoteKind::Precommit,
                height: self.height,
                round: i64::from(self.round),
                value: Some(self.block_hash),
                validator: *address,
            };
            let message = domain.vote(&vote);
            if !validator.public_key.verify(&message, signature) {
                return Err(CertificateError::Signature { address: *address });
            }
            signed += validator.power;
        }
        if !set.is_quorum(signed) {
            return Err(CertificateError::Quorum { signed, total: set.total_power() });
        }
        Ok(())
    }
}

/// Checks that `bytes` prove block `block_hash` final at `height` on the chain of `domain`, `set`
/// being the validators of that height.
///
/// # Errors
/// [`CertificateError`], first failing check.
pub fn verify_certificate(
    domain: &Domain,
    set: &ValidatorSet,
    height: u64,
    block_hash: &Hash,
    bytes: &[u8],
) -> Result<Certificate, CertificateError> {
    let certificate = Certificate::decode(bytes)?;
    if certificate.height != height || certificate.block_hash != *block_hash {
        return Err(CertificateError::OtherBlock {
            height: certificate.height,
            block_hash: certificate.block_hash,
        });
    }
    certificate.verify(domain, set)?;
    Ok(certificate)
}

#[cfg(test)]
mod tests {
    use types::Keypair;

    use super::*;
    use crate::testing::{CHAIN, domain, key, keys, set};

    const BLOCK: Hash = Hash::new([7; 32]);

    fn signed_by(keys: &[Keypair]) -> Certificate {
        signed_for(&domain(CHAIN), keys)
    }

    /// What comes of checking these bytes.
    fn checked(
        chain_id: &str,
        height: u64,
        block: &Hash,
        bytes: &[u8],
    ) -> Result<Certificate, CertificateError> {
        verify_certificate(&domain(chain_id), &set(), height, block, bytes)
    }

    fn signed_for(domain: &Domain, keys: &[Keypair]) -> Certificate {
        let mut signatures: Vec<CommitSignature> = keys
            .iter()
            .map(|key| {
                let vote = VoteFields {
                    kind: VoteKind::Precommit,
                    height: 5,
                    round: 2,
                    value: Some(BLOCK),
                    validator: key.address(),
                };
                let signature = key.sign(&domain.vote(&vote));
                CommitSignature { address: key.address(), signature }
            })
            .collect();
        signatures.sort_by_key(|entry| entry.address);
        Certificate { height: 5, round: 2, block_hash: BLOCK, signatures }
    }

    #[test]
    fn three_of_four_prove_a_block_and_two_do_not() {
        let three = signed_by(&keys()[..3]);
        assert_eq!(checked(CHAIN, 5, &BLOCK, &three.encode()), Ok(three));
        let two = signed_by(&keys()[..2]).encode();
        let too_few = CertificateError::Quorum { signed: 2, total: 4 };
        assert_eq!(checked(CHAIN, 5, &BLOCK, &two), Err(too_few));
        // Powers are added up, not heads.
        let tens = ValidatorSet::new(keys().map(|key| (key.public_key(), 10))).expect("a set");
        let by = |count: usize| signed_by(&keys()[..count]).verify(&domain(CHAIN), &tens);
        assert_eq!(by(3), Ok(()));
        assert_eq!(by(2), Err(CertificateError::Quorum { signed: 20, total: 40 }));
    }

    #[test]
    fn another_block_chain_or_signer_is_refused() {
        let certificate = signed_by(&keys());
        let bytes = certificate.encode();
        let other = CertificateError::OtherBlock { height: 5, block_hash: BLOCK };
        assert_eq!(checked(CHAIN, 6, &BLOCK, &bytes), Err(other.clone()));
        assert_eq!(checked(CHAIN, 5, &Hash::ZERO, &bytes), Err(other));
        let first = CertificateError::Signature { address: certificate.signatures[0].address };
        assert_eq!(checked("another", 5, &BLOCK, &bytes), Err(first));
        let stranger = CertificateError::Stranger { address: key(9).address() };
        assert_eq!(signed_by(&[key(9)]).verify(&domain(CHAIN), &set()), Err(stranger));
    }

    #[test]
    fn from_v7_on_a_certificate_of_another_genesis_proves_nothing() {
        let of_v7 = |genesis: u8| Domain {
            genesis_hash: Hash::new([genesis; 32]),
            v7_from: Some(5),
            ..domain(CHAIN)
        };
        let certificate = signed_for(&of_v7(1), &keys());
        assert_eq!(certificate.verify(&of_v7(1), &set()), Ok(()));
        let first = certificate.signatures[0].address;
        for other in [of_v7(2), domain(CHAIN)] {
            let refused = certificate.verify(&other, &set());
            assert_eq!(refused, Err(CertificateError::Signature { address: first }));
        }
        assert!(signed_by(&keys()).verify(&of_v7(1), &set()).is_err(), "the first version");
    }

    #[test]
    fn one_signer_is_not_counted_twice() {
        let mut certificate = signed_by(&keys()[..1]);
        let only = certificate.signatures[0].clone();
        certificate.signatures = vec![only.clone(), only.clone(), only];
        assert_eq!(certificate.verify(&domain(CHAIN), &set()), Err(CertificateError::Encoding));
        let bytes = certificate.encode();
        assert_eq!(Certificate::decode(&bytes), Err(CertificateError::Encoding));
    }

    #[test]
    fn bytes_are_canonical() {
        let certificate = signed_by(&keys());
        let bytes = certificate.encode();
        assert_eq!(bytes.len(), 8 + 4 + 32 + 4 + 4 * 84);
        assert_eq!(Certificate::decode(&bytes), Ok(certificate));
        let mut long = bytes.clone();
        long.push(0);
        assert_eq!(Certificate::decode(&long), Err(CertificateError::Encoding));
        for length in 0..bytes.len() {
            assert_eq!(Certificate::decode(&bytes[..length]), Err(CertificateError::Encoding));
        }
    }
}
