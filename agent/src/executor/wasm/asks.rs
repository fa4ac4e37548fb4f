//! What a program asks the host for, in JSON.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use types::Hash;

use super::end::End;
use super::fuel::WORK_FUEL;
use super::imports::Import;
use crate::executor::{Agent, Form, Scope, Verdict};
use crate::messages::{Constraint, Message, Role};
use crate::methods::{ALLOWED_VALUE_BYTES_MAX, ALLOWED_VALUES_BYTES_MAX, Schema};
use crate::tools::canonical_json;

/// The most bytes of a line for the receipt, and of the reason of a failure.
const LINE_BYTES_MAX: usize = 1_024;
/// The most lines.
const LINES_MAX: u32 = 1_000;
/// The most questions, calls of tools and calls of agents together.
const WORKS_MAX: u32 = 1_000;
/// The most tokens of an answer of the model.
const OUTPUT_TOKENS_MAX: u32 = 4_096;
/// The most texts of which the model may have to choose one.
const CHOICES_MAX: usize = 64;
/// The most bytes of one of them, and of all of them, as of the allowed values of requests.
const CHOICE_BYTES_MAX: usize = ALLOWED_VALUE_BYTES_MAX;
const CHOICES_BYTES_MAX: usize = ALLOWED_VALUES_BYTES_MAX;

/// What a program has asked for.
#[derive(Debug, Default)]
pub(super) struct Counts {
    lines: u32,
    works: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Infer {
    #[serde(default)]
    system: String,
    prompt: String,
    max_output_tokens: u32,
    schema: Option<Value>,
    choices: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tool {
    name: String,
    arguments: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nested {
    agent: String,
    version: String,
    payload: String,
}

/// Answers; nothing for a function without a result.
pub(super) fn answer(
    import: Import,
    asked: &[u8],
    agent: &Agent,
    scope: &mut Scope<'_>,
    counts: &mut Counts,
) -> Result<Option<Vec<u8>>, End> {
    if matches!(import, Import::Infer | Import::Tool | Import::Agent) {
        counts.works = counts.works.saturating_add(1);
        if counts.works > WORKS_MAX {
            let text = format!("more than {WORKS_MAX} calls of infer, tool and agent");
            return Err(End::Failure(text));
        }
        scope.burn(WORK_FUEL)?;
    }
    let answer = match import {
        Import::Fail => return Err(End::Failure(line(import, asked)?.to_owned())),
        Import::Log => {
            let line = line(import, asked)?;
            counts.lines = counts.lines.saturating_add(1);
            if counts.lines > LINES_MAX {
                return Err(End::Failure(format!("log: more than {LINES_MAX} lines")));
            }
            scope.log(line)?;
            return Ok(None);
        }
        Import::Context => context(agent, scope),
        Import::Infer => infer(parse(import, asked)?, agent, scope)?,
        Import::Tool => {
            let Tool { name, arguments } = parse(import, asked)?;
            let (ok, content) = scope.tool(agent, &name, &arguments)?;
            json!({ "ok": ok, "content": content })
        }
        Import::Agent => nested(&parse(import, asked)?, agent, scope)?,
    };
    Ok(Some(canonical_json(&answer).into_bytes()))
}

fn context(agent: &Agent, scope: &Scope<'_>) -> Value {
    let context = scope.context();
    json!({
        "callId": context.call_id,
        "agentId": agent.id,
        "version": agent.metadata.version.as_str(),
        "requester": context.requester,
    })
}

fn infer(ask: Infer, agent: &Agent, scope: &mut Scope<'_>) -> Result<Value, End> {
    let Some(manifest) = agent.metadata.executor.manifest() else {
        return Err("infer: the agent's metadata name no model".into());
    };
    let Infer { system, prompt, max_output_tokens, schema, choices } = ask;
    if !(1..=OUTPUT_TOKENS_MAX).contains(&max_output_tokens) {
        let text = format!("infer: maxOutputTokens is none of 1 to {OUTPUT_TOKENS_MAX}");
        return Err(End::Failure(text));
    }
    let form = match (schema, choices) {
        (None, None) => Form::Plain(Constraint::Free),
        (Some(schema), None) => Form::Schema(held(&schema)?),
        (None, Some(choices)) => {
            check_choices(&choices)?;
            Form::Plain(Constraint::OneOf(choices))
        }
        (Some(_), Some(_)) => return Err("infer: both schema and choices".into()),
    };
    let say = |role, text| Message { role, text, tool_calls: Vec::new(), tool_call_id: None };
    let mut messages = Vec::new();
    if !system.is_empty() {
        messages.push(say(Role::System, system));
    }
    messages.push(say(Role::User, prompt));
    let before = scope.left();
    let answer = scope.infer(manifest, &messages, &form, max_output_tokens)?;
    let (text, is_cut) = answer.map_err(|why| End::Failure(format!("infer: {why}")))?;
    let after = scope.left();
    Ok(json!({
        "text": text,
        "inputTokens": before.input_tokens.saturating_sub(after.input_tokens),
        "outputTokens": before.output_tokens.saturating_sub(after.output_tokens),
        "finish": if is_cut { "length" } else { "stop" },
    }))
}

fn check_choices(choices: &[String]) -> Result<(), End> {
    if !(1..=CHOICES_MAX).contains(&choices.len()) {
        return Err(End::Failure(format!("infer: choices are none of 1 to {CHOICES_MAX}")));
    }
    if !choices.iter().all(|text| (1..=CHOICE_BYTES_MAX).contains(&text.len())) {
        let text = format!("infer: a choice is empty or longer than {CHOICE_BYTES_MAX} bytes");
        return Err(End::Failure(text));
    }
    let bytes = choices.iter().map(String::len).fold(0, usize::saturating_add);
    if bytes > CHOICES_BYTES_MAX {
        let text = format!("infer: choices have more than {CHOICES_BYTES_MAX} bytes");
        return Err(End::Failure(text));
    }
    Ok(())
}

/// The one form of a schema, to which a model is held. A schema of a stranger must keep the rules of those
/// of requests: what holds a model to a schema may need more memory and stack than there are for one that
/// does not.
fn held(schema: &Value) -> Result<Value, End> {
    let form = Schema::form_of_any("schema", &schema.to_string());
    form.map_err(|_refused| "infer: the schema breaks a rule for schemas".into())
}

fn nested(ask: &Nested, agent: &Agent, scope: &mut Scope<'_>) -> Result<Value, End> {
    let id = Hash::parse(&ask.agent).map_err(|_error| malformed(Import::Agent))?;
    let payload = ask.payload.strip_prefix("0x").and_then(|hex| const_hex::decode(hex).ok());
    let payload = payload.ok_or_else(|| malformed(Import::Agent))?;
    let nested = scope.agent(agent, &id, &ask.version, &payload)?;
    let nested = nested.map_err(|why| End::Failure(format!("agent: {why}")))?;
    Ok(match nested.verdict {
        Verdict::Success(result) => {
            json!({ "outcome": "success", "result": const_hex::encode_prefixed(result) })
        }
        Verdict::Failure(reason) => {
            json!({ "outcome": "failure", "result": "0x", "reason": reason })
        }
    })
}

fn parse<'a, T: Deserialize<'a>>(import: Import, asked: &'a [u8]) -> Result<T, End> {
    serde_json::from_slice(asked).map_err(|_error| malformed(import))
}

fn malformed(import: Import) -> End {
    End::Failure(format!("{}: what is asked is no JSON of its form", import.as_str()))
}

fn line(import: Import, asked: &[u8]) -> Result<&str, End> {
    let name = import.as_str();
    if asked.len() > LINE_BYTES_MAX {
        return Err(End::Failure(format!("{name}: more than {LINE_BYTES_MAX} bytes")));
    }
    std::str::from_utf8(asked).map_err(|_error| End::Failure(format!("{name}: no UTF-8")))
}
