//! The randomness of a block (docs/protocol.md section 6.1).

use crate::vrf::{self, Proof};
use crate::{Hash, Keypair, PublicKey};

/// The randomness in a header, from fork v7 on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Randomness {
    /// The SHA-256 of the output for the proposer's key and the block's [`Input`].
    pub value: Hash,
    /// The proof that the output comes from the proposer's key.
    pub proof: Proof,
}

/// The input from which a proposer's key produces the randomness of a block. It contains neither
/// the round nor anything else that the proposer could choose.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The id of the chain.
    pub chain_id: &'a str,
    /// The randomness of the previous block; the genesis hash if the previous block has none.
    pub previous: Hash,
    /// The block's index.
    pub height: u64,
}

impl Input<'_> {
    /// The randomness that the proposer's key produces.
    #[must_use]
    pub fn prove(&self, key: &Keypair) -> Randomness {
        let (proof, output) = vrf::prove(key, self.message().as_bytes());
        Randomness { value: Hash::digest(&output), proof }
    }

    /// The randomness that a proof proves; `None` if the proof is not valid.
    #[must_use]
    pub fn verify(&self, key: &PublicKey, proof: &Proof) -> Option<Hash> {
        let output = vrf::verify(key, self.message().as_bytes(), proof)?;
        Some(Hash::digest(&output))
    }

    /// The text to prove.
    #[must_use]
    pub fn message(&self) -> String {
        let Self { chain_id, previous, height } = self;
        format!("ombra-randomness|{chain_id}|{previous}|{height}")
    }
}

#[cfg(test)]
mod tests {
    //! What is proved, and for what alone.

    use super::*;

    const PREVIOUS: Hash = Hash::new([7; 32]);

    fn input(chain_id: &str, previous: Hash, height: u64) -> Input<'_> {
        Input { chain_id, previous, height }
    }

    #[test]
    fn the_key_proves_this_text() {
        let text = format!("ombra-randomness|ombra-1|{}|258", "07".repeat(32));
        assert_eq!(input("ombra-1", PREVIOUS, 258).message(), text);
    }

    #[test]
    fn a_proof_is_good_for_one_chain_one_past_one_height_and_one_key() {
        let [key, other] = [1, 2].map(|seed| Keypair::from_seed(&[seed; 32]));
        let here = input("ombra-1", PREVIOUS, 5);
        let Randomness { value, proof } = here.prove(&key);
        assert_eq!(here.prove(&key), Randomness { value, proof }, "there is one");
        assert_eq!(here.verify(&key.public_key(), &proof), Some(value));
        assert_eq!(here.verify(&other.public_key(), &proof), None);
        let elsewhere = [
            input("ombra-2", PREVIOUS, 5),
            input("ombra-1", Hash::ZERO, 5),
            input("ombra-1", PREVIOUS, 6),
        ];
        for elsewhere in elsewhere {
            assert_eq!(elsewhere.verify(&key.public_key(), &proof), None, "{elsewhere:?}");
            assert_ne!(elsewhere.prove(&key).value, value, "{elsewhere:?}");
        }
    }
}
