//! The one place that knows the binary form of stored values: bincode, fixed-width little-endian
//! integers, a size limit, and no trailing bytes.

use bincode::config::{Configuration, Fixint, Limit, LittleEndian};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The largest value that is read, in bytes.
pub const VALUE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Room for the record of a run, the longest among those that are written often.
pub const SHORT_BYTES: usize = 512;

const CONFIG: Configuration<LittleEndian, Fixint, Limit<VALUE_BYTES_MAX>> =
    bincode::config::standard().with_fixed_int_encoding().with_limit::<VALUE_BYTES_MAX>();

/// Bytes that are not one whole value of the wanted type.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The bytes do not fit the type.
    #[error("stored value is malformed: {0}")]
    Malformed(#[source] bincode::error::DecodeError),
    /// Bytes were left over.
    #[error("stored value has {extra} trailing bytes")]
    Trailing {
        /// How many.
        extra: usize,
    },
}

/// The binary form of `value`. Over [`VALUE_BYTES_MAX`] it could not be read again; nothing that a
/// transaction can make comes near it.
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
/// [`DecodeError`] if the bytes are anything but exactly one value.
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
