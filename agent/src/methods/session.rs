//! The course of one run: what to ask a model, and what follows from what it says
//! (docs/agent-methods.md sections 9 and 10).

use std::collections::BTreeSet;

use types::RunStatus;
use types::text::{Quoted, shorten};
use types::tx::TOOL_CALLS_MAX;

use super::answer::{ANSWER_BYTES_MAX, Answer, HandBack, PendingCall, Reason};
use super::conversation;
use super::functions::Functions;
use super::{Ask, Integer, Method, Refused, Request};
use crate::messages::{Constraint, End, Iteration, Message, Output, Role, ToolCall, ToolSpec};
use crate::text::CUT_OFF;

mod messages;

/// A text that is cut off is continued until it has so many bytes: an answer has
/// [`ANSWER_BYTES_MAX`], and a byte may take six in JSON.
const CUT_BYTES_MAX: usize = ANSWER_BYTES_MAX / 8;
/// Shorter texts may begin alike by chance.
const REPEATED_BYTES_MIN: usize = 64;

/// How a run ends by its miner's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The status of AGENT_FINISH: completed or failed.
    pub status: RunStatus,
    /// The final answer: JSON for a method, plain text else.
    pub answer: String,
}

/// What follows from a model's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// The miner runs these tools, at least one and at most 64, in this order, and gives their
    /// results to [`AgentSession::results`].
    Tools(Vec<ToolCall>),
    /// The model is asked again: the conversation has grown.
    Again,
    /// The run ends.
    Finish(Ending),
}

/// What becomes of one call of the last output.
#[derive(Clone, Debug)]
enum Fate {
    /// The miner runs it.
    Run(ToolCall),
    /// The requester runs it.
    HandBack(PendingCall),
    /// The model is told what is wrong with it.
    Wrong { id: String, why: String },
}

/// The course of one run.
///
/// It is a function of what it was told, and of nothing else: whoever lost it begins it again, tells
/// it the same outputs and results, and has it back.
#[derive(Clone, Debug)]
pub struct AgentSession {
    /// What is asked; nothing for plain text.
    method: Option<Method>,
    messages: Vec<Message>,
    tools: Vec<ToolSpec>,
    miner_tools: BTreeSet<String>,
    functions: Functions,
    constraint: Constraint,
    bounds: (Integer, Integer),
    thinks: bool,
    /// What the model has written of a message that was cut off, and that it goes on with.
    so_far: String,
    /// Round trips that are left; without a limit for plain text, where the run's steps are one.
    round_trips_left: Option<u32>,
    /// The calls of the last output, while the miner runs some of them.
    fates: Vec<Fate>,
    /// What only `inferMessages` asks for.
    terms: Option<messages::Terms>,
}

impl AgentSession {
    /// The course of a run whose prompt is plain text; `tools` are those of its whitelist.
    #[must_use]
    pub fn of_text(prompt: &str, tools: &[ToolSpec]) -> Self {
        Self {
            method: None,
            messages: vec![conversation::message(Role::User, prompt.to_owned())],
            tools: tools.to_vec(),
            miner_tools: names(tools),
            functions: Functions::default(),
            constraint: Constraint::Free,
            bounds: (Integer::MIN, Integer::MAX),
            thinks: false,
            so_far: String::new(),
            round_trips_left: None,
            fates: Vec::new(),
            terms: None,
        }
    }

    /// The course of a run for a method; `tools` are those of its whitelist and of its MCP servers,
    /// and only `inferToolsChat` and `inferMessages` have any use for them.
    ///
    /// # Errors
    /// A function of the requester has the name of one of the miner's tools.
    pub fn of_request(request: &Request, tools: &[ToolSpec]) -> Result<Self, Refused> {
        let ask = request.ask();
        let mut session = Self {
            method: Some(ask.method()),
            thinks: ask.chain_of_thought(),
            ..Self::of_text("", &[])
        };
        match ask {
            Ask::InferString { prompt, system, allowed_values, chain_of_thought: _ } => {
                session.messages = question(system, prompt);
                if !allowed_values.is_empty() {
                    session.constraint = Constraint::OneOf(allowed_values.clone());
                }
            }
            Ask::InferNumber { prompt, system, min_value, max_value, chain_of_thought: _ } => {
                session.messages = question(system, prompt);
                session.bound(*min_value, *max_value);
            }
            Ask::InferChat { messages, chain_of_thought: _ } => {
                session.messages.clone_from(messages);
            }
            Ask::InferToolsChat {
                messages,
                max_iterations,
                mcp_server_urls: _,
                onchain_tools: _,
                chain_of_thought: _,
            } => {
                session.messages.clone_from(messages);
                session.round_trips_left = Some(*max_iterations);
                session.offer(tools, request.functions())?;
            }
            Ask::InferMessages(asked) => session.begin_messages(asked, tools)?,
        }
        Ok(session)
    }

    /// The same conversation, in which the model reads `base_prompt` before everything else.
    #[must_use]
    pub fn with_base_prompt(mut self, base_prompt: &str) -> Self {
        if base_prompt.is_empty() {
            return self;
        }
        match self.messages.first_mut().filter(|first| first.role == Role::System) {
            Some(system) if system.text.is_empty() => base_prompt.clone_into(&mut system.text),
            Some(system) => system.text = format!("{base_prompt}\n\n{}", system.text),
            None => {
                let system = conversation::message(Role::System, base_prompt.to_owned());
                self.messages.insert(0, system);
            }
        }
        self
    }

    fn bound(&mut self, min: Integer, max: Integer) {
        let is_bounded = (min, max) != (Integer::ZERO, Integer::ZERO);
        let text = |bound: Integer| is_bounded.then(|| bound.to_string());
        self.constraint = Constraint::Integer { min: text(min), max: text(max) };
        if is_bounded {
            self.bounds = (min, max);
        }
    }

    fn offer(&mut self, tools: &[ToolSpec], functions: &Functions) -> Result<(), Refused> {
        self.miner_tools = names(tools);
        let specs = functions.specs();
        let twin = specs.iter().enumerate().find(|(_, spec)| self.miner_tools.contains(&spec.name));
        if let Some((index, twin)) = twin {
            let field = format!("args.onchainTools[{index}].signature");
            let expected = "a name that no tool of the run's whitelist or MCP servers has";
            return Err(Refused::new(field, &twin.name, expected).of(Method::InferToolsChat));
        }
        self.tools = tools.iter().cloned().chain(specs).collect();
        self.functions = functions.clone();
        Ok(())
    }

    /// What to ask the model now.
    #[must_use]
    pub fn iteration(&self, output_tokens_max: u32) -> Iteration<'_> {
        Iteration {
            messages: &self.messages,
            tools: &self.tools,
            constraint: &self.constraint,
            thinks: self.thinks && self.so_far.is_empty(),
            so_far: &self.so_far,
            stops: self.terms.as_ref().map_or(&[], messages::Terms::stops),
            output_tokens_max,
        }
    }

    /// The most tokens that the model may still put out in this run, at least 1, if its requester says.
    #[must_use]
    pub fn output_tokens_left(&self) -> Option<u32> {
        self.terms.as_ref().and_then(messages::Terms::tokens_left)
    }

    /// Takes what the model said.
    pub fn take(&mut self, output: &Output) -> Move {
        if self.terms.is_some() {
            return self.take_message(output);
        }
        let Output { text, tool_calls, output_tokens, end, thoughts: _, prompt_tokens: _ } = output;
        match end {
            End::Length => self.take_cut(text, *output_tokens),
            End::CallCut => {
                let text = self.whole(text);
                let why = format!("were cut off after {output_tokens} tokens; make shorter ones");
                self.take_unreadable(&text, &why)
            }
            End::Stop | End::ToolCalls if !tool_calls.is_empty() => {
                let text = self.whole(text);
                self.take_calls(&text, tool_calls)
            }
            End::ToolCalls => {
                let text = self.whole(text);
                self.take_unreadable(&text, "cannot be read")
            }
            End::Stop => {
                let text = self.whole(text);
                Move::Finish(self.judge(&text))
            }
        }
    }

    /// Takes a text without its end. Free text is continued, as long as it grows; a value of a
    /// form is not, because what holds a model to a form begins at its beginning.
    fn take_cut(&mut self, text: &str, output_tokens: u32) -> Move {
        let before = self.so_far.len();
        let whole = joined(&self.so_far, text);
        // A character that was cut in its middle is written anew.
        whole.trim_end_matches(char::REPLACEMENT_CHARACTER).clone_into(&mut self.so_far);
        let grows = (before.saturating_add(1)..CUT_BYTES_MAX).contains(&self.so_far.len());
        if self.constraint == Constraint::Free && grows {
            return Move::Again;
        }
        let why = format!("the model's output was cut off after {output_tokens} tokens");
        Move::Finish(self.failure(&why))
    }

    /// A text after what was written of it before; nothing is waited for any more.
    fn whole(&mut self, text: &str) -> String {
        joined(&std::mem::take(&mut self.so_far), text)
    }

    /// The end of a run that cannot go on, for the miner's own reasons too; what there is of an
    /// answer that was cut off comes first, and is all of the answer to `inferMessages`. A miner that
    /// ends it for want of time or money says so by another status.
    #[must_use]
    pub fn failure(&self, why: &str) -> Ending {
        if self.so_far.is_empty() {
            return self.ending(Reason::Error, why);
        }
        if self.terms.is_some() {
            return self.ending(Reason::Length, &self.so_far);
        }
        self.ending(Reason::Error, &format!("{}\n\n{CUT_OFF}{why}]", self.so_far))
    }

    fn ending(&self, reason: Reason, response: &str) -> Ending {
        let answer = self.method.map_or_else(
            || response.to_owned(),
            |method| Answer::plain(method, reason, response).to_json(),
        );
        Ending { status: reason.status(), answer }
    }

    /// Judges a text without calls by the rule of the method.
    fn judge(&self, text: &str) -> Ending {
        match &self.constraint {
            Constraint::Free | Constraint::Call | Constraint::Json { .. } => {
                self.ending(Reason::Stop, text)
            }
            Constraint::OneOf(values) => {
                let trimmed = text.trim();
                if values.iter().any(|value| value == trimmed) {
                    return self.ending(Reason::Stop, trimmed);
                }
                let shown = shorten(trimmed);
                let shown = Quoted(&shown);
                self.failure(&format!("the model's output is none of allowedValues: {shown}"))
            }
            Constraint::Integer { .. } => match Integer::first_in(text) {
                Some(number) => {
                    let (min, max) = self.bounds;
                    self.ending(Reason::Stop, &number.clamp(min, max).to_string())
                }
                None => {
                    let shown = shorten(text.trim());
                    let shown = Quoted(&shown);
                    self.failure(&format!("there is no integer in the model's output: {shown}"))
                }
            },
        }
    }

    fn take_calls(&mut self, text: &str, calls: &[ToolCall]) -> Move {
        if self.tools.is_empty() {
            return Move::Finish(self.failure("the model called a tool, and it has none"));
        }
        let calls = self.name_calls(calls);
        self.fates = self.decide(&calls);
        let to_run: Vec<_> = self.fates.iter().filter_map(Fate::to_run).cloned().collect();
        let hands_back = self.fates.iter().any(|fate| matches!(fate, Fate::HandBack(_)));
        if !hands_back && self.round_trips_left == Some(0) {
            return Move::Finish(self.ending(Reason::MaxIterations, text));
        }
        self.messages.push(Message {
            tool_calls: calls,
            ..conversation::message(Role::Assistant, text.to_owned())
        });
        if to_run.is_empty() { self.results(&[]) } else { Move::Tools(to_run) }
    }

    /// The calls with names of their own: back ends give any, or the same again.
    fn name_calls(&self, calls: &[ToolCall]) -> Vec<ToolCall> {
        let earlier = self.messages.iter().flat_map(|message| &message.tool_calls);
        let taken: BTreeSet<&str> = earlier.map(|call| call.id.as_str()).collect();
        let free = (taken.len()..).map(|number| format!("call_{number}"));
        let free = free.filter(|id| !taken.contains(id.as_str()));
        free.zip(calls).map(|(id, call)| ToolCall { id, ..call.clone() }).collect()
    }

    fn decide(&self, calls: &[ToolCall]) -> Vec<Fate> {
        let mut running = 0;
        let mut fates = Vec::new();
        for ToolCall { id, name, arguments } in calls {
            let id = id.clone();
            let wrong = |why| Fate::Wrong { id: id.clone(), why };
            fates.push(if self.functions.has(name) {
                match self.functions.encode(name, arguments) {
                    Ok(calldata) => Fate::HandBack(PendingCall { id, calldata }),
                    Err(why) => wrong(why),
                }
            } else if !self.miner_tools.contains(name) {
                wrong(self.no_such_tool(name))
            } else if running >= TOOL_CALLS_MAX {
                wrong(format!("more than {TOOL_CALLS_MAX} calls at once"))
            } else {
                running = running.saturating_add(1);
                Fate::Run(ToolCall { id, name: name.clone(), arguments: arguments.clone() })
            });
        }
        fates
    }

    fn no_such_tool(&self, name: &str) -> String {
        let known: Vec<_> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
        let name = shorten(name);
        format!("there is no tool {}; there are {}", Quoted(&name), known.join(", "))
    }

    /// Takes the results of the calls of the last [`Move::Tools`], in their order. One that is
    /// missing is told to the model as such.
    pub fn results(&mut self, results: &[String]) -> Move {
        let mut results = results.iter();
        let mut pending = Vec::new();
        for fate in std::mem::take(&mut self.fates) {
            match fate {
                Fate::Run(ToolCall { id, .. }) => {
                    let text = results.next().cloned();
                    let text = text.unwrap_or_else(|| error("the tool gave no result"));
                    self.messages.push(conversation::result(id, text));
                }
                Fate::Wrong { id, why } => {
                    self.messages.push(conversation::result(id, error(&why)));
                }
                Fate::HandBack(call) => pending.push(call),
            }
        }
        if pending.is_empty() { self.ask_again() } else { Move::Finish(self.hand_back(pending)) }
    }

    fn hand_back(&self, calls: Vec<PendingCall>) -> Ending {
        let answer = Answer {
            method: self.method,
            reason: Reason::ToolCalls,
            response: String::new(),
            hand_back: HandBack { messages: self.messages.clone(), calls },
            tool_calls: Vec::new(),
        };
        self.handing_back(&answer)
    }

    /// The end with an answer that has calls.
    fn handing_back(&self, answer: &Answer) -> Ending {
        let written = answer.to_json();
        if written.len() > ANSWER_BYTES_MAX {
            let bytes = written.len();
            return self.failure(&format!(
                "the answer takes {bytes} bytes; expected at most {ANSWER_BYTES_MAX}"
            ));
        }
        Ending { status: answer.reason.status(), answer: written }
    }

    /// The model wanted to call tools, and its back end could not read how, for it has a fault.
    fn take_unreadable(&mut self, text: &str, fault: &str) -> Move {
        if self.tools.is_empty() {
            return Move::Finish(self.failure("the model called a tool, and it has none"));
        }
        if self.round_trips_left == Some(0) {
            return Move::Finish(self.ending(Reason::MaxIterations, text));
        }
        let why = error(&format!("the calls of tools in your last message {fault}"));
        self.messages.push(conversation::message(Role::Assistant, text.to_owned()));
        self.messages.push(conversation::message(Role::User, why));
        self.ask_again()
    }

    /// A round trip is complete when the model is asked again.
    fn ask_again(&mut self) -> Move {
        self.round_trips_left = self.round_trips_left.map(|left| left.saturating_sub(1));
        Move::Again
    }
}

impl Fate {
    const fn to_run(&self) -> Option<&ToolCall> {
        match self {
            Self::Run(call) => Some(call),
            Self::HandBack(_) | Self::Wrong { .. } => None,
        }
    }

    fn fault(&self) -> Option<&str> {
        match self {
            Self::Wrong { why, .. } => Some(why),
            Self::Run(_) | Self::HandBack(_) => None,
        }
    }
}

fn names(tools: &[ToolSpec]) -> BTreeSet<String> {
    tools.iter().map(|tool| tool.name.clone()).collect()
}

/// A question, after its instructions if there are any.
fn question(system: &str, prompt: &str) -> Vec<Message> {
    let instructions =
        (!system.is_empty()).then(|| conversation::message(Role::System, system.to_owned()));
    let question = conversation::message(Role::User, prompt.to_owned());
    instructions.into_iter().chain([question]).collect()
}

/// A text and what follows it. A model that begins its message anew, or a server that gives back what
/// it was given, is not written down twice.
fn joined(so_far: &str, text: &str) -> String {
    let is_repeated = so_far.len() >= REPEATED_BYTES_MIN && text.starts_with(so_far);
    if is_repeated { text.to_owned() } else { format!("{so_far}{text}") }
}

/// A fault as a model reads it.
fn error(why: &str) -> String {
    format!("error: {why}")
}

#[cfg(test)]
mod tests;
