//! The course of `inferMessages`: what follows from outputs where functions and answers have schemas
//! (docs/agent-methods.md section 13).

use types::tx::TOOL_CALLS_MAX;

use super::{AgentSession, Answer, Fate, Move, Reason, conversation, error, joined, names};
use crate::messages::{Constraint, End, Message, Output, Role, ToolCall, ToolSpec};
use crate::methods::messages::{first_of, told, unfenced};
use crate::methods::{Declared, Messages, Method, Refused, Schema, ToolChoice};

/// So many outputs that are no answer are told to the model; the next one ends the run.
const MISSES_MAX: u32 = 2;

/// Who runs a call.
#[derive(Clone, Copy, Debug)]
enum Runner {
    Miner,
    Requester,
}

/// What only this method asks of a course.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    /// The functions that may be called.
    functions: Vec<Declared>,
    /// What the text of the answer must fit.
    schema: Option<Schema>,
    stops: Vec<String>,
    /// Tokens that the model may still put out; no limit if there is none.
    tokens_left: Option<u32>,
    misses_left: u32,
}

impl Terms {
    /// Texts before the first of which the answer ends.
    pub(super) fn stops(&self) -> &[String] {
        &self.stops
    }

    /// Tokens that the model may still put out.
    pub(super) const fn tokens_left(&self) -> Option<u32> {
        self.tokens_left
    }

    fn find(&self, name: &str) -> Option<&Declared> {
        self.functions.iter().find(|function| function.name == name)
    }
}

impl AgentSession {
    /// Begins with what is asked. Where functions must or must not be called, the miner's tools are of
    /// no use, and not offered.
    pub(super) fn begin_messages(
        &mut self,
        asked: &Messages,
        tools: &[ToolSpec],
    ) -> Result<(), Refused> {
        let is_twin = |function: &Declared| tools.iter().any(|tool| tool.name == function.name);
        if let Some(index) = asked.functions.iter().position(is_twin) {
            let field = format!("args.functions[{index}].name");
            let got = asked.functions.get(index).map_or("", |function| function.name.as_str());
            let expected = "a name that no tool of the run's whitelist has";
            return Err(Refused::new(field, got, expected).of(Method::InferMessages));
        }
        let own = if asked.choice == ToolChoice::Auto { tools } else { &[] };
        let offered = asked.offered();
        let is_offered = |function: &&Declared| offered.iter().any(|it| it.name == function.name);
        let terms = Terms {
            functions: asked.functions.iter().filter(is_offered).cloned().collect(),
            schema: asked.response_schema.as_ref().map(|it| it.schema.clone()),
            stops: asked.stops.clone(),
            tokens_left: asked.output_tokens_max,
            misses_left: MISSES_MAX,
        };
        self.messages.clone_from(&asked.messages);
        self.miner_tools = names(own);
        self.tools = own.iter().cloned().chain(offered).collect();
        if let Some(schema) = &terms.schema {
            self.instruct(&told(schema));
            let alone = self.tools.is_empty();
            self.constraint = Constraint::Json { schema: schema.form().clone(), alone };
        } else if asked.choice.is_forced() {
            self.constraint = Constraint::Call;
        }
        self.terms = Some(terms);
        Ok(())
    }

    /// Adds to what the model is told before the conversation.
    fn instruct(&mut self, text: &str) {
        match self.messages.first_mut().filter(|first| first.role == Role::System) {
            Some(system) => system.text = format!("{}\n\n{text}", system.text).trim().to_owned(),
            None => {
                self.messages.insert(0, conversation::message(Role::System, text.to_owned()));
            }
        }
    }

    /// Takes what the model said.
    pub(super) fn take_message(&mut self, output: &Output) -> Move {
        let Output { text, tool_calls, output_tokens, end, thoughts: _, prompt_tokens: _ } = output;
        if let Some(left) = self.terms.as_mut().and_then(|terms| terms.tokens_left.as_mut()) {
            *left = left.saturating_sub(*output_tokens);
        }
        if tool_calls.is_empty()
            && let Some(before) = self.stopped(text)
        {
            return self.finish(Reason::Stop, &before);
        }
        match end {
            End::Length => self.take_cut_message(text),
            End::CallCut if self.is_spent() => self.finish(Reason::Length, ""),
            End::CallCut => {
                let text = self.whole(text);
                let why = format!("were cut off after {output_tokens} tokens; make shorter ones");
                self.miss(&text, &format!("the calls of tools in your last message {why}"))
            }
            End::Stop | End::ToolCalls if !tool_calls.is_empty() => {
                let text = self.whole(text);
                self.take_declared(&text, tool_calls)
            }
            End::ToolCalls => {
                let text = self.whole(text);
                self.miss(&text, "the calls of tools in your last message cannot be read")
            }
            End::Stop => {
                let text = self.whole(text);
                self.take_text(&text)
            }
        }
    }

    /// The answer before the first text at which it is to stop, if there is one in it.
    fn stopped(&self, text: &str) -> Option<String> {
        let stops = self.terms.as_ref().map_or(&[][..], Terms::stops);
        let whole = joined(&self.so_far, text);
        first_of(stops, &whole).and_then(|at| whole.get(..at)).map(str::to_owned)
    }

    fn is_spent(&self) -> bool {
        self.output_tokens_left() == Some(0)
    }

    fn finish(&self, reason: Reason, response: &str) -> Move {
        Move::Finish(self.ending(reason, response))
    }

    /// Takes a text without its end: free text is continued, as long as it grows.
    fn take_cut_message(&mut self, text: &str) -> Move {
        let before = self.so_far.len();
        let whole = joined(&self.so_far, text);
        whole.trim_end_matches(char::REPLACEMENT_CHARACTER).clone_into(&mut self.so_far);
        let grows = (before.saturating_add(1)..super::CUT_BYTES_MAX).contains(&self.so_far.len());
        if self.constraint == Constraint::Free && grows && !self.is_spent() {
            return Move::Again;
        }
        self.finish(Reason::Length, &self.so_far)
    }

    /// Takes a text that ended by itself.
    fn take_text(&mut self, text: &str) -> Move {
        match &self.constraint {
            Constraint::Call => {
                let known: Vec<_> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
                let why = format!("an answer without a call; call one of {}", known.join(", "));
                self.miss(text, &why)
            }
            Constraint::Json { .. } => {
                let json = unfenced(text);
                let schema = self.terms.as_ref().and_then(|terms| terms.schema.as_ref());
                match schema.map_or(Ok(()), |schema| schema.check_text(json)) {
                    Ok(()) => self.finish(Reason::Stop, json),
                    Err(why) => self.miss(text, &format!("your answer does not fit: {why}")),
                }
            }
            Constraint::Free | Constraint::OneOf(_) | Constraint::Integer { .. } => {
                self.finish(Reason::Stop, text)
            }
        }
    }

    /// An output that is no answer: the model is told why, a few times, and held to a form then if that
    /// is possible.
    fn miss(&mut self, text: &str, why: &str) -> Move {
        if self.is_spent() {
            return self.finish(Reason::Length, text);
        }
        if !self.may_miss() {
            return Move::Finish(self.failure(why));
        }
        if let Constraint::Json { alone, .. } = &mut self.constraint {
            *alone = true;
        }
        self.messages.push(conversation::message(Role::Assistant, text.to_owned()));
        self.messages.push(conversation::message(Role::User, error(why)));
        Move::Again
    }

    /// Whether one more output may be no answer.
    fn may_miss(&mut self) -> bool {
        let left = self.terms.as_mut().and_then(|terms| {
            terms.misses_left = terms.misses_left.checked_sub(1)?;
            Some(())
        });
        left.is_some()
    }

    /// Calls of functions that fit go to the requester, and nothing else of the output is done then: the
    /// requester would not see the results of the miner's tools. Else those are run, and the model is told
    /// what is wrong with the others.
    fn take_declared(&mut self, text: &str, calls: &[ToolCall]) -> Move {
        if self.constraint.callable(&self.tools).is_empty() {
            return self.miss(text, "there is no tool that may be called now");
        }
        let calls = self.name_calls(calls);
        let mut fitting = Vec::new();
        let mut fates = Vec::new();
        let mut running = 0_usize;
        for call in &calls {
            match self.fate_of(call) {
                Ok(Runner::Miner) if running < TOOL_CALLS_MAX => {
                    running = running.saturating_add(1);
                    fates.push(Fate::Run(call.clone()));
                }
                Ok(Runner::Miner) => {
                    let why = format!("more than {TOOL_CALLS_MAX} calls at once");
                    fates.push(Fate::Wrong { id: call.id.clone(), why });
                }
                Ok(Runner::Requester) => fitting.push(call.clone()),
                Err(why) => fates.push(Fate::Wrong { id: call.id.clone(), why }),
            }
        }
        if !fitting.is_empty() {
            fitting.truncate(TOOL_CALLS_MAX);
            return Move::Finish(self.handing_back(&Answer::calling(text, fitting)));
        }
        if self.is_spent() {
            return self.finish(Reason::Length, text);
        }
        let to_run: Vec<_> = fates.iter().filter_map(Fate::to_run).cloned().collect();
        if to_run.is_empty() && !self.may_miss() {
            let why = fates.iter().find_map(Fate::fault).unwrap_or("there are no calls");
            return Move::Finish(self.failure(&format!("the model's calls are wrong: {why}")));
        }
        self.fates = fates;
        self.messages.push(Message {
            tool_calls: calls,
            ..conversation::message(Role::Assistant, text.to_owned())
        });
        if to_run.is_empty() { self.results(&[]) } else { Move::Tools(to_run) }
    }

    /// Who runs a call. The error is a sentence for the model.
    fn fate_of(&self, call: &ToolCall) -> Result<Runner, String> {
        let ToolCall { id: _, name, arguments } = call;
        match self.terms.as_ref().and_then(|terms| terms.find(name)) {
            Some(function) => function.parameters.check(arguments).map(|()| Runner::Requester),
            None if self.miner_tools.contains(name) => Ok(Runner::Miner),
            None => Err(self.no_such_tool(name)),
        }
    }
}

#[cfg(test)]
mod tests;
