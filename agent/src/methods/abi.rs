//! Arguments of functions: JSON as models write it, and Solidity's values
//! (docs/agent-methods.md section 7).

use alloy_dyn_abi::{DynSolType, DynSolValue};
use alloy_primitives::{Address, I256, U256};
use serde_json::{Value, json};
use types::text::shorten;

use super::integer::{magnitude, sign_and_digits, signed};

/// The most elements of an array whose type fixes their number.
pub(super) const FIXED_ELEMENTS_MAX: usize = 1_024;

/// What a parameter may be.
pub(super) const TYPES: &str = "string, bool, address, uint8 to uint256, int8 to int256, bytes, or an array of one of them, T[] or T[1] to T[1024]";

/// Whether a parameter may have this type.
pub(super) fn is_taken(of_type: &DynSolType) -> bool {
    match of_type {
        DynSolType::Array(item) => is_plain(item),
        DynSolType::FixedArray(item, count) => {
            (1..=FIXED_ELEMENTS_MAX).contains(count) && is_plain(item)
        }
        DynSolType::Bool
        | DynSolType::Int(_)
        | DynSolType::Uint(_)
        | DynSolType::FixedBytes(_)
        | DynSolType::Address
        | DynSolType::Function
        | DynSolType::Bytes
        | DynSolType::String
        | DynSolType::Tuple(_) => is_plain(of_type),
    }
}

const fn is_plain(of_type: &DynSolType) -> bool {
    match of_type {
        DynSolType::Bool
        | DynSolType::Int(_)
        | DynSolType::Uint(_)
        | DynSolType::Address
        | DynSolType::Bytes
        | DynSolType::String => true,
        DynSolType::FixedBytes(_)
        | DynSolType::Function
        | DynSolType::Array(_)
        | DynSolType::FixedArray(..)
        | DynSolType::Tuple(_) => false,
    }
}

/// The JSON schema of an argument.
pub(super) fn schema(of_type: &DynSolType) -> Value {
    match of_type {
        DynSolType::Bool => json!({ "type": "boolean" }),
        DynSolType::Int(_) => text_schema("^-?[0-9]+$", &expected(of_type)),
        DynSolType::Uint(_) => text_schema("^[0-9]+$", &expected(of_type)),
        DynSolType::Address => text_schema("^0x[0-9a-fA-F]{40}$", &expected(of_type)),
        DynSolType::Bytes => text_schema("^0x([0-9a-fA-F]{2})*$", &expected(of_type)),
        DynSolType::Array(item) => json!({ "type": "array", "items": schema(item) }),
        DynSolType::FixedArray(item, count) => json!({
            "type": "array", "items": schema(item), "minItems": count, "maxItems": count,
        }),
        DynSolType::String
        | DynSolType::FixedBytes(_)
        | DynSolType::Function
        | DynSolType::Tuple(_) => json!({ "type": "string" }),
    }
}

fn text_schema(pattern: &str, description: &str) -> Value {
    json!({ "type": "string", "pattern": pattern, "description": description })
}

/// What an argument of this type looks like, for messages to a model.
pub(super) fn expected(of_type: &DynSolType) -> String {
    match of_type {
        DynSolType::Bool => "true or false".to_owned(),
        DynSolType::Int(bits) => format!("a decimal string, a signed integer of {bits} bits"),
        DynSolType::Uint(bits) => format!("a decimal string, an unsigned integer of {bits} bits"),
        DynSolType::Address => "a string of 0x and 40 hex characters".to_owned(),
        DynSolType::Bytes => "a string of 0x and two hex characters for each byte".to_owned(),
        DynSolType::Array(item) => format!("an array, each element {}", expected(item)),
        DynSolType::FixedArray(item, count) => {
            format!("an array of {count} elements, each {}", expected(item))
        }
        DynSolType::String
        | DynSolType::FixedBytes(_)
        | DynSolType::Function
        | DynSolType::Tuple(_) => "a string".to_owned(),
    }
}

/// An argument as Solidity's value; `path` names it in messages.
///
/// The error is a sentence for the model.
pub(super) fn to_solidity(
    path: &str,
    of_type: &DynSolType,
    given: &Value,
) -> Result<DynSolValue, String> {
    let value = match of_type {
        DynSolType::Bool => given.as_bool().map(DynSolValue::Bool),
        DynSolType::String => given.as_str().map(|text| DynSolValue::String(text.to_owned())),
        DynSolType::Int(bits) => number_text(given)
            .and_then(|text| int(&text, *bits))
            .map(|n| DynSolValue::Int(n, *bits)),
        DynSolType::Uint(bits) => number_text(given)
            .and_then(|text| uint(&text, *bits))
            .map(|n| DynSolValue::Uint(n, *bits)),
        DynSolType::Address => given
            .as_str()
            .and_then(bytes)
            .and_then(|bytes| <[u8; 20]>::try_from(bytes).ok())
            .map(|bytes| DynSolValue::Address(Address::from(bytes))),
        DynSolType::Bytes => given.as_str().and_then(bytes).map(DynSolValue::Bytes),
        DynSolType::Array(item) => match given {
            Value::Array(items) => Some(DynSolValue::Array(elements(path, item, items)?)),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => None,
        },
        DynSolType::FixedArray(item, count) => match given {
            Value::Array(items) if items.len() == *count => {
                Some(DynSolValue::FixedArray(elements(path, item, items)?))
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => None,
        },
        DynSolType::FixedBytes(_) | DynSolType::Function | DynSolType::Tuple(_) => None,
    };
    value.ok_or_else(|| {
        let shown = shorten(&given.to_string());
        format!("{path} is {shown}; expected {}", expected(of_type))
    })
}

fn elements(path: &str, item: &DynSolType, items: &[Value]) -> Result<Vec<DynSolValue>, String> {
    let element = |(index, given)| to_solidity(&format!("{path}[{index}]"), item, given);
    items.iter().enumerate().map(element).collect()
}

/// The text of a number. Models also write plain JSON integers; what JSON keeps exactly, below 2^64,
/// is taken.
fn number_text(given: &Value) -> Option<String> {
    match given {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) if number.is_u64() || number.is_i64() => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            None
        }
    }
}

/// A number without a sign that fits into so many bits.
fn uint(text: &str, bits: usize) -> Option<U256> {
    let (is_negative, digits) = sign_and_digits(text)?;
    let number = magnitude(digits)?;
    let fits = number.bit_len() <= bits && (!is_negative || number.is_zero());
    fits.then_some(number)
}

/// A number with a sign that fits into so many bits.
fn int(text: &str, bits: usize) -> Option<I256> {
    let (is_negative, digits) = sign_and_digits(text)?;
    let number = signed(is_negative, magnitude(digits)?)?;
    // In two's complement: one bit more than the magnitude of a number or of its complement.
    let magnitude = if number.is_negative() { !number.into_raw() } else { number.into_raw() };
    (magnitude.bit_len() < bits).then_some(number)
}

/// `0x` and hex of either case.
fn bytes(text: &str) -> Option<Vec<u8>> {
    const_hex::decode(text.strip_prefix("0x").filter(|hex| !hex.starts_with("0x"))?).ok()
}

/// Solidity's value in the form in which a model gives it; `None` for a type that is not taken.
pub(super) fn to_json(value: &DynSolValue) -> Option<Value> {
    Some(match value {
        DynSolValue::Bool(value) => Value::Bool(*value),
        DynSolValue::Int(number, _) => Value::String(number.to_string()),
        DynSolValue::Uint(number, _) => Value::String(number.to_string()),
        DynSolValue::Address(address) => {
            Value::String(const_hex::encode_prefixed(address.as_slice()))
        }
        DynSolValue::Bytes(bytes) => Value::String(const_hex::encode_prefixed(bytes)),
        DynSolValue::String(text) => Value::String(text.clone()),
        DynSolValue::Array(items) | DynSolValue::FixedArray(items) => {
            Value::Array(items.iter().map(to_json).collect::<Option<_>>()?)
        }
        DynSolValue::FixedBytes(..) | DynSolValue::Function(_) | DynSolValue::Tuple(_) => {
            return None;
        }
    })
}
