//! The signature scheme: this project's keys and signatures as the engine keeps them.

use borsh::{BorshDeserialize, BorshSerialize};
use malachitebft_core_types::SigningScheme;

/// Ed25519 with the rule of docs/protocol.md section 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scheme;

/// A public key as the engine keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PublicKey(pub(super) types::PublicKey);

/// A signature as the engine keeps and sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Signature(pub(super) types::Signature);

/// Bytes of the wrong length.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{got} bytes instead of {expected}")]
pub(crate) struct LengthError {
    expected: usize,
    got: usize,
}

/// What the engine would use to sign by itself; it never does, since signing is behind
/// [`Signer`](super::signing::Signer).
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoPrivateKey;

impl SigningScheme for Scheme {
    type DecodingError = LengthError;
    type Signature = Signature;
    type PublicKey = PublicKey;
    type PrivateKey = NoPrivateKey;

    fn decode_signature(bytes: &[u8]) -> Result<Signature, LengthError> {
        let bytes = exact::<64>(bytes)?;
        Ok(Signature(types::Signature::new(bytes)))
    }

    fn encode_signature(signature: &Signature) -> Vec<u8> {
        signature.0.as_bytes().to_vec()
    }

    fn decode_public_key(bytes: &[u8]) -> Result<PublicKey, LengthError> {
        let bytes = exact::<32>(bytes)?;
        Ok(PublicKey(types::PublicKey::new(bytes)))
    }

    fn encode_public_key(public_key: &PublicKey) -> Vec<u8> {
        public_key.0.as_bytes().to_vec()
    }
}

fn exact<const N: usize>(bytes: &[u8]) -> Result<[u8; N], LengthError> {
    bytes.try_into().map_err(|_unreadable| LengthError { expected: N, got: bytes.len() })
}

impl From<types::PublicKey> for PublicKey {
    fn from(key: types::PublicKey) -> Self {
        Self(key)
    }
}

impl From<types::Signature> for Signature {
    fn from(signature: types::Signature) -> Self {
        Self(signature)
    }
}

impl Signature {
    pub(crate) const fn get(self) -> types::Signature {
        self.0
    }
}

impl BorshSerialize for Signature {
    fn serialize<W: borsh::io::Write>(&self, writer: &mut W) -> borsh::io::Result<()> {
        self.0.as_bytes().serialize(writer)
    }
}

impl BorshDeserialize for Signature {
    fn deserialize_reader<R: borsh::io::Read>(reader: &mut R) -> borsh::io::Result<Self> {
        <[u8; 64]>::deserialize_reader(reader).map(|bytes| Self(types::Signature::new(bytes)))
    }
}
