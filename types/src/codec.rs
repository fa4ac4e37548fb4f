//! The binary form of stored values, which only this file knows: bincode, fixed-width little-endian
//! integers, a size limit, and no trailing bytes.

use bincode::config::{Configuration, Fixint, Limit, LittleEndian};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The size of the largest value that can be read, in bytes.
pub const VALUE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Enough bytes for the record of a run, the longest of the records that are written often.
pub const SHORT_BYTES: usize = 512;

const CONFIG: Configuration<LittleEndian, Fixint, Limit<VALUE_BYTES_MAX>> =
    bincode::config::standard().with_fixed_int_encoding().with_limit::<VALUE_BYTES_MAX>();

/// The bytes are not exactly one value of the expected type.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The bytes do not fit the type.
    #[error("stored value is malformed: {0}")]
    Malformed(#[source] bincode::error::DecodeError),
    /// Bytes were left over.
    #[error("stored value has {extra} trailing bytes")]
    Trailing {
        /// The number of bytes left over.
        extra: usize,
    },
}

/// The binary form of `value`. A value over [`VALUE_BYTES_MAX`] could not be read again; no
/// transaction can produce one.
///
/// # Panics
/// Never for the types of this project: only a type that cannot know its length fails to encode.
#[must_use]
pub fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    // Most values are short. They are written once, into a vector of their size.
    let mut short = [0_u8; SHORT_BYTES];
    match bincode::serde::encode_into_slice(value, &mut short, CONFIG) {
        Ok(bytes) => short.get(..bytes).unwrap_or_default().to_vec(),
        Err(_too_long) => {
            bincode::serde::encode_to_vec(value, CONFIG).expect("stored types are plain data")
        }
    }
}

/// Reads one value and nothing more.
///
/// # Errors
/// [`DecodeError`] if the bytes are not exactly one value.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    let (value, read) =
        bincode::serde::decode_from_slice(bytes, CONFIG).map_err(DecodeError::Malformed)?;
    match bytes.len().saturating_sub(read) {
        0 => Ok(value),
        extra => Err(DecodeError::Trailing { extra }),
    }
}

#[cfg(test)]
mod tests;
