//! Methods that an agent has defined itself.

use serde_json::{Value, json};
use types::abi::Method;

use super::super::{Form, Inference};
use super::model_access::{ModelAccess, Stopped, instructions, message};
use super::tools::OwnTools;
use super::values::{self, Detail};
use crate::messages::{Constraint, Message, Role, ToolCall};
use crate::tools::canonical_json;

/// Answers a call: the encoded outputs.
pub(super) fn answer(
    method: &Method,
    arguments: Vec<Value>,
    access: &mut ModelAccess<'_, '_>,
) -> Result<Vec<u8>, Stopped> {
    let is_text = values::is_text(&method.outputs);
    if !is_text && !values::have_room(&method.outputs) {
        return Err(Stopped::failure("the outputs have more values than an answer has tokens"));
    }
    let tools = access.tools()?;
    let mut conversation = question(method, arguments, access);
    let output_tokens_max = access.settings.max_output_tokens;
    let said = use_tools(&mut conversation, &tools, is_text, access)?;
    let written = if let Some(text) = said {
        json!([text]).to_string()
    } else if is_text {
        let form = Form::Plain(Constraint::Free);
        let (inference, _) = access.ask(&conversation, &form, output_tokens_max)?;
        json!([inference.text]).to_string()
    } else {
        let form = Form::Schema(values::schema(&method.outputs, Detail::Held));
        let (inference, used) = access.ask(&conversation, &form, output_tokens_max)?;
        if inference.is_cut {
            let why = format!("the model's answer was cut off after {used} tokens");
            return Err(Stopped::Failure(why));
        }
        inference.text
    };
    method.encode_answer(&written).map_err(|error| {
        Stopped::Failure(format!("the model's answer is not the method's: {error}"))
    })
}

/// What the model reads first.
fn question(method: &Method, arguments: Vec<Value>, access: &ModelAccess<'_, '_>) -> Vec<Message> {
    let description = access.describe(method);
    let about = if description.is_empty() {
        String::new()
    } else {
        format!("Method {}: {description}", method.name)
    };
    let system = instructions(&[&access.settings.base_prompt, &about]);
    let text = match arguments.as_slice() {
        [Value::String(text)] if values::is_text(&method.inputs) => text.clone(),
        _ => canonical_json(&values::by_name(&method.inputs, arguments)),
    };
    system.into_iter().chain([message(Role::User, text)]).collect()
}

/// Lets the model call tools, round after round, as long as it wants to and may; the text with which it
/// ends, where a text is wanted and it gives one.
fn use_tools(
    conversation: &mut Vec<Message>,
    tools: &OwnTools,
    is_text: bool,
    access: &mut ModelAccess<'_, '_>,
) -> Result<Option<String>, Stopped> {
    if tools.specs().is_empty() {
        return Ok(None);
    }
    let specs = tools.specs().to_vec();
    let form = if is_text { Form::Tools(specs) } else { Form::Call(specs) };
    let output_tokens_max = access.settings.max_output_tokens;
    for round in 0..=access.settings.max_iterations {
        let (inference, _) = access.ask(conversation, &form, output_tokens_max)?;
        let Inference { text, tool_calls, is_cut, .. } = inference;
        if tool_calls.is_empty() {
            // The beginning of a call is no answer.
            let is_call = is_cut && text.trim_start().starts_with(infer::CALL_START);
            return Ok((is_text && !is_call).then_some(text));
        }
        if round == access.settings.max_iterations {
            break;
        }
        let ids = (conversation.len()..).map(|number| format!("call_{number}"));
        let calls: Vec<_> = ids.zip(tool_calls).map(|(id, call)| ToolCall { id, ..call }).collect();
        let results = access.call(tools, &calls)?;
        let answered = calls.iter().map(|call| Some(call.id.clone())).zip(results);
        let results: Vec<_> = answered
            .map(|(tool_call_id, text)| Message { tool_call_id, ..message(Role::Tool, text) })
            .collect();
        conversation.push(Message { tool_calls: calls, ..message(Role::Assistant, text) });
        conversation.extend(results);
    }
    Ok(None)
}
