//! Which tool, with what, and what to say then.
//!
//! The model is too small to decide by writing. So it is asked how likely it finds the question,
//! once for each tool, if the tool were what the question is about: the tool that makes the question
//! likeliest is called, or none. Arguments are copied out of the conversation where the tool's
//! schema wants an address, a hash, a date or the like. With a result the model answers in one
//! sentence that has a value of the result in it, and no number that nobody has named.

use infer::{Event, Generated, Role as Speaker, Tool};
use serde_json::Value;

use super::facts::Facts;
use super::names::Names;
use super::{Inner, Job, arguments, called, flow, plain, prompt, turns, unfit};
use crate::backend::BackendError;
use crate::messages::{End, Message, Output, Role, ToolSpec};
use crate::text::cut;

/// What stands before the description of a tool.
const ABOUT: &str = "Write a question that is answered with the help of a tool.\nTool: ";
/// The description of what needs no tool.
const NO_TOOL: &str = "none is needed. General knowledge, a text, a conversation.";
/// How much of a question and of a description is looked at for the choice.
const QUESTION_BYTES_MAX: usize = 400;
const DESCRIPTION_BYTES_MAX: usize = 300;
/// The most tokens of the sentence that answers from a result.
const SENTENCE_TOKENS_MAX: u32 = 96;

impl Inner {
    /// Calls a tool, or answers: from the results if there are any. What is counted as the prompt is
    /// the conversation with the descriptions of its tools, which only grows; what was read for the
    /// choice is not.
    pub(super) fn answer_with_tools(
        &mut self,
        job: &Job,
        output_tokens_max: u32,
    ) -> Result<Output, BackendError> {
        let turns = turns::turns(&job.messages, &job.tools);
        let tokens = prompt(self.session.model(), &turns, "").tokens().len();
        let output = self.call_or_answer(job, output_tokens_max)?;
        Ok(Output { prompt_tokens: u32::try_from(tokens).unwrap_or(u32::MAX), ..output })
    }

    fn call_or_answer(
        &mut self,
        job: &Job,
        output_tokens_max: u32,
    ) -> Result<Output, BackendError> {
        let (before, after) = asked(&job.messages);
        let facts = Facts::of(after);
        if !facts.is_empty() {
            return self.answer_from(job, before, &facts, output_tokens_max);
        }
        if let Some(call) = self.call_once(job, output_tokens_max)? {
            return Ok(call);
        }
        // Tools that are not called are of no interest, and failures are.
        let turns = turns::turns(&job.messages, &[]);
        Ok(plain(self.generate(job, &turns, output_tokens_max, None)?))
    }

    /// A call of a tool, unless there is a result already or none is needed.
    pub(super) fn call_once(
        &mut self,
        job: &Job,
        output_tokens_max: u32,
    ) -> Result<Option<Output>, BackendError> {
        let (before, after) = asked(&job.messages);
        if !Facts::of(after).is_empty() {
            return Ok(None);
        }
        let question = before.last().map(|message| message.text.as_str()).unwrap_or_default();
        let callable: Vec<ToolSpec> = job
            .tools
            .iter()
            .filter_map(|tool| arguments::narrowed(tool, before, job.dates))
            .filter(|tool| !after.iter().any(|message| calls(message, &tool.name)))
            .collect();
        let tool = self.choose_tool(job, question, &callable)?;
        tool.map(|tool| self.call(job, tool, output_tokens_max)).transpose()
    }

    /// A call, whatever the question is: of the tool that makes it likeliest.
    pub(super) fn call_any(
        &mut self,
        job: &Job,
        output_tokens_max: u32,
    ) -> Result<Output, BackendError> {
        let (before, _) = asked(&job.messages);
        let question = before.last().map(|message| message.text.as_str()).unwrap_or_default();
        let narrowed = |tool: &ToolSpec| arguments::narrowed(tool, before, job.dates);
        let tools: Vec<_> =
            job.tools.iter().map(|tool| narrowed(tool).unwrap_or_else(|| tool.clone())).collect();
        let chosen = match &tools[..] {
            [] | [_] => tools.first(),
            _ => {
                self.likeliest(job, question, &tools, f64::NEG_INFINITY)?.or_else(|| tools.first())
            }
        };
        let Some(tool) = chosen else {
            return Err(BackendError::Model("a call is wanted, and there are no tools".to_owned()));
        };
        self.call(job, tool, output_tokens_max)
    }

    /// A call of a tool, or JSON of a schema.
    pub(super) fn answer_json(
        &mut self,
        job: &Job,
        schema: &Value,
        is_alone: bool,
        output_tokens_max: u32,
    ) -> Result<Output, BackendError> {
        if !is_alone && let Some(call) = self.call_once(job, output_tokens_max)? {
            return Ok(call);
        }
        let grammar = self.grammars.json(schema).map_err(unfit)?;
        let turns = turns::turns(&job.messages, &[]);
        Ok(plain(self.generate(job, &turns, output_tokens_max, Some(&grammar))?))
    }

    /// The tool that makes the question likeliest; none if it is likelier without one.
    fn choose_tool<'a>(
        &mut self,
        job: &Job,
        question: &str,
        tools: &'a [ToolSpec],
    ) -> Result<Option<&'a ToolSpec>, BackendError> {
        let question = shown(question);
        if question.is_empty() || tools.is_empty() {
            return Ok(None);
        }
        let without = self.likelihood(job, NO_TOOL, &question)?;
        self.likeliest(job, &question, tools, without)
    }

    /// The tool that makes the question likelier than anything else, and than so much.
    fn likeliest<'a>(
        &mut self,
        job: &Job,
        question: &str,
        tools: &'a [ToolSpec],
        least: f64,
    ) -> Result<Option<&'a ToolSpec>, BackendError> {
        let question = shown(question);
        let (mut chosen, mut highest) = (None, least);
        for tool in tools {
            let description = cut(&tool.description, DESCRIPTION_BYTES_MAX);
            let about = format!("{}. {description}", tool.name.replace('_', " "));
            let likelihood = self.likelihood(job, &about, &question)?;
            if likelihood > highest {
                (chosen, highest) = (Some(tool), likelihood);
            }
        }
        Ok(chosen)
    }

    /// How likely a question is about something: the mean logarithm over its tokens.
    fn likelihood(&mut self, job: &Job, about: &str, question: &str) -> Result<f64, BackendError> {
        let turns = [(Speaker::User, format!("{ABOUT}{about}"))];
        let prompt = prompt(self.session.model(), &turns, "");
        let choice = self
            .session
            .choose(&prompt, &[question], &mut |_: Event<'_>| flow(&job.stop))
            .map_err(|error| self.failed(&error, job.output_tokens_max))?
            .ok_or(BackendError::Cancelled)?;
        Ok(choice.scores.first().copied().unwrap_or(f64::NEG_INFINITY))
    }

    /// A call of this tool, whose arguments fit its schema.
    fn call(
        &mut self,
        job: &Job,
        tool: &ToolSpec,
        output_tokens_max: u32,
    ) -> Result<Output, BackendError> {
        let turns = turns::turns(&job.messages, std::slice::from_ref(tool));
        let grammar =
            self.grammars.tool_call(&Tool { name: &tool.name, arguments: &tool.parameters });
        let grammar = grammar.map_err(unfit)?;
        Ok(called(self.generate(job, &turns, output_tokens_max, Some(&grammar))?))
    }

    /// A sentence that answers the last of `messages` from what tools have given.
    fn answer_from(
        &mut self,
        job: &Job,
        messages: &[Message],
        facts: &Facts,
        output_tokens_max: u32,
    ) -> Result<Output, BackendError> {
        let mut names = Names::default();
        let mut messages = messages.to_vec();
        let mut question = String::new();
        if let Some(last) = messages.last_mut() {
            question = names.hide(&last.text);
            let facts = names.hide(&facts.lines());
            last.text = format!("{facts}\n\n{question}");
        }
        let values: Vec<_> = facts.values().iter().map(|value| names.hide(value)).collect();
        let wanted: Vec<_> =
            values.iter().filter(|value| !question.contains(*value)).map(String::as_str).collect();
        let text = messages.last().map(|last| last.text.clone()).unwrap_or_default();
        let grammar = self.grammars.sentence(&text, &wanted).map_err(unfit)?;
        let turns = turns::turns(&messages, &[]);
        let tokens_max = output_tokens_max.min(SENTENCE_TOKENS_MAX);
        let generated = self.generate(job, &turns, tokens_max, Some(&grammar))?;
        let is_cut_by_the_payer = tokens_max == output_tokens_max;
        let Generated { ref text, .. } = generated;
        let text = names.show(text.trim());
        let output = Output { text, ..plain(generated) };
        // The model does not come to an end; the sentence has what was asked for, or nothing has.
        let end = if is_cut_by_the_payer { output.end } else { End::Stop };
        Ok(Output { end, ..output })
    }
}

/// A question as it is weighed.
fn shown(question: &str) -> String {
    Names::default().hide(cut(question, QUESTION_BYTES_MAX).trim())
}

/// The conversation up to its last question, and what came after that.
fn asked(messages: &[Message]) -> (&[Message], &[Message]) {
    let at = messages.iter().rposition(|message| message.role == Role::User);
    messages.split_at(at.map_or(0, |at| at.saturating_add(1)))
}

/// Whether a message calls this tool.
fn calls(message: &Message, name: &str) -> bool {
    message.tool_calls.iter().any(|call| call.name == name)
}
