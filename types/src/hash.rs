//! 32-byte values with a text form: hashes, run ids, conversation ids, roots.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::text::{FixedText, ParseTextError, decode_lower_hex};

/// A 32-byte value, written as 64 lowercase hex characters.
///
/// One type serves all such values of the protocol (hashes of transactions and blocks, ids of runs
/// and conversations, hashes of contents, roots), because all of them are SHA-256 outputs or opaque
/// ids.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Hash([u8; 32]);

impl Hash {
    /// 32 zero bytes.
    pub const ZERO: Self = Self([0; 32]);

    /// Wraps bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The SHA-256 of `bytes`.
    #[must_use]
    pub fn digest(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The SHA-256 of the concatenation of `parts`.
    #[must_use]
    pub fn digest_parts(parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    /// Parses 64 lowercase hex characters.
    ///
    /// # Errors
    /// [`ParseTextError`] for any other length, and for uppercase or non-hex characters.
    pub fn parse(text: &str) -> Result<Self, ParseTextError> {
        decode_lower_hex(text)
            .map(Self)
            .ok_or_else(|| ParseTextError::new("64 lowercase hex characters", text))
    }

    /// The text form as bytes, which a transaction's signature covers.
    #[must_use]
    pub fn to_hex(&self) -> [u8; 64] {
        *const_hex::Buffer::<32>::new().const_format(&self.0).as_byte_array()
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = const_hex::Buffer::<32>::new();
        f.write_str(buffer.format(&self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Hash {
    type Err = ParseTextError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl FixedText<32> for Hash {
    fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        crate::text::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::text::deserialize(deserializer)
    }
}
