//! What a run asks for: plain text, or one of five methods in a JSON envelope
//! (docs/agent-methods.md sections 2 to 5).

use types::json::{Json, ObjectWriter};
use types::params::INLINE_TEXT_BYTES_MAX;

use super::Method;
use super::ask::{self, Ask};
use super::functions::Functions;
use super::members::{self, Members};
use super::refused::{Refused, bytes_at_most};

/// The most bytes of an envelope, inline or in a blob.
pub const ENVELOPE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The key that makes a prompt an envelope.
pub(super) const MARK: &str = "ombraAgent";
/// The only version.
pub(super) const VERSION: u64 = 1;
/// Outermost object, arguments, list of functions, function.
const DEPTH_MAX: usize = 4;
/// The same for `inferMessages`: arguments of calls begin on the seventh level, and what a model's server
/// may send is at most 128 deep.
const MESSAGES_DEPTH_MAX: usize = 160;

/// A request for a method that keeps every rule; holding one is the proof.
#[derive(Clone, Debug)]
pub struct Request {
    ask: Ask,
    is_deterministic: bool,
    functions: Functions,
}

impl PartialEq for Request {
    fn eq(&self, other: &Self) -> bool {
        let Self { ask, is_deterministic, functions: _ } = self;
        *ask == other.ask && *is_deterministic == other.is_deterministic
    }
}

/// What a prompt turns out to be.
#[derive(Clone, Debug, PartialEq)]
pub enum Parsed {
    /// Text for the model: the prompt, or the blob that holds it.
    PlainText(String),
    /// A request for a method.
    Method(Request),
    /// A request for a method whose envelope is in the run's prompt blob: ask again with it.
    NeedsBlob {
        /// The method.
        method: Method,
    },
}

/// A text as it goes to the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// It fits into the transaction.
    Inline(String),
    /// It goes into a blob.
    Blob {
        /// What stands in the transaction.
        prompt: String,
        /// What stands in the blob.
        blob: String,
    },
}

impl Request {
    /// A request for `ask`.
    ///
    /// # Errors
    /// The first argument that breaks a rule.
    pub fn new(ask: Ask) -> Result<Self, Refused> {
        let method = ask.method();
        let functions = ask::check(&ask).map_err(|refused| refused.of(method))?;
        let request = Self { ask, is_deterministic: true, functions };
        bytes_at_most("args", &request.envelope(), ENVELOPE_BYTES_MAX)
            .map_err(|refused| refused.of(method))?;
        Ok(Self { is_deterministic: false, ..request })
    }

    /// The same, to be answered only by a miner that can do it reproducibly.
    #[must_use]
    pub fn deterministic(self) -> Self {
        Self { is_deterministic: true, ..self }
    }

    /// What is asked.
    #[must_use]
    pub const fn ask(&self) -> &Ask {
        &self.ask
    }

    /// Whether the answer must be reproducible.
    #[must_use]
    pub const fn is_deterministic(&self) -> bool {
        self.is_deterministic
    }

    /// The functions by their signatures that the requester runs; none but for `inferToolsChat`.
    #[must_use]
    pub const fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Whether the requester has a function of this name, which the miner does not run.
    #[must_use]
    pub fn has_function(&self, name: &str) -> bool {
        match &self.ask {
            Ask::InferMessages(asked) => asked.find(name).is_some(),
            Ask::InferString { .. }
            | Ask::InferNumber { .. }
            | Ask::InferChat { .. }
            | Ask::InferToolsChat { .. } => self.functions.has(name),
        }
    }

    /// The MCP servers that it asks for; none but for `inferToolsChat`.
    #[must_use]
    pub fn mcp_server_urls(&self) -> &[String] {
        match &self.ask {
            Ask::InferToolsChat { mcp_server_urls, .. } => mcp_server_urls,
            Ask::InferString { .. }
            | Ask::InferNumber { .. }
            | Ask::InferChat { .. }
            | Ask::InferMessages(_) => &[],
        }
    }

    /// Reads a run's prompt; `blob` is the text of its prompt blob, if it has one and it is at hand.
    ///
    /// A prompt that is a JSON object with the key `ombraAgent` is an envelope. Anything else is
    /// plain text, and then the blob, if there is one, is the text itself.
    ///
    /// # Errors
    /// An envelope that breaks a rule: the field, what it holds, what was expected.
    pub fn parse(prompt: &str, blob: Option<&str>) -> Result<Parsed, Refused> {
        if !members::is_object_with(prompt, MARK) {
            return Ok(Parsed::PlainText(blob.unwrap_or(prompt).to_owned()));
        }
        let envelope = read_envelope("prompt", prompt)?;
        let object = Members::of(&envelope, "")?;
        let method = read_head(&object)?;
        if !object.has("blob") {
            return match blob {
                None => read_body(method, object).map(Parsed::Method),
                Some(_) => Err(Refused::new(
                    "promptBlobId",
                    "a blob",
                    "none, as the envelope is in the prompt",
                )),
            }
            .map_err(|refused| refused.of(method));
        }
        read_stub(object).map_err(|refused| refused.of(method))?;
        let Some(blob) = blob else { return Ok(Parsed::NeedsBlob { method }) };
        Self::parse_blob(method, blob).map(Parsed::Method).map_err(|refused| refused.of(method))
    }

    fn parse_blob(method: Method, blob: &str) -> Result<Self, Refused> {
        bytes_at_most("promptBlobId", blob, ENVELOPE_BYTES_MAX)?;
        let envelope = read_envelope("promptBlobId", blob)?;
        let object = Members::of(&envelope, "")?;
        let inner = read_head(&object)?;
        if inner != method {
            let expected = format!("{method}, as in the prompt");
            return Err(Refused::new("method", inner, expected));
        }
        read_body(method, object)
    }

    /// The prompt, and the blob if the envelope does not fit into a transaction.
    #[must_use]
    pub fn to_prompt(&self) -> Written {
        let envelope = self.envelope();
        if envelope.len() <= INLINE_TEXT_BYTES_MAX {
            return Written::Inline(envelope);
        }
        let mut prompt = String::new();
        let mut object = ObjectWriter::new(&mut prompt);
        object.integer(MARK, VERSION);
        object.string("method", self.ask.method().name());
        object.boolean("blob", true);
        object.end();
        Written::Blob { prompt, blob: envelope }
    }

    fn envelope(&self) -> String {
        let mut envelope = String::new();
        let mut object = ObjectWriter::new(&mut envelope);
        object.integer(MARK, VERSION);
        object.string("method", self.ask.method().name());
        if self.is_deterministic {
            object.boolean("deterministic", true);
        }
        object.end();
        members::append(&mut envelope, "args", &ask::write(&self.ask));
        envelope
    }
}

/// An envelope. Only arguments of calls and schemas may be nested deeper than lists of functions are.
fn read_envelope<'a>(field: &str, text: &'a str) -> Result<Json<'a>, Refused> {
    members::read(field, text, DEPTH_MAX).or_else(|refused| {
        let deep = members::read(field, text, MESSAGES_DEPTH_MAX).ok();
        deep.filter(|envelope| {
            let members = envelope.as_object().unwrap_or_default();
            let method = members.iter().find(|(key, _)| key == "method");
            method.and_then(|(_, name)| name.as_str()) == Some(Method::InferMessages.name())
        })
        .ok_or(refused)
    })
}

/// The version and the method.
fn read_head(object: &Members<'_, '_, '_>) -> Result<Method, Refused> {
    read_version(object)?;
    let name = object.text("method")?;
    Method::parse(name).ok_or_else(|| {
        Refused::new(object.field("method"), name, format!("one of {}", Method::names()))
    })
}

/// `"ombraAgent":1`, the number written like that.
pub(super) fn read_version(object: &Members<'_, '_, '_>) -> Result<(), Refused> {
    let version = object.value(MARK, "the number 1")?;
    match version {
        Json::Number("1") => Ok(()),
        Json::Number(literal) => Err(Refused::new(MARK, literal, "the number 1")),
        Json::Null | Json::Bool(_) | Json::String(_) | Json::Array(_) | Json::Object(_) => {
            Err(Refused::new(MARK, version.kind(), "the number 1"))
        }
    }
}

/// `{"ombraAgent":1,"method":…,"blob":true}` and nothing else.
fn read_stub(object: Members<'_, '_, '_>) -> Result<(), Refused> {
    let object = object.only(&[MARK, "method", "blob"])?;
    if object.boolean("blob")? {
        return Ok(());
    }
    Err(Refused::new("blob", "false", "true, or no such key"))
}

fn read_body(method: Method, object: Members<'_, '_, '_>) -> Result<Request, Refused> {
    let object = object.only(&[MARK, "method", "deterministic", "args"])?;
    let args = Members::of(object.value("args", "an object")?, "args")?.only(method.arguments())?;
    let request = Request::new(ask::read(method, &args)?)?;
    let is_deterministic = object.has("deterministic") && object.boolean("deterministic")?;
    Ok(if is_deterministic { request.deterministic() } else { request })
}

#[cfg(test)]
mod tests;
