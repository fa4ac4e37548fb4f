//! The payload of a call, and the bytes of its answer.

use super::super::method::Method;
use super::decode::decode;
use super::encode::encode;
use super::error::{VALUES_BYTES_MAX, ValueError};
use crate::call::CALLDATA_BYTES_MAX;
use crate::json::{Json, JsonPlace, parse};

/// The bytes of a selector.
const SELECTOR_BYTES: usize = 4;
/// How deep arguments can nest: tuples of arrays of four dimensions, eight deep, and the list of
/// arguments.
const DEPTH_MAX: usize = 48;

impl Method {
    /// Encodes the payload of a call: the selector followed by the arguments, which are a JSON
    /// array by position or an object by name.
    ///
    /// # Errors
    /// [`ValueError`] for the first argument that does not have its type, and for a payload that is
    /// longer than the chain allows.
    pub fn encode_arguments(&self, arguments: &str) -> Result<Vec<u8>, ValueError> {
        let room = CALLDATA_BYTES_MAX.saturating_sub(SELECTOR_BYTES);
        let coded = encode(&self.inputs, &read(arguments)?, room)?;
        Ok([self.selector().0.as_slice(), coded.as_slice()].concat())
    }

    /// Decodes the arguments in a payload into a JSON array of objects with `name`, `type` and
    /// `value`.
    ///
    /// # Errors
    /// [`ValueError`] for the payload of another method, and for the first argument that does not
    /// have its type.
    pub fn decode_arguments(&self, payload: &[u8]) -> Result<String, ValueError> {
        let own = self.selector();
        match payload.split_first_chunk::<SELECTOR_BYTES>() {
            Some((selector, coded)) if *selector == own.0 => decode(&self.inputs, coded),
            Some(_) | None => {
                let found = payload.get(..SELECTOR_BYTES).unwrap_or(payload);
                let found = const_hex::encode_prefixed(found);
                Err(ValueError::new(&JsonPlace::OUTERMOST, format!("to begin with {own}"), &found))
            }
        }
    }

    /// Encodes a result, which is a JSON array by position or an object by name.
    ///
    /// # Errors
    /// [`ValueError`] for the first value that does not have its type, and for a result that is
    /// longer than the chain allows.
    pub fn encode_answer(&self, answer: &str) -> Result<Vec<u8>, ValueError> {
        encode(&self.outputs, &read(answer)?, CALLDATA_BYTES_MAX)
    }

    /// Decodes a result into a JSON array of objects with `name`, `type` and `value`.
    ///
    /// # Errors
    /// [`ValueError`] for the first value that does not have its type.
    pub fn decode_answer(&self, result: &[u8]) -> Result<String, ValueError> {
        decode(&self.outputs, result)
    }
}

/// The values that the caller gives.
fn read(text: &str) -> Result<Json<'_>, ValueError> {
    let outermost = JsonPlace::OUTERMOST;
    if text.len() > VALUES_BYTES_MAX {
        let expected = format!("at most {VALUES_BYTES_MAX} bytes of JSON");
        return Err(ValueError::new(&outermost, expected, &format!("{} bytes", text.len())));
    }
    parse(text.as_bytes(), DEPTH_MAX)
        .map_err(|error| ValueError::new(&outermost, "a JSON array or object", &error.to_string()))
}
