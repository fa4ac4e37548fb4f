//! What is a schema here, its one form, and what a hostile one costs.

mod hostile;

use super::*;
use crate::methods::tests::{text_of, vectors_of};

fn form(schema: &Value) -> Value {
    Schema::of("s", &schema.to_string()).unwrap_or_else(|e| panic!("{schema}: {e}")).form().clone()
}

fn refusal(schema: &Value) -> Refused {
    Schema::of("s", &schema.to_string()).expect_err(&schema.to_string())
}

/// The form of a schema of an object whose member `a` is this.
fn with(schema: &Value) -> Value {
    let mut closed = of(schema);
    closed["additionalProperties"] = json!(false);
    closed
}

/// A schema of an object whose member `a` is this.
fn of(schema: &Value) -> Value {
    json!({ "type": "object", "properties": { "a": schema }, "required": ["a"] })
}

#[test]
fn what_says_nothing_is_left_out_and_what_is_meant_is_put_in() {
    let (text, integer) = (json!({ "type": "string" }), json!({ "type": "integer" }));
    for (given, expected) in [
        (json!({ "type": "string", "title": "A", "default": "x", "examples": [1] }), text.clone()),
        (json!({ "type": "string", "x-order": 1, "$comment": "c" }), text.clone()),
        (json!({ "allOf": [text] }), text.clone()),
        (
            json!({ "oneOf": [text, { "type": "null" }] }),
            json!({ "anyOf": [text, { "type": "null" }] }),
        ),
        (json!({ "type": "string", "nullable": true }), json!({ "type": ["string", "null"] })),
        (json!({ "const": 7 }), json!({ "enum": [7] })),
        (
            json!({ "type": "string", "enum": ["b", "a"], "nullable": true }),
            json!({ "enum": ["b", "a", null] }),
        ),
        (
            json!({ "type": "string", "format": "date-time" }),
            json!({ "type": "string", "description": "format: date-time" }),
        ),
        (
            json!({ "type": "string", "format": "uuid", "description": "its id" }),
            json!({ "type": "string", "description": "its id (format: uuid)" }),
        ),
        (
            json!({ "items": integer, "maxItems": 3, "uniqueItems": false }),
            json!({ "type": "array", "maxItems": 3, "items": integer }),
        ),
        (
            json!({ "properties": {} }),
            json!({ "type": "object", "properties": {}, "required": [], "additionalProperties": false }),
        ),
    ] {
        assert_eq!(form(&of(&given)), with(&expected), "{given}");
    }
    for same in [
        json!({ "type": "object" }),
        json!({ "type": "object", "additionalProperties": integer }),
        json!({}),
    ] {
        assert_eq!(form(&of(&same)), with(&same), "{same}");
    }
    assert_eq!(form(&json!({})), json!({ "type": "object" }), "arguments are an object");
}

#[test]
fn references_are_put_in_place_with_what_is_said_beside_them() {
    let schema = json!({
        "$defs": { "Color": { "type": "string", "enum": ["red", "blue"], "title": "Color" },
            "Part": { "type": "object", "properties": { "color": { "$ref": "#/$defs/Color" } } } },
        "type": "object",
        "properties": {
            "main": { "$ref": "#/$defs/Part", "description": "the main one" },
            "others": { "type": "array", "items": { "$ref": "#/$defs/Part" } },
        },
    });
    let part = json!({ "type": "object", "properties": { "color": { "enum": ["red", "blue"] } },
        "required": [], "additionalProperties": false });
    let form = form(&schema);
    assert_eq!(form["properties"]["others"]["items"], part);
    assert_eq!(form["properties"]["main"]["description"], "the main one");
    assert_eq!(form.get("$defs"), None);
}

#[test]
fn a_program_of_an_agent_may_want_any_value() {
    let form = |schema: &Value| Schema::form_of_any("s", &schema.to_string());
    for same in [
        json!({ "type": "array", "items": { "type": "integer" } }),
        json!({ "type": ["string", "null"] }),
        json!({ "enum": [-9_007_199_254_740_992_i64, 9_007_199_254_740_992_i64, 1e300] }),
        json!({ "type": "object" }),
    ] {
        assert_eq!(form(&same), Ok(same));
    }
    assert_eq!(form(&json!({})), Ok(json!({ "type": "object" })));
    let defined = json!({ "anyOf": [{ "$ref": "#/$defs/a" }, { "type": "null" }],
        "$defs": { "a": { "const": "x" } } });
    assert_eq!(form(&defined), Ok(json!({ "anyOf": [{ "enum": ["x"] }, { "type": "null" }] })));
    for (schema, field) in [
        (json!({ "type": "array", "items": { "$ref": "#" } }), "s.items.$ref"),
        (json!({ "enum": [9_007_199_254_740_993_i64] }), "s.enum[0]"),
        (json!({ "const": u64::MAX }), "s.const"),
        (json!([]), "s"),
    ] {
        assert_eq!(form(&schema).expect_err(field).field, field);
    }
    for (name, schema) in hostile::schemas() {
        let as_agents = Schema::of("s", &schema.to_string()).map(|it| it.form().clone());
        assert_eq!(form(&schema), as_agents, "{name}");
    }
}

/// Most of what is refused is in the vectors, which other programs read too.
#[test]
fn what_cannot_be_honoured_is_refused_with_its_path() {
    let many: Vec<_> = (0..33).map(|_| json!({ "type": "string" })).collect();
    let words: Vec<_> = (0..1_025).map(|it| it.to_string()).collect();
    for (given, part) in [
        (json!({ "type": 1 }), ".type"),
        (json!({ "$ref": "https://a.example/s" }), ".$ref"),
        (json!({ "$ref": "#", "type": "object" }), ".type"),
        (json!({ "anyOf": many }), ".anyOf"),
        (json!({ "enum": words }), ".enum"),
        (json!({ "enum": ["x".repeat(257)] }), ".enum[0]"),
        (
            json!({ "type": "object", "properties": { "x": {} }, "required": ["x", "x"] }),
            ".required[1]",
        ),
        (json!({ "type": "object", "properties": [] }), ".properties"),
        (json!({ "type": "number", "minimum": 1e300 }), ".minimum"),
        (json!({ "type": "number", "minimum": "1" }), ".minimum"),
        (json!([]), ""),
    ] {
        assert_eq!(refusal(&of(&given)).field, format!("s.properties.a{part}"), "{given}");
    }
    for (schema, field) in [(json!([]), "s"), (json!({ "$defs": [] }), "s.$defs")] {
        assert_eq!(refusal(&schema).field, field, "{schema}");
    }
    for vector in vectors_of("wrongSchemas") {
        assert_eq!(refusal(&vector["schema"]).field, text_of(&vector, "field"), "{vector}");
    }
}

#[test]
fn bounds_that_leave_a_number_are_taken() {
    for given in [
        json!({ "type": "integer", "minimum": 1, "maximum": 1 }),
        json!({ "type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 2 }),
        json!({ "type": "integer", "minimum": -9_007_199_254_740_991_i64, "maximum": 9_007_199_254_740_991_i64 }),
        json!({ "type": "integer", "minimum": 0.5, "maximum": 1.5 }),
        json!({ "type": "integer", "exclusiveMinimum": 0.5, "exclusiveMaximum": 1.5 }),
        json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 0.0001 }),
        json!({ "type": ["integer", "number"], "minimum": 1.2, "maximum": 1.8 }),
        json!({ "type": "number", "minimum": -0.5 }),
    ] {
        assert_eq!(form(&of(&given))["properties"]["a"]["type"], given["type"], "{given}");
    }
}

#[test]
fn a_schema_is_written_as_it_was() {
    let text = r#"{"type":"object","properties":{"z":{"type":"number","minimum":1.0},"a":{"type":"string","title":"A"}}}"#;
    let spaced = text.replace(',', " ,\n").replace(':', " : ");
    assert_eq!(Schema::of("s", &spaced).unwrap().text(), text);
    let form = form(&serde_json::from_str(text).unwrap());
    let keys: Vec<_> = form["properties"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["z", "a"], "the model writes members in the order of the requester");
}

#[test]
fn what_fits_is_found_and_what_does_not_is_told() {
    let schema = of(&json!({ "type": "array", "items": { "type": "integer", "minimum": 2 } }));
    let schema = Schema::of("s", &schema.to_string()).unwrap();
    assert_eq!(schema.check_text(r#" {"a":[2,3]} "#), Ok(()));
    for (text, part) in [
        ("", "JSON"),
        ("{\"a\":[2]", "JSON"),
        ("[2]", "expected an object"),
        ("{}", "a is missing"),
        ("{\"a\":[2],\"b\":1}", "b is unknown"),
        ("{\"a\":[1]}", "a.0 is 1"),
        ("{\"a\":[2],\"a\":[2]}", "every key once"),
        ("{\"a\":[1e999]}", "1e999"),
    ] {
        let told = schema.check_text(text).expect_err(text);
        assert!(told.contains(part), "{text}: {told}");
    }
}

#[test]
fn limits_hold_for_all_that_is_referred_to() {
    let hostile = hostile::schemas();
    for (name, schema) in &hostile {
        let bytes = schema.to_string().len();
        assert!(bytes <= 16_384, "{name} is free to ask: {bytes} bytes");
    }
    let refused: Vec<_> =
        hostile.iter().map(|(_, schema)| Schema::of("s", &schema.to_string()).is_err()).collect();
    assert_eq!(refused, [true, true, false, false, true, true]);
}

#[test]
fn other_programs_agree_about_schemas() {
    let taken = vectors_of("schemas");
    assert!(taken.len() >= 8, "{}", taken.len());
    for vector in taken {
        form(&vector);
    }
}
