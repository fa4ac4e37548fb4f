//! Golden bytes of what the state stores, as hex.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::{decode, encode};

/// Asserts that a record has these bytes, given as hex with spaces between fields.
#[track_caller]
pub(crate) fn assert_bytes<T>(record: &T, hex: &str)
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let hex: String = hex.split_whitespace().collect();
    assert_eq!(const_hex::encode(encode(record)), hex, "{record:?}");
    assert_eq!(&decode::<T>(&const_hex::decode(hex).unwrap()).unwrap(), record);
}

/// A small number in eight bytes.
pub(crate) fn number(value: u8) -> String {
    format!("{value:02x}00000000000000")
}

/// Several of them.
pub(crate) fn numbers<const N: usize>(values: [u8; N]) -> String {
    values.map(number).join(" ")
}
