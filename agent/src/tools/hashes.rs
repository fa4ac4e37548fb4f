//! The hashes of a call that AGENT_STEP carries (docs/protocol.md section 5.4), and their preimages.

use serde_json::{Map, Number, Value};
use types::Hash;
use types::json::write_string;

use crate::messages::ToolSpec;

/// SHA-256 of the canonical JSON of a call's arguments.
#[must_use]
pub fn args_hash(arguments: &Map<String, Value>) -> Hash {
    let mut text = String::new();
    write_object(arguments, &mut text);
    Hash::digest(text.as_bytes())
}

/// SHA-256 of a result's UTF-8, as the model got it.
#[must_use]
pub fn result_hash(result: &str) -> Hash {
    Hash::digest(result.as_bytes())
}

/// SHA-256 of what tools are called and of the schemas of their arguments, in their order: what an
/// output depends on that calls them. What they say of themselves beside that is left out.
#[must_use]
pub fn offer_hash(tools: &[ToolSpec]) -> Hash {
    let offer = |ToolSpec { name, parameters, description: _ }: &ToolSpec| {
        Value::Array(vec![Value::String(name.clone()), parameters.clone()])
    };
    let offers = Value::Array(tools.iter().map(offer).collect());
    Hash::digest(canonical_json(&offers).as_bytes())
}

/// The one written form of a JSON value: RFC 8785, but whole numbers of any size keep all digits.
///
/// No white space; members sorted by the UTF-16 units of their keys; strings with the escapes of
/// ECMAScript; numbers that are not whole in ECMAScript's shortest form.
#[must_use]
pub fn canonical_json(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, &mut text);
    text
}

fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => out.push_str(&number_text(number)),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => write_object(members, out),
    }
}

fn write_object(members: &Map<String, Value>, out: &mut String) {
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
    out.push('{');
    for (index, (key, value)) in sorted.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(key, out);
        out.push(':');
        write_value(value, out);
    }
    out.push('}');
}

/// ECMAScript writes numbers from here on with an exponent, …
const EXPONENT_FROM: f64 = 1e21;
/// … and those below this.
const EXPONENT_BELOW: f64 = 1e-6;

fn number_text(number: &Number) -> String {
    if number.is_i64() || number.is_u64() {
        return number.to_string();
    }
    let Some(float) = number.as_f64() else { return number.to_string() };
    let size = float.abs();
    if size == 0.0 {
        "0".to_owned()
    } else if (EXPONENT_BELOW..EXPONENT_FROM).contains(&size) {
        float.to_string()
    } else {
        let text = format!("{float:e}");
        if text.contains("e-") { text } else { text.replace('e', "e+") }
    }
}
