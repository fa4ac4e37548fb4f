//! Conversations as the chain carries them: a list of roles and a list of texts
//! (docs/agent-methods.md section 6).

use std::collections::BTreeSet;

use types::json::{self, Json, ObjectWriter};
use types::text::Quoted;

use super::members::{self, Members};
use super::path::Path;
use super::refused::{Refused, entries_at_most};
use crate::messages::{Message, Role, ToolCall};

/// The most messages of a conversation.
pub const MESSAGES_MAX: usize = 1_024;
/// The most bytes of the name of a call.
pub const CALL_ID_BYTES_MAX: usize = 128;

/// How deep the JSON in a message may be nested. Arguments of calls begin on the fourth level, and
/// what a model's server may send is at most 128 deep.
const DEPTH_MAX: usize = 160;
/// What marks the message of a model that calls tools.
const CALLS_KEY: &str = "tool_calls";

/// Which conversations a method takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Roles system, user and assistant; texts are what they are.
    Chat,
    /// Also role tool; calls and their results are JSON.
    Tools,
}

impl Dialect {
    const fn roles(self) -> &'static str {
        match self {
            Self::Chat => "system, user or assistant",
            Self::Tools => "system, user, assistant or tool",
        }
    }
}

/// A message without calls.
pub(super) const fn message(role: Role, text: String) -> Message {
    Message { role, text, tool_calls: Vec::new(), tool_call_id: None }
}

/// The result of a call.
pub(super) const fn result(call_id: String, text: String) -> Message {
    Message { role: Role::Tool, text, tool_calls: Vec::new(), tool_call_id: Some(call_id) }
}

/// Reads the two lists of the object that holds them as `roles_key` and `texts_key`.
pub(super) fn read(
    object: &Members<'_, '_, '_>,
    roles_key: &str,
    texts_key: &str,
    dialect: Dialect,
) -> Result<Vec<Message>, Refused> {
    let (roles, texts) = (object.texts(roles_key)?, object.texts(texts_key)?);
    if roles.len() != texts.len() {
        let expected = format!("{} entries, as {roles_key} has", roles.len());
        let got = format_args!("{} entries", texts.len());
        return Err(Refused::new(object.field(texts_key), got, expected));
    }
    let (roles_field, texts_field) = (object.field(roles_key), object.field(texts_key));
    let read = |(index, (role, text)): (usize, (&String, &String))| {
        let fields = (Path::Entry(&roles_field, index), Path::Entry(&texts_field, index));
        read_message(fields, (role, text), dialect)
    };
    roles.iter().zip(&texts).enumerate().map(read).collect()
}

fn read_message(
    (role_field, text_field): (Path<'_>, Path<'_>),
    (role, text): (&str, &str),
    dialect: Dialect,
) -> Result<Message, Refused> {
    let plain = |role| Ok(message(role, text.to_owned()));
    match (role, dialect) {
        ("system", Dialect::Chat | Dialect::Tools) => plain(Role::System),
        ("user", Dialect::Chat | Dialect::Tools) => plain(Role::User),
        ("assistant", Dialect::Tools) if members::is_object_with(text, CALLS_KEY) => {
            read_calls(text_field, text)
        }
        ("assistant", Dialect::Chat | Dialect::Tools) => plain(Role::Assistant),
        ("tool", Dialect::Tools) => read_result(text_field, text),
        _ => Err(Refused::new(role_field, Quoted(role), dialect.roles())),
    }
}

/// `{"content":…,"tool_calls":[{"id":…,"name":…,"arguments":{…}}]}`
fn read_calls(field: Path<'_>, text: &str) -> Result<Message, Refused> {
    let value = members::read(field, text, DEPTH_MAX)?;
    let object = Members::of(&value, field)?.only(&["content", CALLS_KEY])?;
    let calls_field = object.field(CALLS_KEY);
    let read = |(index, item): (usize, &Json<'_>)| {
        let call = Members::of(item, Path::Entry(&calls_field, index))?.only(&[
            "id",
            "name",
            "arguments",
        ])?;
        Ok(ToolCall {
            id: read_id(&call, "id")?,
            name: call.text("name")?.to_owned(),
            arguments: call.map("arguments")?,
        })
    };
    Ok(Message {
        role: Role::Assistant,
        text: object.text("content")?.to_owned(),
        tool_calls: object
            .array(CALLS_KEY)?
            .iter()
            .enumerate()
            .map(read)
            .collect::<Result<_, _>>()?,
        tool_call_id: None,
    })
}

/// `{"tool_call_id":…,"content":…}`
fn read_result(field: Path<'_>, text: &str) -> Result<Message, Refused> {
    let value = members::read(field, text, DEPTH_MAX)?;
    let object = Members::of(&value, field)?.only(&["tool_call_id", "content"])?;
    Ok(result(read_id(&object, "tool_call_id")?, object.text("content")?.to_owned()))
}

/// The id of a call.
pub(super) fn read_id(object: &Members<'_, '_, '_>, key: &str) -> Result<String, Refused> {
    let id = object.text(key)?;
    if (1..=CALL_ID_BYTES_MAX).contains(&id.len()) {
        return Ok(id.to_owned());
    }
    let got = format_args!("{} bytes", id.len());
    Err(Refused::new(object.field(key), got, format!("1 to {CALL_ID_BYTES_MAX} bytes")))
}

/// The roles of messages, and their texts: what [`read`] reads back as the same messages.
pub(super) fn write(messages: &[Message], dialect: Dialect) -> (Vec<String>, Vec<String>) {
    messages.iter().map(|message| (role(message.role).to_owned(), text(message, dialect))).unzip()
}

/// The word of a role.
pub(super) const fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

fn text(message: &Message, dialect: Dialect) -> String {
    let Message { role, text, tool_calls, tool_call_id } = message;
    let is_like_calls = || dialect == Dialect::Tools && members::is_object_with(text, CALLS_KEY);
    let mut out = String::new();
    match role {
        Role::Tool => {
            let mut object = ObjectWriter::new(&mut out);
            object.string("tool_call_id", tool_call_id.as_deref().unwrap_or_default());
            object.string("content", text);
            object.end();
        }
        // A text that looks like a message with calls is wrapped, so that it is not read as one.
        Role::Assistant if !tool_calls.is_empty() || is_like_calls() => {
            out.push_str("{\"content\":");
            json::write_string(text, &mut out);
            out.push_str(",\"tool_calls\":[");
            for (index, call) in tool_calls.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_call(call, &mut out);
            }
            out.push_str("]}");
        }
        Role::System | Role::User | Role::Assistant => out.push_str(text),
    }
    out
}

/// Appends `{"id":…,"name":…,"arguments":{…}}`.
pub(super) fn write_call(call: &ToolCall, out: &mut String) {
    let ToolCall { id, name, arguments } = call;
    out.push_str("{\"id\":");
    json::write_string(id, out);
    out.push_str(",\"name\":");
    json::write_string(name, out);
    out.push_str(",\"arguments\":");
    members::write_map(arguments, out);
    out.push('}');
}

/// Checks that the parts of each message fit its role: what is written of it is read back as it is.
pub(super) fn check_parts(
    field: &str,
    messages: &[Message],
    dialect: Dialect,
) -> Result<(), Refused> {
    let field = Path::Text(field);
    for (index, message) in messages.iter().enumerate() {
        let path = Path::Entry(&field, index);
        let (role, text) = (role(message.role), text(message, dialect));
        if read_message((path, path), (role, &text), dialect)? != *message {
            let expected = "calls only from an assistant, and a call's id only with a result";
            return Err(Refused::new(path, format_args!("role {role}"), expected));
        }
    }
    Ok(())
}

/// Checks that a conversation hangs together, and answers the calls at its end that nobody has
/// answered yet; `field` names the list of texts in messages.
///
/// The rules: at least one message; every call has a name of its own; what role tool answers is a
/// call that waits for it; nobody else speaks while calls wait.
pub(super) fn open_calls<'a>(
    field: &str,
    messages: &'a [Message],
) -> Result<Vec<&'a ToolCall>, Refused> {
    if messages.is_empty() {
        return Err(Refused::new(field, "no messages", "at least one"));
    }
    entries_at_most(field, messages.len(), MESSAGES_MAX)?;
    let mut seen = BTreeSet::new();
    let mut open: Vec<&ToolCall> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let path = || format!("{field}[{index}]");
        if let Some(id) = &message.tool_call_id {
            if !open.iter().any(|call| call.id == *id) {
                let got = format_args!("a result for {}", Quoted(id));
                return Err(Refused::new(path(), got, waiting(&open)));
            }
            open.retain(|call| call.id != *id);
            continue;
        }
        if !open.is_empty() {
            let got = format_args!("role {}", role(message.role));
            return Err(Refused::new(path(), got, waiting(&open)));
        }
        for call in &message.tool_calls {
            if !seen.insert(call.id.as_str()) {
                let got = format_args!("{} twice", Quoted(&call.id));
                return Err(Refused::new(path(), got, "ids of calls that are all different"));
            }
            open.push(call);
        }
    }
    Ok(open)
}

/// What may stand where a result is wanted.
fn waiting(open: &[&ToolCall]) -> String {
    if open.is_empty() {
        return "a call that waits for a result".to_owned();
    }
    let ids: Vec<_> = open.iter().take(8).map(|call| Quoted(&call.id).to_string()).collect();
    format!("a result for {}", ids.join(", "))
}

/// [`open_calls`] of a conversation that a model is to go on with: none may be open.
pub(super) fn check_answered(field: &str, messages: &[Message]) -> Result<(), Refused> {
    let open = open_calls(field, messages)?;
    if open.is_empty() {
        return Ok(());
    }
    Err(Refused::new(field, "an end before every call has its result", waiting(&open)))
}

#[cfg(test)]
mod tests;
