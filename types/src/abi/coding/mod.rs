//! Arguments and answers of methods: JSON, and the bytes of Solidity's application binary interface
//! (docs/market.md section 5).
//!
//! Writing and reading follow the type step by step and never further than the bytes go. Libraries for
//! this interface build a value of a type before they read: of `uint8[1024][1024][1024]` in a text of a
//! hundred bytes they take gigabytes, and of offsets that all lead to one place they read it again and
//! again. Here a value has one form, so each byte is read once.

mod decode;
mod encode;
mod integer;
mod shape;

use super::{Method, Parameter};
use crate::call::CALLDATA_BYTES_MAX;
use crate::json::{Json, Place, parse};
use crate::text::shorten;

/// The most bytes of arguments or of an answer as JSON.
pub const VALUES_BYTES_MAX: usize = 262_144;
/// The bytes of a selector.
const SELECTOR_BYTES: usize = 4;
/// How deep arguments nest: tuples of arrays of four dimensions, eight deep, and the list of arguments.
const DEPTH_MAX: usize = 48;

/// Why a value is none of its type.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: expected {expected}, found {found}")]
pub struct ValueError {
    /// Where: a JSON pointer (RFC 6901) from the list of values on.
    pub place: String,
    /// What would have been right.
    pub expected: String,
    /// What is there, shortened.
    pub found: String,
}

impl ValueError {
    fn new(place: &Place<'_>, expected: impl Into<String>, found: &str) -> Self {
        Self { place: place.pointer(), expected: expected.into(), found: shorten(found) }
    }
}

impl Method {
    /// The payload of a call with arguments, a JSON array by position or an object by name: the selector
    /// and the arguments.
    ///
    /// # Errors
    /// [`ValueError`] for the first argument that is none of its type, and for a payload that no call
    /// may have.
    pub fn encode_arguments(&self, arguments: &str) -> Result<Vec<u8>, ValueError> {
        let room = CALLDATA_BYTES_MAX.saturating_sub(SELECTOR_BYTES);
        let coded = encode::encode(&self.inputs, &read(arguments)?, room)?;
        Ok([self.selector().0.as_slice(), coded.as_slice()].concat())
    }

    /// The arguments of a payload as a JSON array of objects with `name`, `type` and `value`.
    ///
    /// # Errors
    /// [`ValueError`] for a payload of another method, and for the first argument that is none of its
    /// type.
    pub fn decode_arguments(&self, payload: &[u8]) -> Result<String, ValueError> {
        let own = self.selector();
        match payload.split_first_chunk::<SELECTOR_BYTES>() {
            Some((selector, coded)) if *selector == own.0 => decode::decode(&self.inputs, coded),
            Some(_) | None => {
                let found = payload.get(..SELECTOR_BYTES).unwrap_or(payload);
                let found = const_hex::encode_prefixed(found);
                Err(ValueError::new(&Place::OUTERMOST, format!("to begin with {own}"), &found))
            }
        }
    }

    /// The bytes of an answer, a JSON array by position or an object by name.
    ///
    /// # Errors
    /// [`ValueError`] for the first value that is none of its type, and for more bytes than a result may
    /// have.
    pub fn encode_answer(&self, answer: &str) -> Result<Vec<u8>, ValueError> {
        encode::encode(&self.outputs, &read(answer)?, CALLDATA_BYTES_MAX)
    }

    /// An answer as a JSON array of objects with `name`, `type` and `value`.
    ///
    /// # Errors
    /// [`ValueError`] for the first value that is none of its type.
    pub fn decode_answer(&self, result: &[u8]) -> Result<String, ValueError> {
        decode::decode(&self.outputs, result)
    }
}

/// What values are called in an object: the names of parameters. One without a name is `arg` and its place,
/// from 0, with underscores behind it as long as another one has that name.
#[must_use]
pub fn value_names(parameters: &[Parameter]) -> Vec<String> {
    encode::names(parameters)
}

/// The values that somebody gives.
fn read(text: &str) -> Result<Json<'_>, ValueError> {
    let outermost = Place::OUTERMOST;
    if text.len() > VALUES_BYTES_MAX {
        let expected = format!("at most {VALUES_BYTES_MAX} bytes of JSON");
        return Err(ValueError::new(&outermost, expected, &format!("{} bytes", text.len())));
    }
    parse(text.as_bytes(), DEPTH_MAX)
        .map_err(|error| ValueError::new(&outermost, "a JSON array or object", &error.to_string()))
}

#[cfg(test)]
mod tests;
