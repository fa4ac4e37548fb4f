//! The final answer of a run for a method: JSON with its keys in one order
//! (docs/agent-methods.md section 8).

use types::RunStatus;
use types::json::ObjectWriter;

use super::conversation::{self, Dialect};
use super::functions::Functions;
use super::members::{self, Members};
use super::refused::{Refused, bytes_at_most};
use super::request::{ENVELOPE_BYTES_MAX, MARK, VERSION, read_version};
use super::{Ask, Messages, Method, Request, ToolChoice, messages};
use crate::messages::{Message, Role, ToolCall};

/// The most bytes of an answer: what an envelope may have, as a conversation goes from one to the
/// other.
pub const ANSWER_BYTES_MAX: usize = ENVELOPE_BYTES_MAX;

/// How deep an answer with calls may be nested: their arguments begin on the fourth level, and what a
/// model's server may send is at most 128 deep.
const CALLS_DEPTH_MAX: usize = 160;

/// Why a run for a method ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The model finished; the response is its answer.
    Stop,
    /// The requester is to run tools and to ask again.
    ToolCalls,
    /// The round trips between model and tools are used up.
    MaxIterations,
    /// The answer was cut off: at the most tokens that the requester wants, or because the run ended.
    Length,
    /// Anything else; the response says why.
    Error,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 5] =
        [Self::Stop, Self::ToolCalls, Self::MaxIterations, Self::Length, Self::Error];

    /// The word in an answer.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::ToolCalls => "tool_calls",
            Self::MaxIterations => "max_iterations",
            Self::Length => "length",
            Self::Error => "error",
        }
    }

    /// The status with which the miner settles, if the run did not end for want of time or money.
    #[must_use]
    pub const fn status(self) -> RunStatus {
        match self {
            Self::Stop | Self::ToolCalls | Self::MaxIterations | Self::Length => {
                RunStatus::Completed
            }
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
    /// The method; none if the request named none.
    pub method: Option<Method>,
    /// Why the run ended.
    pub reason: Reason,
    /// The answer; empty with [`Reason::ToolCalls`], the cause with [`Reason::Error`].
    pub response: String,
    /// What goes back to the requester of an `inferToolsChat`; empty but for [`Reason::ToolCalls`].
    pub hand_back: HandBack,
    /// The calls that the requester of an `inferMessages` is to execute; empty but for
    /// [`Reason::ToolCalls`].
    pub tool_calls: Vec<ToolCall>,
}

impl Answer {
    /// An answer without calls.
    #[must_use]
    pub fn plain(method: Method, reason: Reason, response: impl Into<String>) -> Self {
        let (hand_back, tool_calls) = (HandBack::default(), Vec::new());
        Self { method: Some(method), reason, response: response.into(), hand_back, tool_calls }
    }

    /// The answer to an `inferMessages` with calls.
    #[must_use]
    pub fn calling(response: impl Into<String>, tool_calls: Vec<ToolCall>) -> Self {
        Self { tool_calls, ..Self::plain(Method::InferMessages, Reason::ToolCalls, response) }
    }

    /// The answer to a request that was found unacceptable only after the claim.
    #[must_use]
    pub fn refusing(refused: &Refused) -> Self {
        Self {
            method: refused.method,
            reason: Reason::Error,
            response: refused.to_string(),
            hand_back: HandBack::default(),
            tool_calls: Vec::new(),
        }
    }

    /// The answer as it goes to the chain: inline if it has at most 16,384 bytes, else in a blob.
    #[must_use]
    pub fn to_json(&self) -> String {
        let Self { method, reason, response, hand_back, tool_calls } = self;
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
        if *method == Some(Method::InferMessages) {
            members::append(&mut out, "toolCalls", &messages::calls(tool_calls));
        }
        out
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// The first member that breaks a rule.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        bytes_at_most("finalAnswer", text, ANSWER_BYTES_MAX)?;
        // Only the arguments of calls may be nested deeper.
        let is_deep = text.contains(Method::InferMessages.name());
        let depth_max = if is_deep { CALLS_DEPTH_MAX } else { 2 };
        let value = members::read("finalAnswer", text, depth_max)?;
        let object = Members::of(&value, "")?;
        read_version(&object)?;
        let method = read_method(&object)?;
        let object = object.only(keys(method))?;
        let reason = read_reason(&object, method)?;
        let (mut hand_back, mut tool_calls) = (HandBack::default(), Vec::new());
        match method {
            Some(Method::InferToolsChat) => hand_back = read_hand_back(&object, reason)?,
            Some(Method::InferMessages) => tool_calls = read_calls(&object, reason)?,
            Some(Method::InferString | Method::InferNumber | Method::InferChat) | None => {}
        }
        let response = object.text("response")?.to_owned();
        Ok(Self { method, reason, response, hand_back, tool_calls })
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

    /// Checks that each call of an answer to `inferMessages` is one of a declared function that the
    /// choice allows, with an id that is new in the conversation and arguments that fit the function's
    /// schema. Whoever executes calls does this first. Other methods have no such calls.
    ///
    /// # Errors
    /// The first call that is another.
    pub fn check_tool_calls(&self, answer: &Answer) -> Result<(), Refused> {
        let Ask::InferMessages(asked) = self.ask() else { return Ok(()) };
        let offered = asked.offered();
        let earlier = || asked.messages.iter().flat_map(|message| &message.tool_calls);
        for (index, ToolCall { id, name, arguments }) in answer.tool_calls.iter().enumerate() {
            let field = |member: &str| format!("toolCalls[{index}].{member}");
            if earlier().any(|call| call.id == *id) {
                return Err(Refused::new(field("id"), id, "an id that is new in the conversation"));
            }
            let function = asked.find(name).filter(|_| offered.iter().any(|it| it.name == *name));
            let function = function.ok_or_else(|| {
                Refused::new(field("name"), name, "a function that toolChoice allows to call")
            })?;
            function.parameters.check(arguments).map_err(|why| {
                Refused::new(field("arguments"), why, "what fits the function's parameters")
            })?;
        }
        Ok(())
    }

    /// The request that goes on where `answer` stopped, with the results of its pending calls in
    /// their order; everything else is asked as before, but no call is forced again.
    ///
    /// # Errors
    /// The answer hands back no calls, their number is another, its conversation begins with another
    /// than this one's, or this is neither `inferToolsChat` nor `inferMessages`.
    pub fn resume(&self, answer: &Answer, results: &[String]) -> Result<Self, Refused> {
        if let Ask::InferMessages(asked) = self.ask() {
            return self.resume_messages(asked, answer, results);
        }
        let HandBack { messages, calls } = &answer.hand_back;
        if calls.is_empty() || calls.len() != results.len() {
            let got = format_args!("{} results", results.len());
            let expected = format!("one for each of {} pending calls", calls.len());
            return Err(Refused::new("pendingToolCallIds", got, expected));
        }
        let mut ask = self.ask().clone();
        let Ask::InferToolsChat { messages: asked, .. } = &mut ask else {
            let method = self.ask().method();
            return Err(Refused::new("method", method, "inferToolsChat or inferMessages"));
        };
        self.check_beginning(answer)?;
        asked.clone_from(messages);
        let answered = calls.iter().zip(results);
        asked.extend(
            answered.map(|(call, text)| conversation::result(call.id.clone(), text.clone())),
        );
        self.again(ask)
    }

    fn resume_messages(
        &self,
        asked: &Messages,
        answer: &Answer,
        results: &[String],
    ) -> Result<Self, Refused> {
        let Answer { response, tool_calls, .. } = answer;
        if tool_calls.is_empty() || tool_calls.len() != results.len() {
            let got = format_args!("{} results", results.len());
            let expected = format!("one for each of {} calls", tool_calls.len());
            return Err(Refused::new("toolCalls", got, expected));
        }
        self.check_tool_calls(answer)?;
        let mut asked = asked.clone();
        asked.messages.push(Message {
            tool_calls: tool_calls.clone(),
            ..conversation::message(Role::Assistant, response.clone())
        });
        let answered = tool_calls.iter().zip(results);
        let answered =
            answered.map(|(call, text)| conversation::result(call.id.clone(), text.clone()));
        asked.messages.extend(answered);
        if asked.choice.is_forced() {
            asked.choice = ToolChoice::Auto;
        }
        self.again(Ask::InferMessages(asked))
    }

    /// Something else, asked in the same way.
    fn again(&self, ask: Ask) -> Result<Self, Refused> {
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
        Some(Method::InferMessages) => &[MARK, "method", "finishReason", "response", "toolCalls"],
        Some(Method::InferString | Method::InferNumber | Method::InferChat) | None => {
            &[MARK, "method", "finishReason", "response"]
        }
    }
}

fn read_method(object: &Members<'_, '_, '_>) -> Result<Option<Method>, Refused> {
    match object.text("method")? {
        "" => Ok(None),
        name => Method::parse(name)
            .map(Some)
            .ok_or_else(|| Refused::new("method", name, format!("one of {}", Method::names()))),
    }
}

fn read_reason(object: &Members<'_, '_, '_>, method: Option<Method>) -> Result<Reason, Refused> {
    let word = object.text("finishReason")?;
    let known = reasons(method);
    known.iter().copied().find(|reason| reason.name() == word).ok_or_else(|| {
        let words: Vec<_> = known.iter().map(|reason| reason.name()).collect();
        Refused::new("finishReason", word, words.join(" or "))
    })
}

/// What an answer may finish with.
const fn reasons(method: Option<Method>) -> &'static [Reason] {
    match method {
        Some(Method::InferToolsChat) => {
            &[Reason::Stop, Reason::ToolCalls, Reason::MaxIterations, Reason::Error]
        }
        Some(Method::InferMessages) => {
            &[Reason::Stop, Reason::ToolCalls, Reason::Length, Reason::Error]
        }
        Some(Method::InferString | Method::InferNumber | Method::InferChat) | None => {
            &[Reason::Stop, Reason::Error]
        }
    }
}

/// The calls that the requester is to execute: at least one, and each with an id of its own.
fn read_calls(object: &Members<'_, '_, '_>, reason: Reason) -> Result<Vec<ToolCall>, Refused> {
    let calls = messages::read_calls(object, "toolCalls")?;
    if calls.is_empty() == (reason == Reason::ToolCalls) {
        let expected =
            format!("calls with finishReason tool_calls only, and it is {}", reason.name());
        return Err(Refused::new("toolCalls", format_args!("{} entries", calls.len()), expected));
    }
    for (index, call) in calls.iter().enumerate() {
        if calls.iter().take(index).any(|earlier| earlier.id == call.id) {
            let got = format_args!("{:?} twice", call.id);
            let field = format!("toolCalls[{index}].id");
            return Err(Refused::new(field, got, "ids of calls that are all different"));
        }
    }
    Ok(calls)
}

fn read_hand_back(object: &Members<'_, '_, '_>, reason: Reason) -> Result<HandBack, Refused> {
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
