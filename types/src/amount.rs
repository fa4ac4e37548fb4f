//! Money (docs/protocol.md section 1).

use std::fmt;
use std::str::FromStr;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::text::ParseTextError;

/// An unsigned amount in micro-OMBRA. 1 OMBRA is 1,000,000 micro.
///
/// In JSON, an amount is a decimal string (`0`, or a digit 1–9 followed by digits); in binary, it
/// is a `u64`. There are no arithmetic operators, so every sum says what happens if the result does
/// not fit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Amount(u64);

const EXPECTED: &str = "a decimal string of micro-OMBRA from \"0\" to \"18446744073709551615\" without sign or leading zero";

impl Amount {
    /// An amount of 0.
    pub const ZERO: Self = Self(0);
    /// The largest amount, 2^64−1 micro.
    pub const MAX: Self = Self(u64::MAX);
    /// The number of micro in one OMBRA.
    pub const MICRO_PER_OMBRA: u64 = 1_000_000;

    /// An amount of this many micro-OMBRA.
    #[must_use]
    pub const fn new(micro: u64) -> Self {
        Self(micro)
    }

    /// The number of micro-OMBRA.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whether the amount is 0.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The sum, if it fits.
    #[must_use]
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// The difference, if it is not negative.
    #[must_use]
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(difference) => Some(Self(difference)),
            None => None,
        }
    }

    /// The product, if it fits.
    #[must_use]
    pub const fn checked_mul(self, factor: u64) -> Option<Self> {
        match self.0.checked_mul(factor) {
            Some(product) => Some(Self(product)),
            None => None,
        }
    }

    /// Parses the decimal string of docs/protocol.md section 1.
    ///
    /// # Errors
    /// [`ParseTextError`] for a sign, a leading zero, an exponent, more than 20 characters, or a
    /// value above 2^64−1.
    pub fn parse(text: &str) -> Result<Self, ParseTextError> {
        let canonical = text == "0"
            || (text.len() <= 20
                && !text.starts_with('0')
                && text.bytes().all(|byte| byte.is_ascii_digit()));
        match text.parse() {
            Ok(micro) if canonical => Ok(Self(micro)),
            _ => Err(ParseTextError::new(EXPECTED, text)),
        }
    }

    /// The amount in OMBRA with six decimals, for people: `1.500000`.
    #[must_use]
    pub fn ombra(self) -> String {
        let (whole, rest) = (self.0 / Self::MICRO_PER_OMBRA, self.0 % Self::MICRO_PER_OMBRA);
        format!("{whole}.{rest:06}")
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} micro", self.0)
    }
}

impl FromStr for Amount {
    type Err = ParseTextError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_u64(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_str(AmountVisitor)
        } else {
            u64::deserialize(deserializer).map(Self)
        }
    }
}

struct AmountVisitor;

impl Visitor<'_> for AmountVisitor {
    type Value = Amount;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Amount, E> {
        Amount::parse(text).map_err(E::custom)
    }
}

#[cfg(test)]
mod tests;
