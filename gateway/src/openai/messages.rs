//! The messages of a request, as the envelope has them.

use agent::methods::MESSAGES_MAX;
use serde_json::{Map, Value, json};

use super::calls;
use super::fault::ApiFault;
use super::request::{object, short};

/// What a message may have besides and that says nothing to a model here: clients send back what they
/// were answered.
const PASSED_OVER: &[&str] = &["name", "refusal", "annotations", "audio", "function_call"];

/// Reads the member `messages`.
pub(super) fn read(given: &Value) -> Result<Value, ApiFault> {
    let Some(list) = given.as_array().filter(|list| !list.is_empty()) else {
        let message = "messages: expected an array of at least one message";
        return Err(ApiFault::parameter("messages", message));
    };
    // Before any is looked at: a body can hold a hundred thousand of them.
    if list.len() > MESSAGES_MAX {
        let got = list.len();
        let message = format!("messages: expected at most {MESSAGES_MAX} messages, got {got}");
        return Err(ApiFault::parameter("messages", message));
    }
    let read = |(place, value)| message(&format!("messages[{place}]"), value);
    let read: Vec<Value> = list.iter().enumerate().map(read).collect::<Result<_, _>>()?;
    calls::check(&read)?;
    Ok(Value::Array(read))
}

fn message(param: &str, value: &Value) -> Result<Value, ApiFault> {
    let given = object(param, value)?;
    let role = given.get("role").and_then(Value::as_str).unwrap_or_default();
    let role = match role {
        "developer" | "system" => "system",
        "user" | "assistant" | "tool" => role,
        _ => {
            let param = format!("{param}.role");
            let got = given.get("role").map_or_else(|| "nothing".to_owned(), Value::to_string);
            let message = format!(
                "{param}: expected system, developer, user, assistant or tool, got {}",
                short(&got)
            );
            return Err(ApiFault::parameter(param, message));
        }
    };
    check_members(param, role, given)?;
    let calls = match given.get("tool_calls") {
        None | Some(Value::Null) => Vec::new(),
        Some(calls) => tool_calls(&format!("{param}.tool_calls"), calls)?,
    };
    let content = content(&format!("{param}.content"), given.get("content"), !calls.is_empty())?;
    let mut read = Map::new();
    read.insert("role".to_owned(), json!(role));
    read.insert("content".to_owned(), json!(content));
    if !calls.is_empty() {
        read.insert("toolCalls".to_owned(), Value::Array(calls));
    }
    if role == "tool" {
        let param = format!("{param}.tool_call_id");
        let id = given.get("tool_call_id").and_then(Value::as_str).ok_or_else(|| {
            ApiFault::parameter(param.clone(), format!("{param}: expected the id of a call"))
        })?;
        read.insert("toolCallId".to_owned(), json!(id));
    }
    Ok(Value::Object(read))
}

fn check_members(param: &str, role: &str, given: &Map<String, Value>) -> Result<(), ApiFault> {
    for (name, value) in given {
        let is_known = match name.as_str() {
            "role" | "content" => true,
            "tool_calls" => role == "assistant" || value.is_null(),
            "tool_call_id" => role == "tool" || value.is_null(),
            // An answer with sound cannot be given back as text.
            "audio" | "function_call" => value.is_null(),
            name => PASSED_OVER.contains(&name),
        };
        if !is_known {
            let param = format!("{param}.{name}");
            let message = format!("{param}: a message of role {role} cannot have this member");
            return Err(ApiFault::parameter(param, message));
        }
    }
    Ok(())
}

/// The text of a message: a text, or parts that are texts.
fn content(param: &str, given: Option<&Value>, has_calls: bool) -> Result<String, ApiFault> {
    match given {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().enumerate();
            texts.map(|(place, it)| part(&format!("{param}[{place}]"), it)).collect()
        }
        None | Some(Value::Null) if has_calls => Ok(String::new()),
        None | Some(_) => {
            let got = given.map_or_else(|| "nothing".to_owned(), Value::to_string);
            let message = format!("{param}: expected a string or text parts, got {}", short(&got));
            Err(ApiFault::parameter(param, message))
        }
    }
}

fn part(param: &str, value: &Value) -> Result<String, ApiFault> {
    let given = object(param, value)?;
    let kind = given.get("type").and_then(Value::as_str).unwrap_or_default();
    let text = match kind {
        "text" => given.get("text"),
        "refusal" => given.get("refusal"),
        _ => {
            let param = format!("{param}.type");
            let message = format!("{param}: only parts of type text are supported, got {kind:?}");
            return Err(ApiFault::unsupported(param, message));
        }
    };
    text.and_then(Value::as_str).map(str::to_owned).ok_or_else(|| {
        let param = format!("{param}.{kind}");
        ApiFault::parameter(param.clone(), format!("{param}: expected a string"))
    })
}

fn tool_calls(param: &str, given: &Value) -> Result<Vec<Value>, ApiFault> {
    let Some(list) = given.as_array() else {
        return Err(ApiFault::parameter(param, format!("{param}: expected an array of calls")));
    };
    let read = |(place, value)| tool_call(&format!("{param}[{place}]"), value);
    list.iter().enumerate().map(read).collect()
}

fn tool_call(param: &str, value: &Value) -> Result<Value, ApiFault> {
    let given = object(param, value)?;
    let member = |name: &str, value: Option<&Value>| {
        let param = format!("{param}.{name}");
        value.and_then(Value::as_str).map(str::to_owned).ok_or_else(|| {
            ApiFault::parameter(param.clone(), format!("{param}: expected a string"))
        })
    };
    let id = member("id", given.get("id"))?;
    let function =
        object(&format!("{param}.function"), given.get("function").unwrap_or(&Value::Null))?;
    let name = member("function.name", function.get("name"))?;
    let written = member("function.arguments", function.get("arguments"))?;
    let written = if written.trim().is_empty() { "{}" } else { written.as_str() };
    let arguments: Map<String, Value> = serde_json::from_str(written).map_err(|error| {
        let param = format!("{param}.function.arguments");
        let message = format!("{param}: expected a JSON object in a string: {error}");
        ApiFault::parameter(param, message)
    })?;
    Ok(json!({ "id": id, "name": name, "arguments": arguments }))
}
