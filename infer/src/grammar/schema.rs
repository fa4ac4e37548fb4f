//! JSON schemas as rules of a grammar.

use serde_json::{Value, json};

/// The library's own settings within a schema.
const SETTINGS: &str = "x-guidance";

/// The rule for JSON of this schema, in one written form as far as that is decided here: no white
/// space, members in the schema's order, none that it does not name.
pub(super) fn rule(schema: &Value) -> String {
    let mut schema = schema.clone();
    close(&mut schema);
    if let Value::Bool(true) = schema {
        schema = json!({});
    }
    if let Value::Object(members) = &mut schema {
        members.insert(SETTINGS.to_owned(), json!({ "whitespace_flexible": false }));
    }
    format!("%json {schema}")
}

/// Forbids members that are not named, wherever members are named and the schema does not say.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for member in members.values_mut() {
                close(member);
            }
            // A member may itself be called `properties`; then its value is a schema, and so a text
            // of a type, a list or an object with one of these words.
            let names_members = members.get("properties").is_some_and(Value::is_object);
            let is_of_objects = members.get("type").is_none_or(|kind| kind == "object");
            if names_members && is_of_objects && !members.contains_key("additionalProperties") {
                members.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
