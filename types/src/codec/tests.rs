//! The rules of the binary form.

use serde::{Deserialize, Serialize};

use super::{DecodeError, VALUE_BYTES_MAX, decode, encode};

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Value {
    number: u64,
    small: u16,
    flag: bool,
    choice: Option<u32>,
    list: Vec<u8>,
    text: String,
}

fn value() -> Value {
    Value {
        number: 1,
        small: 2,
        flag: true,
        choice: Some(3),
        list: vec![4, 5],
        text: "ț".to_owned(),
    }
}

const BYTES: [u8; 38] = [
    1, 0, 0, 0, 0, 0, 0, 0, // number: u64 LE
    2, 0, // small: u16 LE
    1, // flag
    1, 3, 0, 0, 0, // choice: tag, u32 LE
    2, 0, 0, 0, 0, 0, 0, 0, 4, 5, // list: length u64 LE, items
    2, 0, 0, 0, 0, 0, 0, 0, 0xc8, 0x9b, // text: length u64 LE, UTF-8
    0, 0, // not part of it
];

#[test]
fn integers_are_little_endian_of_fixed_width() {
    assert_eq!(encode(&value()), BYTES[..36]);
    assert_eq!(decode::<Value>(&BYTES[..36]).unwrap(), value());
}

#[test]
fn bytes_that_are_left_over_are_refused() {
    let error = decode::<Value>(&BYTES).unwrap_err();
    assert!(matches!(error, DecodeError::Trailing { extra: 2 }), "{error}");
}

#[test]
fn bytes_that_are_cut_off_are_refused_at_every_length() {
    for length in 0..36 {
        let error = decode::<Value>(&BYTES[..length]).unwrap_err();
        assert!(matches!(error, DecodeError::Malformed(_)), "{length}");
    }
}

#[test]
fn one_value_has_one_form() {
    for (at, byte) in [(10, 2), (11, 2), (33, 0xff)] {
        let mut bytes = BYTES[..36].to_vec();
        bytes[at] = byte;
        let error = decode::<Value>(&bytes).unwrap_err();
        assert!(matches!(error, DecodeError::Malformed(_)), "{at}");
    }
}

#[test]
fn a_length_that_lies_costs_no_memory() {
    let mut bytes = u64::MAX.to_le_bytes().to_vec();
    assert!(decode::<Vec<u8>>(&bytes).is_err());
    bytes[7] = 0;
    assert!(decode::<Vec<u64>>(&bytes).is_err());
    assert!(decode::<String>(&bytes).is_err());
}

#[test]
fn values_over_the_limit_are_not_read() {
    let bytes = encode(&vec![7_u8; VALUE_BYTES_MAX]);
    assert!(decode::<Vec<u8>>(&bytes).is_err());
    let largest = vec![7_u8; VALUE_BYTES_MAX - 8];
    assert_eq!(decode::<Vec<u8>>(&encode(&largest)).unwrap(), largest);
}

#[test]
fn short_and_long_values_have_the_same_form() {
    for length in [0, 503, 504, 505, 512, 10_000] {
        let text = "x".repeat(length);
        let mut bytes = u64::try_from(length).unwrap().to_le_bytes().to_vec();
        bytes.extend_from_slice(text.as_bytes());
        assert_eq!(encode(&text), bytes);
    }
}
