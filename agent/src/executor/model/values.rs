//! Values of methods as JSON, and what their JSON may be.

use alloy_primitives::{I256, U256};
use serde_json::{Map, Value, json};
use types::abi::{Base, Dimension, Parameter, Type, value_names};

/// The most values that outputs need: an answer has at most 4,096 tokens, and each takes at least one.
const VALUES_MAX: u64 = 4_096;
/// The bits of the largest integers.
const BITS: u16 = 256;

/// What a schema is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// A model reads it: as short as it can be, and no bounds.
    Told,
    /// A model is held to it.
    Held,
}

/// The values of what types decode: a JSON array of objects with `value`.
#[must_use]
pub fn of(decoded: &str) -> Vec<Value> {
    let entries: Vec<Map<String, Value>> = serde_json::from_str(decoded).unwrap_or_default();
    let value = |mut entry: Map<String, Value>| entry.remove("value").unwrap_or_default();
    entries.into_iter().map(value).collect()
}

/// Values as an object by name.
#[must_use]
pub fn by_name(parameters: &[Parameter], values: Vec<Value>) -> Value {
    Value::Object(value_names(parameters).into_iter().zip(values).collect())
}

/// Whether there is one parameter, and it is a text.
#[must_use]
pub fn is_text(parameters: &[Parameter]) -> bool {
    let [only] = parameters else { return false };
    only.of_type.name().base() == Base::String && only.of_type.name().dimensions().is_empty()
}

/// Whether an answer has room for what these outputs need.
#[must_use]
pub fn have_room(parameters: &[Parameter]) -> bool {
    needed(parameters) <= VALUES_MAX
}

/// How many values there are at least, where an array without a number of elements has one.
fn needed(parameters: &[Parameter]) -> u64 {
    let of = |parameter: &Parameter| {
        let of_type = &parameter.of_type;
        let elements = of_type.name().dimensions().iter().map(|dimension| match dimension {
            Dimension::Fixed(count) => u64::from(*count),
            Dimension::Any => 1,
        });
        let each = needed(of_type.components()).max(1);
        elements.fold(each, u64::saturating_mul)
    };
    parameters.iter().map(of).fold(0, u64::saturating_add)
}

/// The JSON schema of values as an object by name.
#[must_use]
pub fn schema(parameters: &[Parameter], detail: Detail) -> Value {
    let names = value_names(parameters);
    let pairs = names.iter().cloned().zip(parameters);
    let properties: Map<String, Value> =
        pairs.map(|(name, parameter)| (name, of_type(&parameter.of_type, detail))).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": names,
        "additionalProperties": false,
    })
}

fn of_type(of_type: &Type, detail: Detail) -> Value {
    let base = match of_type.name().base() {
        Base::String => json!({ "type": "string" }),
        Base::Bool => json!({ "type": "boolean" }),
        Base::Bytes => text("^0x([0-9a-f]{2})*$"),
        Base::Address => text("^[0-9a-f]{40}$"),
        Base::FixedBytes(bytes) => text(&format!("^0x([0-9a-f]{{2}}){{{bytes}}}$")),
        Base::Uint(bits) => integer(detail, "^[0-9]+$", U256::ZERO, largest(bits)),
        Base::Int(bits) => {
            // One bit is the sign's.
            let largest = I256::from_raw(largest(bits.saturating_sub(1)));
            integer(detail, "^-?[0-9]+$", I256::MINUS_ONE.wrapping_sub(largest), largest)
        }
        Base::Tuple => schema(of_type.components(), detail),
    };
    of_type.name().dimensions().iter().fold(base, |items, dimension| match dimension {
        Dimension::Any => json!({ "type": "array", "items": items }),
        Dimension::Fixed(count) => {
            json!({ "type": "array", "items": items, "minItems": count, "maxItems": count })
        }
    })
}

fn text(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

/// The largest number of so many bits.
fn largest(bits: u16) -> U256 {
    U256::MAX.wrapping_shr(usize::from(BITS.saturating_sub(bits)))
}

/// An integer as a decimal text.
fn integer(detail: Detail, short: &str, min: impl ToString, max: impl ToString) -> Value {
    let exact = || infer::integer_pattern(Some(&min.to_string()), Some(&max.to_string()));
    match detail {
        Detail::Told => text(short),
        // The bounds are of 256 bits at most, and in order.
        Detail::Held => text(&exact().unwrap_or_else(|_| short.to_owned())),
    }
}
