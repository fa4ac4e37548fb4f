//! `POST /v1/chat/completions`: the body.

use serde_json::{Map, Value, json};

use super::fault::ApiFault;
use super::{messages, tools};

/// The most sequences that end an answer.
const STOPS_MAX: usize = 4;

/// What may stand in a body and has no effect here.
const IGNORED: &[&str] = &[
    "temperature",
    "top_p",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "user",
    "metadata",
    "store",
    "parallel_tool_calls",
    "reasoning_effort",
    "service_tier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "verbosity",
];

/// What is asked of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatRequest {
    /// The model's name.
    pub model: String,
    /// The member `args` of the envelope (docs/agent-methods.md), without `maxOutputTokens`.
    pub args: Map<String, Value>,
    /// The most tokens of the answer, if that is limited.
    pub output_tokens_max: Option<u64>,
    /// The parameter that limits them.
    pub output_tokens_param: &'static str,
    /// Whether the answer is a stream.
    pub is_stream: bool,
    /// Whether the stream tells its cost in a chunk of its own.
    pub includes_usage: bool,
    /// Parameters that were given and have no effect.
    pub ignored: Vec<&'static str>,
}

/// Reads a body.
///
/// # Errors
/// The first parameter that cannot be honoured.
pub fn parse(body: &[u8]) -> Result<ChatRequest, ApiFault> {
    let body: Value = serde_json::from_slice(body)
        .map_err(|error| ApiFault::malformed(format!("the body is not JSON: {error}")))?;
    let Value::Object(body) = body else {
        return Err(ApiFault::malformed("the body is JSON but not an object".to_owned()));
    };
    for name in body.keys() {
        check_name(name)?;
    }
    let is_given = |name: &&&str| body.get(**name).is_some_and(|value| !value.is_null());
    let ignored = IGNORED.iter().filter(is_given).copied().collect();
    check_unsupported(&body)?;
    let model = text(&body, "model")?.ok_or_else(|| missing("model"))?;
    let is_stream = flag(&body, "stream")?;
    let includes_usage = stream_options(&body, is_stream)?;
    let mut args = Map::new();
    let given = body.get("messages").ok_or_else(|| missing("messages"))?;
    args.insert("messages".to_owned(), messages::read(given)?);
    let functions = tools::functions(body.get("tools"))?;
    let choice = tools::choice(body.get("tool_choice"), &functions)?;
    args.insert("functions".to_owned(), Value::Array(functions));
    let schema = tools::response_schema(body.get("response_format"))?;
    let stop = stop(body.get("stop"))?;
    if schema.is_some() && (tools::forces(&choice) || stop.is_some()) {
        let message = "response_format cannot be combined with a tool_choice that forces a call, \
                       or with stop";
        return Err(ApiFault::parameter("response_format", message));
    }
    args.insert("toolChoice".to_owned(), choice);
    args.extend(schema.map(|schema| ("responseSchema".to_owned(), schema)));
    args.extend(stop.map(|stop| ("stop".to_owned(), stop)));
    let (output_tokens_param, output_tokens_max) = output_tokens_max(&body)?;
    Ok(ChatRequest {
        model,
        args,
        output_tokens_max,
        output_tokens_param,
        is_stream,
        includes_usage,
        ignored,
    })
}

/// Names of parameters that are read.
const READ: &[&str] = &[
    "model",
    "messages",
    "tools",
    "tool_choice",
    "response_format",
    "max_tokens",
    "max_completion_tokens",
    "stop",
    "stream",
    "stream_options",
];

/// Parameters of other interfaces, and the only values that change nothing.
const NEUTRAL: &[(&str, &[&str])] = &[
    ("n", &["1"]),
    ("logprobs", &["false"]),
    ("top_logprobs", &["0"]),
    ("modalities", &[r#"["text"]"#]),
    ("audio", &[]),
    ("prediction", &[]),
    ("web_search_options", &[]),
    ("functions", &[]),
    ("function_call", &[]),
    ("best_of", &["1"]),
    ("suffix", &[]),
    ("echo", &["false"]),
];

fn check_name(name: &str) -> Result<(), ApiFault> {
    let is_known = READ.contains(&name)
        || IGNORED.contains(&name)
        || NEUTRAL.iter().any(|(neutral, _)| *neutral == name);
    if is_known { Ok(()) } else { Err(ApiFault::unknown_parameter(name)) }
}

fn check_unsupported(body: &Map<String, Value>) -> Result<(), ApiFault> {
    for (name, neutral) in NEUTRAL {
        let Some(value) = body.get(*name).filter(|value| !value.is_null()) else { continue };
        let written = value.to_string();
        if !neutral.contains(&written.as_str()) {
            let may = match neutral {
                [] => "this gateway does not support it".to_owned(),
                only => format!("expected {}", only.join(" or ")),
            };
            let message = format!("{name}: {may}, got {}", short(&written));
            return Err(ApiFault::unsupported(*name, message));
        }
    }
    Ok(())
}

fn stream_options(body: &Map<String, Value>, is_stream: bool) -> Result<bool, ApiFault> {
    let Some(given) = body.get("stream_options").filter(|it| !it.is_null()) else {
        return Ok(false);
    };
    if !is_stream {
        let message = "stream_options: only allowed when stream is true";
        return Err(ApiFault::parameter("stream_options", message));
    }
    let options = object("stream_options", given)?;
    for (name, value) in options {
        let is_known = matches!(name.as_str(), "include_usage" | "include_obfuscation");
        if !is_known || !(value.is_boolean() || value.is_null()) {
            let param = format!("stream_options.{name}");
            let message = format!("{param}: expected include_usage, true or false");
            return Err(ApiFault::parameter(param, message));
        }
    }
    Ok(options.get("include_usage") == Some(&Value::Bool(true)))
}

/// The most tokens of the answer, and the parameter that says so. `max_tokens` is the older name.
fn output_tokens_max(body: &Map<String, Value>) -> Result<(&'static str, Option<u64>), ApiFault> {
    const NAMES: [&str; 2] = ["max_completion_tokens", "max_tokens"];
    let mut most = None;
    for name in NAMES {
        let Some(value) = body.get(name).filter(|value| !value.is_null()) else { continue };
        let tokens = value.as_u64().filter(|tokens| *tokens > 0).ok_or_else(|| {
            let written = short(&value.to_string());
            let message =
                format!("{name}: expected a whole number from 1 to 2^64-1, got {written}");
            ApiFault::parameter(name, message)
        })?;
        most = most.or(Some((name, tokens)));
    }
    Ok(most.map_or((NAMES[0], None), |(name, tokens)| (name, Some(tokens))))
}

fn stop(given: Option<&Value>) -> Result<Option<Value>, ApiFault> {
    let wrong = || {
        let message =
            format!("stop: expected a string or 1 to {STOPS_MAX} of them, none of them empty");
        ApiFault::parameter("stop", message)
    };
    let stops = match given {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => vec![text.as_str()],
        Some(Value::Array(texts)) => {
            texts.iter().map(|it| it.as_str().ok_or_else(wrong)).collect::<Result<_, _>>()?
        }
        Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => return Err(wrong()),
    };
    if stops.is_empty() || stops.len() > STOPS_MAX || stops.iter().any(|it| it.is_empty()) {
        return Err(wrong());
    }
    Ok(Some(json!(stops)))
}

fn text(body: &Map<String, Value>, name: &str) -> Result<Option<String>, ApiFault> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => {
            let message = format!("{name}: expected a string, got {}", short(&other.to_string()));
            Err(ApiFault::parameter(name, message))
        }
    }
}

fn flag(body: &Map<String, Value>, name: &str) -> Result<bool, ApiFault> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => {
            let written = short(&other.to_string());
            let message = format!("{name}: expected true or false, got {written}");
            Err(ApiFault::parameter(name, message))
        }
    }
}

/// An object, or what it is instead.
pub(super) fn object<'a>(
    param: &str,
    value: &'a Value,
) -> Result<&'a Map<String, Value>, ApiFault> {
    value.as_object().ok_or_else(|| {
        let message = format!("{param}: expected an object, got {}", short(&value.to_string()));
        ApiFault::parameter(param, message)
    })
}

fn missing(param: &str) -> ApiFault {
    ApiFault::parameter(param, format!("{param} is missing"))
}

/// The most characters of a value that an error repeats.
const SHOWN_CHARS: usize = 80;

/// The beginning of a value, for an error.
pub(crate) fn short(written: &str) -> String {
    let mut text: String = written.chars().take(SHOWN_CHARS).collect();
    if text.len() < written.len() {
        text.push('…');
    }
    text
}
