//! Requests that a stranger may send for nothing, and that are as much work as the limits allow.

use serde_json::{Value, json};

/// A prompt for `inferMessages` with these arguments changed. The benchmark includes this file, and has
/// nothing else of the tests.
pub(super) fn envelope(changes: &Value) -> String {
    let mut args = json!({ "messages": [{ "role": "user", "content": "hi" }], "functions": [],
        "toolChoice": "auto" });
    for (key, value) in changes.as_object().expect("the changes are an object") {
        args[key] = value.clone();
    }
    json!({ "ombraAgent": 1, "method": "inferMessages", "args": args }).to_string()
}

pub(super) fn nested(levels: usize) -> Value {
    (0..levels).fold(json!({}), |inner, _| json!({ "a": inner }))
}

/// Requests that are free to ask, and as much work as the limits allow.
pub(super) fn requests() -> Vec<(&'static str, String)> {
    let members = |count: usize, schema: &Value| -> serde_json::Map<String, Value> {
        (0..count).map(|at| (format!("p{at}"), schema.clone())).collect()
    };
    let doubling: serde_json::Map<_, _> = (0..10)
        .map(|level: usize| {
            let below = match level.checked_sub(1) {
                None => json!({ "type": "integer", "minimum": 1, "description": "a number" }),
                Some(below) => json!({ "$ref": format!("#/$defs/d{below}") }),
            };
            let both = json!({ "type": "object", "properties": { "l": below, "r": below },
                "required": ["l", "r"] });
            (format!("d{level}"), both)
        })
        .collect();
    let doubled = json!({ "$defs": doubling, "$ref": "#/$defs/d7" });
    let wide = members(500, &json!({}));
    let names: Vec<_> = wide.keys().cloned().collect();
    let wide = json!({ "type": "object", "properties": wide, "required": names });
    let of = |name: &str, parameters: &Value| json!({ "name": name, "description": "", "parameters": parameters });
    let small = |at: usize| of(&format!("f{at}"), &json!({}));
    let said = json!({ "role": "user", "content": "" });
    let arguments = nested(120);
    let calls: Vec<_> = (0..12)
        .map(|at| json!({ "id": at.to_string(), "name": "f", "arguments": arguments }))
        .collect();
    let deep = json!([{ "role": "assistant", "content": "", "toolCalls": calls }]);
    let values: Vec<_> = (0..1_024).map(|at| format!("{at:08}")).collect();
    let values = json!({ "schema": { "properties": { "a": { "enum": values } } } });
    let all = [
        ("doubled", json!({ "functions": [of("f", &doubled)] })),
        ("wide", json!({ "functions": [of("f", &wide)] })),
        ("many functions", json!({ "functions": (0..128).map(small).collect::<Vec<_>>() })),
        ("many messages", json!({ "messages": vec![said; 480] })),
        ("deep arguments", json!({ "messages": deep })),
        ("values", json!({ "responseSchema": values })),
    ];
    all.map(|(name, changes)| (name, envelope(&changes))).into()
}
