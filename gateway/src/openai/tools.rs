//! Functions, the choice between them, and the form of an answer, as the envelope has them.

use std::collections::BTreeSet;

use agent::methods::DECLARED_MAX;
use serde_json::{Map, Value, json};

use super::fault::ApiFault;
use super::request::{object, short};

/// Reads the member `tools`.
pub(super) fn functions(given: Option<&Value>) -> Result<Vec<Value>, ApiFault> {
    let Some(given) = given.filter(|it| !it.is_null()) else { return Ok(Vec::new()) };
    let Some(list) = given.as_array() else {
        return Err(ApiFault::parameter("tools", "tools: expected an array of functions"));
    };
    // Before any is looked at: a body can hold a hundred thousand of them.
    if list.len() > DECLARED_MAX {
        let got = list.len();
        let message = format!("tools: expected at most {DECLARED_MAX} functions, got {got}");
        return Err(ApiFault::parameter("tools", message));
    }
    let (mut functions, mut names) = (Vec::with_capacity(list.len()), BTreeSet::new());
    for (place, value) in list.iter().enumerate() {
        let (name, read) = function(&format!("tools[{place}]"), value)?;
        if !names.insert(name) {
            let param = format!("tools[{place}].function.name");
            let message = format!("{param}: another function has this name");
            return Err(ApiFault::parameter(param, message));
        }
        functions.push(read);
    }
    Ok(functions)
}

/// Whether a choice forces a call, so that the answer is no text.
pub(super) fn forces(choice: &Value) -> bool {
    choice.is_object() || choice == "required"
}

/// The most bytes of a function's name (docs/agent-methods.md section 13).
const NAME_BYTES_MAX: usize = 64;

fn check_name(param: &str, name: &str) -> Result<(), ApiFault> {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_');
    if name.len() <= NAME_BYTES_MAX && name.bytes().all(is_plain) {
        return Ok(());
    }
    let message =
        format!("{param}: expected at most {NAME_BYTES_MAX} of a-z, A-Z, 0-9, '-' and '_'");
    Err(ApiFault::parameter(param, message))
}

/// A function and its name.
fn function(param: &str, value: &Value) -> Result<(String, Value), ApiFault> {
    let tool = object(param, value)?;
    let kind = tool.get("type").and_then(Value::as_str).unwrap_or("function");
    if kind != "function" {
        let param = format!("{param}.type");
        let message = format!("{param}: only functions can be offered, got {kind:?}");
        return Err(ApiFault::unsupported(param, message));
    }
    let param = format!("{param}.function");
    let given = object(&param, tool.get("function").unwrap_or(&Value::Null))?;
    for name in given.keys() {
        if !matches!(name.as_str(), "name" | "description" | "parameters" | "strict") {
            let param = format!("{param}.{name}");
            return Err(ApiFault::parameter(
                param.clone(),
                format!("{param}: a function cannot have this member"),
            ));
        }
    }
    let name = needed_text(&format!("{param}.name"), given.get("name"))?;
    check_name(&format!("{param}.name"), &name)?;
    let description = optional_text(&format!("{param}.description"), given.get("description"))?;
    let parameters = match given.get("parameters") {
        None | Some(Value::Null) => json!({ "type": "object", "properties": {} }),
        Some(schema) => Value::Object(object(&format!("{param}.parameters"), schema)?.clone()),
    };
    let description = description.unwrap_or_default();
    let read = json!({ "name": name, "description": description, "parameters": parameters });
    Ok((name, read))
}

/// Reads the member `tool_choice`.
pub(super) fn choice(given: Option<&Value>, functions: &[Value]) -> Result<Value, ApiFault> {
    let wrong =
        |message: &str| ApiFault::parameter("tool_choice", format!("tool_choice: {message}"));
    let choice = match given {
        None | Some(Value::Null) => return Ok(json!("auto")),
        Some(Value::String(word)) if matches!(word.as_str(), "auto" | "none") => {
            return Ok(json!(word));
        }
        Some(Value::String(word)) if word == "required" => json!(word),
        Some(Value::Object(object)) => named(object)
            .ok_or_else(|| wrong("expected {\"type\":\"function\",\"function\":{\"name\":…}}"))?,
        Some(other) => {
            let got = short(&other.to_string());
            return Err(wrong(&format!("expected auto, none, required or a function, got {got}")));
        }
    };
    if functions.is_empty() {
        return Err(wrong("a function call is required, but tools has no function"));
    }
    if let Some(name) = choice.get("name")
        && !functions.iter().any(|function| function.get("name") == Some(name))
    {
        return Err(wrong(&format!("tools has no function {name}")));
    }
    Ok(choice)
}

fn named(object: &Map<String, Value>) -> Option<Value> {
    let is_function = object.get("type").and_then(Value::as_str) == Some("function");
    let name = object.get("function")?.get("name")?.as_str()?;
    is_function.then(|| json!({ "name": name }))
}

/// Reads the member `response_format`: the form of the answer, if it has one.
pub(super) fn response_schema(given: Option<&Value>) -> Result<Option<Value>, ApiFault> {
    const PARAM: &str = "response_format";
    let Some(given) = given.filter(|it| !it.is_null()) else { return Ok(None) };
    let given = object(PARAM, given)?;
    match given.get("type").and_then(Value::as_str) {
        Some("text") => Ok(None),
        Some("json_object") => Ok(Some(json!({ "schema": { "type": "object" } }))),
        Some("json_schema") => {
            let param = format!("{PARAM}.json_schema");
            let form = object(&param, given.get("json_schema").unwrap_or(&Value::Null))?;
            let schema = format!("{param}.schema");
            let schema = object(&schema, form.get("schema").unwrap_or(&Value::Null))?;
            let mut read = Map::new();
            if let Some(name) = optional_text(&format!("{param}.name"), form.get("name"))? {
                read.insert("name".to_owned(), json!(name));
            }
            read.insert("schema".to_owned(), Value::Object(schema.clone()));
            Ok(Some(Value::Object(read)))
        }
        Some(_) | None => {
            let message = "response_format.type: expected text, json_object or json_schema";
            Err(ApiFault::parameter("response_format.type", message))
        }
    }
}

fn needed_text(param: &str, value: Option<&Value>) -> Result<String, ApiFault> {
    let text = optional_text(param, value)?.filter(|text| !text.is_empty());
    text.ok_or_else(|| ApiFault::parameter(param, format!("{param} is missing; expected a string")))
}

fn optional_text(param: &str, value: Option<&Value>) -> Result<Option<String>, ApiFault> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => {
            let message = format!("{param}: expected a string, got {}", short(&other.to_string()));
            Err(ApiFault::parameter(param, message))
        }
    }
}
