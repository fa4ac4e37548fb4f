//! What `inferMessages` asks: messages, functions and schemas as chat programs have them
//! (docs/agent-methods.md section 13).

use std::collections::BTreeSet;

use types::json::{self, Json};
use types::text::Quoted;

use super::conversation::{self, CALL_ID_BYTES_MAX, MESSAGES_MAX};
use super::functions::{DESCRIPTION_BYTES_MAX, NAME_BYTES_MAX};
use super::members::{self, Members};
use super::path::Path;
use super::refused::{Refused, bytes_at_most, entries_at_most};
use super::schema::{Budget, Schema};
use crate::messages::{Message, Role, ToolCall, ToolSpec};

/// The most functions of a request.
pub const DECLARED_MAX: usize = 128;
/// The most texts in `stop`.
pub const STOPS_MAX: usize = 4;
/// The most bytes of one of them.
pub const STOP_BYTES_MAX: usize = 256;
/// The most that `maxOutputTokens` may be: more than any run puts out.
pub const OUTPUT_TOKENS_MAX: u32 = 100_000_000;

const TOKENS: &str = "an integer from 1 to 100000000";
const NAME: &str = "1 to 64 of [A-Za-z0-9_-]";

/// The arguments of `inferMessages`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Messages {
    /// The conversation.
    pub messages: Vec<Message>,
    /// Functions that the requester runs.
    pub functions: Vec<Declared>,
    /// Whether they are to be called.
    pub choice: ToolChoice,
    /// What the text of the answer must fit; none if any text will do.
    pub response_schema: Option<ResponseSchema>,
    /// The most tokens that the model may put out in the whole run.
    pub output_tokens_max: Option<u32>,
    /// Texts before the first of which the answer ends.
    pub stops: Vec<String>,
}

/// A function that a requester runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// What its arguments must fit.
    pub parameters: Schema,
}

/// Whether functions are to be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// No tool is called.
    None,
    /// At least one function is called.
    Required,
    /// This function is called.
    Function(String),
}

impl ToolChoice {
    /// Whether an answer without calls is none.
    #[must_use]
    pub const fn is_forced(&self) -> bool {
        matches!(self, Self::Required | Self::Function(_))
    }
}

/// What the text of an answer must fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseSchema {
    /// What the requester calls it.
    pub name: Option<String>,
    /// The schema.
    pub schema: Schema,
}

impl Declared {
    fn spec(&self) -> ToolSpec {
        let Self { name, description, parameters } = self;
        let (name, description) = (name.clone(), description.clone());
        ToolSpec { name, description, parameters: parameters.form().clone() }
    }
}

impl Messages {
    /// The functions that the model is offered: only those that the choice allows.
    #[must_use]
    pub fn offered(&self) -> Vec<ToolSpec> {
        let allows = |name: &str| match &self.choice {
            ToolChoice::Auto | ToolChoice::Required => true,
            ToolChoice::None => false,
            ToolChoice::Function(only) => only == name,
        };
        self.functions.iter().filter(|it| allows(&it.name)).map(Declared::spec).collect()
    }

    /// The function of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Declared> {
        self.functions.iter().find(|function| function.name == name)
    }

    /// Reads the arguments.
    pub(super) fn read(args: &Members<'_, '_, '_>) -> Result<Self, Refused> {
        let mut budget = Budget::whole();
        let functions = each(args, "functions", |path, item| {
            let object = Members::of(item, path)?.only(&["name", "description", "parameters"])?;
            let parameters = object.value("parameters", "a JSON schema")?;
            Ok(Declared {
                name: object.text("name")?.to_owned(),
                description: object.text("description")?.to_owned(),
                parameters: Schema::read_parameters(
                    object.field("parameters"),
                    parameters,
                    &mut budget,
                )?,
            })
        })?;
        let response_schema = match args.has("responseSchema") {
            false => None,
            true => Some(read_response_schema(args, &mut budget)?),
        };
        let output_tokens_max = match args.has("maxOutputTokens") {
            false => None,
            true => Some(args.integer("maxOutputTokens", TOKENS)?),
        };
        Ok(Self {
            messages: each(args, "messages", read_message)?,
            functions,
            choice: read_choice(args)?,
            response_schema,
            output_tokens_max,
            stops: if args.has("stop") { args.texts("stop")? } else { Vec::new() },
        })
    }

    /// The rules that the types do not hold already.
    pub(super) fn check(&self) -> Result<(), Refused> {
        let Self { messages, functions, choice, response_schema, output_tokens_max, stops } = self;
        check_messages(messages)?;
        check_functions(functions)?;
        self.check_schemas()?;
        if let ToolChoice::Function(name) = choice
            && self.find(name).is_none()
        {
            return Err(Refused::new("args.toolChoice.name", name, "the name of a function"));
        }
        if *choice == ToolChoice::Required && functions.is_empty() {
            return Err(Refused::new(
                "args.toolChoice",
                "required",
                "functions that can be called",
            ));
        }
        if let Some(ResponseSchema { name, schema: _ }) = response_schema {
            if let Some(name) = name {
                check_name("args.responseSchema.name", name)?;
            }
            if choice.is_forced() {
                let expected = "no schema of an answer where calls are forced by toolChoice";
                return Err(Refused::new("args.responseSchema", "a schema", expected));
            }
            if !stops.is_empty() {
                let expected = "none beside responseSchema, whose JSON would be cut";
                return Err(Refused::new(
                    "args.stop",
                    format_args!("{} texts", stops.len()),
                    expected,
                ));
            }
        }
        if let Some(tokens) = output_tokens_max
            && !(1..=OUTPUT_TOKENS_MAX).contains(tokens)
        {
            return Err(Refused::new("args.maxOutputTokens", tokens, TOKENS));
        }
        entries_at_most("args.stop", stops.len(), STOPS_MAX)?;
        for (index, stop) in stops.iter().enumerate() {
            let path = format!("args.stop[{index}]");
            bytes_at_most(&path, stop, STOP_BYTES_MAX)?;
            if stop.is_empty() || stops.iter().take(index).any(|earlier| earlier == stop) {
                return Err(Refused::new(path, Quoted(stop), "some text, each once"));
            }
        }
        Ok(())
    }

    /// Checks what holds for all schemas together.
    fn check_schemas(&self) -> Result<(), Refused> {
        let response = self.response_schema.iter().map(|it| it.schema.cost());
        let costs = self.functions.iter().map(|it| it.parameters.cost()).chain(response);
        let left = costs.into_iter().try_fold(Budget::whole(), Budget::less);
        left.map(drop).ok_or_else(|| {
            let expected = "schemas that keep the limits for all of a request together";
            Refused::new("args.functions", "more", expected)
        })
    }

    /// The arguments in the order of docs/agent-methods.md section 3.
    pub(super) fn write(&self) -> String {
        let Self { messages, functions, choice, response_schema, output_tokens_max, stops } = self;
        let mut args = String::from("{}");
        members::append(&mut args, "messages", &list(messages.iter().map(message)));
        members::append(&mut args, "functions", &list(functions.iter().map(function)));
        members::append(&mut args, "toolChoice", &tool_choice(choice));
        if let Some(ResponseSchema { name, schema }) = response_schema {
            let mut object = String::from("{}");
            if let Some(name) = name {
                members::append(&mut object, "name", &quoted(name));
            }
            members::append(&mut object, "schema", schema.text());
            members::append(&mut args, "responseSchema", &object);
        }
        if let Some(tokens) = output_tokens_max {
            members::append(&mut args, "maxOutputTokens", &tokens.to_string());
        }
        if !stops.is_empty() {
            members::append(&mut args, "stop", &list(stops.iter().map(|stop| quoted(stop))));
        }
        args
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

fn quoted(text: &str) -> String {
    let mut out = String::new();
    json::write_string(text, &mut out);
    out
}

fn message(message: &Message) -> String {
    let Message { role, text, tool_calls, tool_call_id } = message;
    let mut object = String::from("{}");
    members::append(&mut object, "role", &quoted(conversation::role(*role)));
    members::append(&mut object, "content", &quoted(text));
    if !tool_calls.is_empty() {
        members::append(&mut object, "toolCalls", &calls(tool_calls));
    }
    if let Some(id) = tool_call_id {
        members::append(&mut object, "toolCallId", &quoted(id));
    }
    object
}

/// Calls as they stand in messages and in answers.
pub(super) fn calls(calls: &[ToolCall]) -> String {
    list(calls.iter().map(|call| {
        let mut out = String::new();
        conversation::write_call(call, &mut out);
        out
    }))
}

fn function(function: &Declared) -> String {
    let Declared { name, description, parameters } = function;
    let mut object = String::from("{}");
    members::append(&mut object, "name", &quoted(name));
    members::append(&mut object, "description", &quoted(description));
    members::append(&mut object, "parameters", parameters.text());
    object
}

fn tool_choice(choice: &ToolChoice) -> String {
    match choice {
        ToolChoice::Auto => quoted("auto"),
        ToolChoice::None => quoted("none"),
        ToolChoice::Required => quoted("required"),
        ToolChoice::Function(name) => format!("{{\"name\":{}}}", quoted(name)),
    }
}

/// The entries of an array, each read with its path.
fn each<'a, 'b, T>(
    object: &Members<'a, 'b, '_>,
    key: &str,
    mut read: impl FnMut(Path<'_>, &'a Json<'b>) -> Result<T, Refused>,
) -> Result<Vec<T>, Refused> {
    let (field, items) = (object.field(key), object.array(key)?);
    let mut all = Vec::with_capacity(items.len().min(MESSAGES_MAX));
    for (index, item) in items.iter().enumerate() {
        all.push(read(Path::Entry(&field, index), item)?);
    }
    Ok(all)
}

fn read_choice(args: &Members<'_, '_, '_>) -> Result<ToolChoice, Refused> {
    const EXPECTED: &str = "\"auto\", \"none\", \"required\" or {\"name\":…}";
    let value = args.value("toolChoice", EXPECTED)?;
    let field = args.field("toolChoice");
    match value {
        Json::String(word) => match word.as_ref() {
            "auto" => Ok(ToolChoice::Auto),
            "none" => Ok(ToolChoice::None),
            "required" => Ok(ToolChoice::Required),
            other => Err(Refused::new(field, Quoted(other), EXPECTED)),
        },
        Json::Object(_) => {
            let object = Members::of(value, field)?.only(&["name"])?;
            Ok(ToolChoice::Function(object.text("name")?.to_owned()))
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) => {
            Err(Refused::new(field, value.kind(), EXPECTED))
        }
    }
}

fn read_response_schema(
    args: &Members<'_, '_, '_>,
    budget: &mut Budget,
) -> Result<ResponseSchema, Refused> {
    let (field, value) = (args.field("responseSchema"), args.value("responseSchema", "an object")?);
    let object = Members::of(value, field)?.only(&["name", "schema"])?;
    let name = if object.has("name") { Some(object.text("name")?.to_owned()) } else { None };
    let schema = object.value("schema", "a JSON schema")?;
    Ok(ResponseSchema { name, schema: Schema::read(object.field("schema"), schema, budget)? })
}

/// `{"role":…,"content":…}`, with `toolCalls` or `toolCallId` where the role has them.
fn read_message(path: Path<'_>, item: &Json<'_>) -> Result<Message, Refused> {
    let object = Members::of(item, path)?;
    let (role, more): (Role, &[&str]) = match object.text("role")? {
        "system" => (Role::System, &["role", "content"]),
        "user" => (Role::User, &["role", "content"]),
        "assistant" => (Role::Assistant, &["role", "content", "toolCalls"]),
        "tool" => (Role::Tool, &["role", "content", "toolCallId"]),
        other => {
            let expected = "system, user, assistant or tool";
            return Err(Refused::new(object.field("role"), Quoted(other), expected));
        }
    };
    let object = object.only(more)?;
    let tool_calls =
        if object.has("toolCalls") { read_calls(&object, "toolCalls")? } else { Vec::new() };
    let tool_call_id =
        if role == Role::Tool { Some(conversation::read_id(&object, "toolCallId")?) } else { None };
    Ok(Message { role, text: object.text("content")?.to_owned(), tool_calls, tool_call_id })
}

/// `[{"id":…,"name":…,"arguments":{…}}]`
pub(super) fn read_calls(
    object: &Members<'_, '_, '_>,
    key: &str,
) -> Result<Vec<ToolCall>, Refused> {
    each(object, key, |path, item| {
        let call = Members::of(item, path)?.only(&["id", "name", "arguments"])?;
        let name = call.text("name")?;
        check_name(call.field("name"), name)?;
        Ok(ToolCall {
            id: conversation::read_id(&call, "id")?,
            name: name.to_owned(),
            arguments: call.map("arguments")?,
        })
    })
}

fn check_messages(messages: &[Message]) -> Result<(), Refused> {
    const FIELD: &str = "args.messages";
    for (index, message) in messages.iter().enumerate() {
        let Message { role, text: _, tool_calls, tool_call_id } = message;
        let path = format!("{FIELD}[{index}]");
        let calls_fit = tool_calls.is_empty() || *role == Role::Assistant;
        if !calls_fit || tool_call_id.is_some() != (*role == Role::Tool) {
            let got = format_args!("role {}", conversation::role(*role));
            let expected = "calls only from an assistant, and a call's id only with a result";
            return Err(Refused::new(path, got, expected));
        }
        for (place, call) in tool_calls.iter().enumerate() {
            let path = format!("{path}.toolCalls[{place}]");
            check_name(&format!("{path}.name"), &call.name)?;
            check_id(&format!("{path}.id"), &call.id)?;
        }
        if let Some(id) = tool_call_id {
            check_id(&format!("{path}.toolCallId"), id)?;
        }
    }
    conversation::check_answered(FIELD, messages)
}

fn check_functions(functions: &[Declared]) -> Result<(), Refused> {
    const FIELD: &str = "args.functions";
    entries_at_most(FIELD, functions.len(), DECLARED_MAX)?;
    let mut names = BTreeSet::new();
    for (index, Declared { name, description, parameters: _ }) in functions.iter().enumerate() {
        let path = format!("{FIELD}[{index}]");
        check_name(&format!("{path}.name"), name)?;
        bytes_at_most(&format!("{path}.description"), description, DESCRIPTION_BYTES_MAX)?;
        if !names.insert(name) {
            let got = format_args!("{name} twice");
            return Err(Refused::new(format!("{path}.name"), got, "functions of different names"));
        }
    }
    Ok(())
}

fn check_name<'p>(field: impl Into<Path<'p>>, name: &str) -> Result<(), Refused> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(Refused::new(field.into(), Quoted(name), NAME))
}

fn check_id(field: &str, id: &str) -> Result<(), Refused> {
    if (1..=CALL_ID_BYTES_MAX).contains(&id.len()) {
        return Ok(());
    }
    let got = format_args!("{} bytes", id.len());
    Err(Refused::new(field, got, format!("1 to {CALL_ID_BYTES_MAX} bytes")))
}

/// Where the first of some texts begins.
pub(crate) fn first_of(stops: &[String], text: &str) -> Option<usize> {
    stops.iter().filter_map(|stop| text.find(stop.as_str())).min()
}

/// What a model reads that is to answer with JSON.
pub(super) fn told(schema: &Schema) -> String {
    if schema.is_open() {
        return "Answer with one JSON object, and with nothing else.".to_owned();
    }
    let mut text = String::from("Answer with JSON that fits this schema, and with nothing else:\n");
    text.push_str(&schema.form().to_string());
    text
}

/// The text of a code fence, or the text itself.
pub(super) fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inner.map_or(text, |inner| inner.strip_prefix("json").unwrap_or(inner).trim())
}

#[cfg(test)]
pub(super) mod tests;
