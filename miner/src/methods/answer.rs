//! The final answer of a run for a method: JSON with its keys in one order
//! (docs/agent-methods.md section 8).

use types::RunStatus;
use types::json::ObjectWriter;

use super::conversation::{self, Dialect};
use super::functions::Functions;
use super::members::{self, Members};
use super::refused::{Refused, bytes_at_most};
use super::request::{ENVELOPE_BYTES_MAX, MARK, VERSION, read_version};
use super::{Ask, Method, Request};
use crate::talk::Message;

/// The most bytes of an answer: what an envelope may have, as a conversation goes from one to the
/// other.
pub const ANSWER_BYTES_MAX: usize = ENVELOPE_BYTES_MAX;

/// Why a run for a method ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The model finished; the response is its answer.
    Stop,
    /// The requester is to run tools and to ask again.
    ToolCalls,
    /// The round trips between model and tools are used up.
    MaxIterations,
    /// Anything else; the response says why.
    Error,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 4] = [Self::Stop, Self::ToolCalls, Self::MaxIterations, Self::Error];

    /// The word in an answer.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::ToolCalls => "tool_calls",
            Self::MaxIterations => "max_iterations",
            Self::Error => "error",
        }
    }

    /// The status with which the miner settles.
    #[must_use]
    pub const fn status(self) -> RunStatus {
        match self {
            Self::Stop | Self::ToolCalls | Self::MaxIterations => RunStatus::Completed,
            Self::Error => RunStatus::Failed,
        }
    }
}

/// A call that the requester is to execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingCall {
    /// Names the call in the conversation.
    pub id: String,
    /// The selector and the encoded arguments.
    pub calldata: Vec<u8>,
}

/// What a requester needs to go on with a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct HandBack {
    /// The whole conversation; the calls below are in its last message of the model.
    pub messages: Vec<Message>,
    /// The calls that wait for their results, in the order in which the model made them.
    pub calls: Vec<PendingCall>,
}

/// The final answer of a run for a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The method; none if the request named none of the four.
    pub method: Option<Method>,
    /// Why the run ended.
    pub reason: Reason,
    /// The answer; empty with [`Reason::ToolCalls`], the cause with [`Reason::Error`].
    pub response: String,
    /// What goes back to the requester; empty but for [`Reason::ToolCalls`].
    pub hand_back: HandBack,
}

impl Answer {
    /// An answer without calls.
    #[must_use]
    pub fn plain(method: Method, reason: Reason, response: impl Into<String>) -> Self {
        let hand_back = HandBack::default();
        Self { method: Some(method), reason, response: response.into(), hand_back }
    }

    /// The answer to a request that was found unacceptable only after the claim.
    #[must_use]
    pub fn refusing(refused: &Refused) -> Self {
        Self {
            method: refused.method,
            reason: Reason::Error,
            response: refused.to_string(),
            hand_back: HandBack::default(),
        }
    }

    /// The answer as it goes to the chain: inline if it has at most 16,384 bytes, else in a blob.
    #[must_use]
    pub fn to_json(&self) -> String {
        let Self { method, reason, response, hand_back } = self;
        let mut out = String::new();
        let mut object = ObjectWriter::new(&mut out);
        object.integer(MARK, VERSION);
        // An empty text stands for a request that named no method.
        object.string("method", method.map_or("", Method::name));
        object.string("finishReason", reason.name());
        object.string("response", response);
        if *method == Some(Method::InferToolsChat) {
            let HandBack { messages, calls } = hand_back;
            let (roles, texts) = conversation::write(messages, Dialect::Tools);
            let (ids, calldata): (Vec<_>, Vec<_>) = calls
                .iter()
                .map(|call| (call.id.clone(), const_hex::encode_prefixed(&call.calldata)))
                .unzip();
            object.strings("updatedRoles", &roles);
            object.strings("updatedMessages", &texts);
            object.strings("pendingToolCallIds", &ids);
            object.strings("pendingToolCalls", &calldata);
        }
        object.end();
        out
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// The first member that breaks a rule.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        bytes_at_most("finalAnswer", text, ANSWER_BYTES_MAX)?;
        let value = members::read("finalAnswer", text, 2)?;
        let object = Members::of(&value, "")?;
        read_version(&object)?;
        let method = read_method(&object)?;
        let object = object.only(keys(method))?;
        let reason = read_reason(&object)?;
        let hand_back = if method == Some(Method::InferToolsChat) {
            read_hand_back(&object, reason)?
        } else if reason == Reason::Stop || reason == Reason::Error {
            HandBack::default()
        } else {
            return Err(Refused::new("finishReason", reason.name(), "stop or error"));
        };
        Ok(Self { method, reason, response: object.text("response")?.to_owned(), hand_back })
    }

    /// Checks that each pending call is the encoding of the model's call of the same id.
    ///
    /// A requester that executes calldata does this first: else it takes a miner's word for what
    /// the model wanted.
    ///
    /// # Errors
    /// The first call whose calldata says something else than the conversation.
    pub fn check_calls(&self, functions: &Functions) -> Result<(), Refused> {
        let calls = conversation::open_calls("updatedMessages", &self.hand_back.messages).or_else(
            |refused| if self.hand_back.calls.is_empty() { Ok(Vec::new()) } else { Err(refused) },
        )?;
        for (index, (call, pending)) in calls.iter().zip(&self.hand_back.calls).enumerate() {
            let field = format!("pendingToolCalls[{index}]");
            let encoded = functions.encode(&call.name, &call.arguments);
            let encoded = encoded.map_err(|why| {
                Refused::new(field.clone(), &why, "a call that encodes against its signature")
            })?;
            if encoded != pending.calldata {
                let got = const_hex::encode_prefixed(&pending.calldata);
                let wanted = const_hex::encode_prefixed(encoded);
                return Err(Refused::new(
                    field,
                    got,
                    format!("{wanted}, the call of {:?}", call.name),
                ));
            }
        }
        Ok(())
    }
}

impl Request {
    /// Checks that a conversation that was handed back begins with the one that was asked.
    ///
    /// What goes on is signed by the requester: a miner must not be able to put words into the
    /// requester's mouth.
    ///
    /// # Errors
    /// The conversation begins with something else.
    pub fn check_beginning(&self, answer: &Answer) -> Result<(), Refused> {
        let HandBack { messages, calls } = &answer.hand_back;
        let Ask::InferToolsChat { messages: asked, .. } = self.ask() else { return Ok(()) };
        if calls.is_empty() || messages.starts_with(asked) {
            return Ok(());
        }
        let same = asked.iter().zip(messages).take_while(|(one, other)| one == other).count();
        let field = format!("updatedMessages[{same}]");
        Err(Refused::new(
            field,
            "another message",
            "first the messages of the request, as they were",
        ))
    }

    /// The request that goes on where `answer` stopped, with the results of its pending calls in
    /// their order; everything else is asked as before.
    ///
    /// # Errors
    /// The answer hands back no calls, their number is another, its conversation begins with another
    /// than this one's, or this is no `inferToolsChat`.
    pub fn resume(&self, answer: &Answer, results: &[String]) -> Result<Self, Refused> {
        let HandBack { messages, calls } = &answer.hand_back;
        if calls.is_empty() || calls.len() != results.len() {
            let got = format_args!("{} results", results.len());
            let expected = format!("one for each of {} pending calls", calls.len());
            return Err(Refused::new("pendingToolCallIds", got, expected));
        }
        let mut ask = self.ask().clone();
        let Ask::InferToolsChat { messages: asked, .. } = &mut ask else {
            let method = self.ask().method();
            return Err(Refused::new("method", method, "inferToolsChat"));
        };
        self.check_beginning(answer)?;
        asked.clone_from(messages);
        let answered = calls.iter().zip(results);
        asked.extend(
            answered.map(|(call, text)| conversation::result(call.id.clone(), text.clone())),
        );
        let request = Self::new(ask)?;
        Ok(if self.is_deterministic() { request.deterministic() } else { request })
    }
}

const fn keys(method: Option<Method>) -> &'static [&'static str] {
    match method {
        Some(Method::InferToolsChat) => &[
            MARK,
            "method",
            "finishReason",
            "response",
            "updatedRoles",
            "updatedMessages",
            "pendingToolCallIds",
            "pendingToolCalls",
        ],
        Some(Method::InferString | Method::InferNumber | Method::InferChat) | None => {
            &[MARK, "method", "finishReason", "response"]
        }
    }
}

fn read_method(object: &Members<'_, '_>) -> Result<Option<Method>, Refused> {
    match object.text("method")? {
        "" => Ok(None),
        name => Method::parse(name)
            .map(Some)
            .ok_or_else(|| Refused::new("method", name, format!("one of {}", Method::names()))),
    }
}

fn read_reason(object: &Members<'_, '_>) -> Result<Reason, Refused> {
    let word = object.text("finishReason")?;
    Reason::ALL.into_iter().find(|reason| reason.name() == word).ok_or_else(|| {
        let words = Reason::ALL.map(Reason::name).join(", ");
        Refused::new("finishReason", word, format!("one of {words}"))
    })
}

fn read_hand_back(object: &Members<'_, '_>, reason: Reason) -> Result<HandBack, Refused> {
    let messages = conversation::read(object, "updatedRoles", "updatedMessages", Dialect::Tools)?;
    let (ids, calldata) = (object.texts("pendingToolCallIds")?, object.texts("pendingToolCalls")?);
    if ids.len() != calldata.len() {
        let got = format_args!("{} entries", calldata.len());
        let expected = format!("{} entries, as pendingToolCallIds has", ids.len());
        return Err(Refused::new("pendingToolCalls", got, expected));
    }
    if reason != Reason::ToolCalls {
        if messages.is_empty() && ids.is_empty() {
            return Ok(HandBack::default());
        }
        let expected = format!("no messages and no calls with finishReason {}", reason.name());
        return Err(Refused::new(
            "updatedMessages",
            format_args!("{} entries", messages.len()),
            expected,
        ));
    }
    let open = conversation::open_calls("updatedMessages", &messages)?;
    let wanted: Vec<_> = open.iter().map(|call| call.id.as_str()).collect();
    if wanted.is_empty() || wanted != ids {
        let expected =
            format!("the calls that wait in updatedMessages, and at least one: {wanted:?}");
        return Err(Refused::new("pendingToolCallIds", format_args!("{ids:?}"), expected));
    }
    let read = |(index, (id, text)): (usize, (String, String))| {
        let bytes = text.strip_prefix("0x").filter(|hex| !hex.starts_with("0x"));
        let calldata = bytes.and_then(|hex| const_hex::decode(hex).ok()).ok_or_else(|| {
            Refused::new(format!("pendingToolCalls[{index}]"), &text, "0x and hex")
        })?;
        Ok(PendingCall { id, calldata })
    };
    let calls = ids.into_iter().zip(calldata).enumerate().map(read).collect::<Result<_, _>>()?;
    Ok(HandBack { messages, calls })
}

#[cfg(test)]
mod tests;
