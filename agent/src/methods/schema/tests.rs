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

/// A closed object with one member, `a`, of this schema.
fn with(schema: &Value) -> Value {
    json!({ "type": "object", "properties": { "a": schema }, "required": ["a"],
        "additionalProperties": false })
}

/// A schema of an object whose member `a` is this.
fn of(schema: &Value) -> Value {
    json!({ "type": "object", "properties": { "a": schema }, "required": ["a"] })
}

#[test]
fn what_says_nothing_is_left_out_and_what_is_meant_is_put_in() {
    let text = json!({ "type": "string" });
    for (given, expected) in [
        (json!({ "type": "string", "title": "A", "default": "x", "examples": [1] }), text.clone()),
        (json!({ "type": "string", "x-order": 1, "$comment": "c" }), text.clone()),
        (json!({ "allOf": [{ "type": "string" }] }), text),
        (
            json!({ "oneOf": [{ "type": "string" }, { "type": "null" }] }),
            json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }),
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
            json!({ "items": { "type": "integer" }, "maxItems": 3, "uniqueItems": false }),
            json!({ "type": "array", "maxItems": 3, "items": { "type": "integer" } }),
        ),
        (json!({ "type": "object" }), json!({ "type": "object" })),
        (
            json!({ "properties": {} }),
            json!({ "type": "object", "properties": {}, "required": [], "additionalProperties": false }),
        ),
        (
            json!({ "type": "object", "additionalProperties": { "type": "integer" } }),
            json!({ "type": "object", "additionalProperties": { "type": "integer" } }),
        ),
        (json!({}), json!({})),
    ] {
        assert_eq!(form(&of(&given)), with(&expected), "{given}");
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
fn what_cannot_be_honoured_is_refused_with_its_path() {
    let many: Vec<_> = (0..33).map(|_| json!({ "type": "string" })).collect();
    let words: Vec<_> = (0..1_025).map(|it| it.to_string()).collect();
    for (given, field) in [
        (json!({ "type": "string", "pattern": "a*" }), "s.properties.a.pattern"),
        (json!({ "type": "array", "uniqueItems": true }), "s.properties.a.uniqueItems"),
        (json!({ "type": "text" }), "s.properties.a.type"),
        (json!({ "type": [] }), "s.properties.a.type"),
        (json!({ "type": ["string", "string"] }), "s.properties.a.type"),
        (json!({ "type": 1 }), "s.properties.a.type"),
        (json!({ "not": {} }), "s.properties.a.not"),
        (json!({ "type": "string", "minimum": 1 }), "s.properties.a.minimum"),
        (json!({ "$ref": "#/$defs/none" }), "s.properties.a.$ref"),
        (json!({ "$ref": "https://a.example/s" }), "s.properties.a.$ref"),
        (json!({ "$ref": "#", "type": "object" }), "s.properties.a.type"),
        (json!({ "$defs": {}, "type": "object" }), "s.properties.a.$defs"),
        (json!({ "anyOf": [] }), "s.properties.a.anyOf"),
        (json!({ "anyOf": many }), "s.properties.a.anyOf"),
        (json!({ "anyOf": [{ "type": "string" }], "type": "string" }), "s.properties.a.type"),
        (json!({ "allOf": [{}, {}] }), "s.properties.a.allOf"),
        (json!({ "enum": [] }), "s.properties.a.enum"),
        (json!({ "enum": [1, 1] }), "s.properties.a.enum[1]"),
        (json!({ "enum": [{}] }), "s.properties.a.enum[0]"),
        (json!({ "type": "string", "enum": ["x", 1] }), "s.properties.a.enum[1]"),
        (json!({ "type": "integer", "const": 1.5 }), "s.properties.a.const"),
        (json!({ "enum": words }), "s.properties.a.enum"),
        (json!({ "enum": ["x".repeat(257)] }), "s.properties.a.enum[0]"),
        (
            json!({ "type": "object", "properties": { "x": {} }, "required": ["y"] }),
            "s.properties.a.required[0]",
        ),
        (
            json!({ "type": "object", "properties": { "x": {} }, "required": ["x", "x"] }),
            "s.properties.a.required[1]",
        ),
        (json!({ "type": "object", "properties": [] }), "s.properties.a.properties"),
        (json!({ "type": "object", "properties": { "x": true } }), "s.properties.a.properties.x"),
        (json!({ "type": "string", "minLength": 5, "maxLength": 4 }), "s.properties.a.minLength"),
        (json!({ "type": "string", "maxLength": 4_097 }), "s.properties.a.maxLength"),
        (json!({ "type": "array", "minItems": -1 }), "s.properties.a.minItems"),
        (json!({ "type": "integer", "minimum": 5, "maximum": 4 }), "s.properties.a.minimum"),
        (json!({ "type": "integer", "minimum": 1.2, "maximum": 1.8 }), "s.properties.a.minimum"),
        (
            json!({ "type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2 }),
            "s.properties.a.exclusiveMinimum",
        ),
        (
            json!({ "type": "number", "exclusiveMinimum": 1, "maximum": 1 }),
            "s.properties.a.exclusiveMinimum",
        ),
        (json!({ "type": "number", "minimum": 1e300 }), "s.properties.a.minimum"),
        (json!({ "type": "number", "minimum": "1" }), "s.properties.a.minimum"),
        (json!({ "type": "string", "description": 1 }), "s.properties.a.description"),
        (json!([]), "s.properties.a"),
    ] {
        assert_eq!(refusal(&of(&given)).field, field, "{given}");
    }
    for (schema, field) in [
        (json!([]), "s"),
        (json!({ "type": "array", "items": {} }), "s.type"),
        (json!({ "anyOf": [{ "type": "object" }, { "type": "null" }] }), "s.type"),
        (json!({ "$defs": [] }), "s.$defs"),
        (
            json!({ "$defs": { "A": { "type": "object", "properties": { "a": { "$ref": "#/$defs/A" } } } },
            "$ref": "#/$defs/A" }),
            "s.$ref(#/$defs/A).properties.a.$ref",
        ),
    ] {
        assert_eq!(refusal(&schema).field, field, "{schema}");
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
    assert_eq!(
        Schema::of("s", &spaced).map(|schema| schema.text().to_owned()),
        Ok(text.to_owned())
    );
    let keys: Vec<_> = form(&serde_json::from_str(text).unwrap())["properties"]
        .as_object()
        .map(|it| it.keys().cloned().collect())
        .unwrap_or_default();
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
    for vector in vectors_of("wrongSchemas") {
        assert_eq!(refusal(&vector["schema"]).field, text_of(&vector, "field"), "{vector}");
    }
}
