//! Account addresses (docs/protocol.md section 2).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::text::{FixedText, ParseTextError, decode_lower_hex};

/// The first 20 bytes of `sha256(publicKey)`. Written as 40 lowercase hex characters;
/// [`Address::parse`] also accepts the prefix `ox`, which does not change the address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Address([u8; 20]);

const EXPECTED: &str = "40 lowercase hex characters, or \"ox\" and 40 lowercase hex characters";

impl Address {
    /// The prefix of the second written form.
    pub const PREFIX: &'static str = "ox";

    /// Wraps bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 20]) -> Self {
        Self(bytes)
    }

    /// Parses either written form.
    ///
    /// # Errors
    /// [`ParseTextError`] for any other text.
    pub fn parse(text: &str) -> Result<Self, ParseTextError> {
        let digits = text.strip_prefix(Self::PREFIX).unwrap_or(text);
        let bytes = decode_lower_hex(digits).ok_or_else(|| ParseTextError::new(EXPECTED, text))?;
        Ok(Self(bytes))
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = const_hex::Buffer::<20>::new();
        f.write_str(buffer.format(&self.0))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Address {
    type Err = ParseTextError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl FixedText<20> for Address {
    fn bytes(&self) -> &[u8; 20] {
        &self.0
    }

    fn from_bytes(bytes: [u8; 20]) -> Self {
        Self(bytes)
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        crate::text::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::text::deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests;
