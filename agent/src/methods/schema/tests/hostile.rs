//! Schemas that a stranger may send for nothing, and that are as much work as the limits allow.

use serde_json::{Map, Value, json};

/// Schemas that are as much work as the limits allow.
pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    let doubling = |levels: usize| {
        let mut definitions = Map::new();
        definitions.insert("d0".to_owned(), json!({ "type": "string" }));
        for level in 1..levels {
            let below = json!({ "$ref": format!("#/$defs/d{}", level - 1) });
            let both = json!({ "type": "object", "properties": { "l": below, "r": below } });
            definitions.insert(format!("d{level}"), both);
        }
        json!({ "$defs": definitions, "$ref": format!("#/$defs/d{}", levels - 1) })
    };
    let mut deep = json!({ "type": "string" });
    for _ in 0..15 {
        deep = json!({ "type": "array", "items": deep });
    }
    let long = "x".repeat(8_000);
    let described = json!({ "type": "string", "description": long });
    let wide: Map<_, _> = (0..500).map(|it| (format!("p{it}"), json!({}))).collect();
    let names: Vec<_> = wide.keys().cloned().collect();
    let repeated: Map<_, _> =
        (0..300).map(|it| (format!("p{it}"), json!({ "$ref": "#/$defs/d" }))).collect();
    vec![
        ("doubling", doubling(40)),
        ("doubling within the levels", doubling(12)),
        ("deep", json!({ "type": "object", "properties": { "a": deep }, "required": ["a"] })),
        ("wide", json!({ "type": "object", "required": names, "properties": wide })),
        ("members that may be left out", json!({ "type": "object", "properties": wide })),
        (
            "described again and again",
            json!({ "$defs": { "d": described }, "type": "object", "properties": repeated }),
        ),
    ]
}
