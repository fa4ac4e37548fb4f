//! Forms that an answer must have. They are held token by token: what does not fit cannot be said.
//!
//! An answer that ends by itself has the form. One that was cut off at the most tokens is the
//! beginning of an answer that has it.

mod environment;
mod integer;
mod schema;
mod sentence;

use std::sync::Arc;
use std::thread;

use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use serde_json::Value;

use crate::error::{AnswerError, FileError, GrammarError};
use crate::model::Model;
use crate::tokenizer::Token;

/// What opens a call of a tool in [`Grammars::tool_call_or_answer`].
pub const CALL_START: &str = "<tool_call>";
/// What closes it.
pub const CALL_END: &str = "</tool_call>";

/// Stack for making a grammar.
const STACK_BYTES: usize = 64 * 1024 * 1024;

/// A tool that a model may call.
#[derive(Clone, Copy, Debug)]
pub struct Tool<'a> {
    /// Its name.
    pub name: &'a str,
    /// The JSON schema of its arguments.
    pub arguments: &'a Value,
}

/// Makes grammars for a model. Making one of these takes about a second, so it is made once.
pub struct Grammars {
    model: Arc<Model>,
    factory: ParserFactory,
}

impl std::fmt::Debug for Grammars {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grammars").finish_non_exhaustive()
    }
}

/// A form for answers of one model.
#[derive(Clone)]
pub struct Grammar {
    model: Arc<Model>,
    matcher: Matcher,
}

impl std::fmt::Debug for Grammar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grammar").finish_non_exhaustive()
    }
}

impl Grammars {
    /// # Errors
    /// If the vocabulary cannot be used for grammars.
    pub fn new(model: Arc<Model>) -> Result<Self, FileError> {
        let factory = environment::factory(&model);
        let mut factory =
            factory.map_err(|error| FileError::Grammars { reason: error.to_string() })?;
        factory.quiet();
        factory.limits_mut().verbose_errors = false;
        Ok(Self { model, factory })
    }

    /// Exactly one of these texts.
    ///
    /// # Errors
    /// If there is none, or one is empty.
    pub fn one_of(&self, texts: &[&str]) -> Result<Grammar, GrammarError> {
        if texts.is_empty() {
            return Err(GrammarError::NoText);
        }
        if let Some(at) = texts.iter().position(|text| text.is_empty()) {
            return Err(GrammarError::EmptyText { at });
        }
        let texts: Vec<_> = texts.iter().map(|text| literal(text)).collect();
        self.lark(&format!("start: {}", texts.join(" | ")), "the texts")
    }

    /// A whole number in decimal, in its one written form: no sign but `-`, no leading zeros. The
    /// bounds are decimal texts from -2^255 to 2^256-1, and may be reached; without them it is any number
    /// of 256 bits with a sign.
    ///
    /// # Errors
    /// If a bound is not such a number, or none lies between them.
    pub fn integer(&self, min: Option<&str>, max: Option<&str>) -> Result<Grammar, GrammarError> {
        let pattern = integer::pattern(min, max)?;
        self.lark(&format!("start: /{pattern}/"), "the bounds")
    }

    /// JSON that fits a schema, with no white space between its parts and no member that the schema
    /// does not name.
    ///
    /// # Errors
    /// If the schema has something that is not supported.
    pub fn json(&self, schema: &Value) -> Result<Grammar, GrammarError> {
        self.lark(&format!("start: {}", schema::rule(schema)), "answer")
    }

    /// Either text that does not begin with `<`, or one call of a tool:
    /// `<tool_call>{"name":…,"arguments":…}</tool_call>`, whose arguments fit the tool's schema.
    ///
    /// # Errors
    /// If a name is empty or stands twice, or a schema has something that is not supported.
    pub fn tool_call_or_answer(&self, tools: &[Tool<'_>]) -> Result<Grammar, GrammarError> {
        let mut choices = vec!["/(?s:[^<].*)/".to_owned()];
        for (at, tool) in tools.iter().enumerate() {
            let is_twice = tools[..at].iter().any(|other| other.name == tool.name);
            if tool.name.is_empty() || is_twice {
                return Err(GrammarError::ToolName { name: tool.name.to_owned() });
            }
            let call = call(tool);
            // Alone first, so that the error names the tool.
            drop(self.lark(&format!("start: {call}"), tool.name)?);
            choices.push(call);
        }
        self.lark(&format!("start: {}", choices.join(" | ")), "the tools")
    }

    /// A call of one tool, as in [`Self::tool_call_or_answer`].
    ///
    /// # Errors
    /// If the name is empty, or the schema has something that is not supported.
    pub fn tool_call(&self, tool: &Tool<'_>) -> Result<Grammar, GrammarError> {
        if tool.name.is_empty() {
            return Err(GrammarError::ToolName { name: String::new() });
        }
        self.lark(&format!("start: {}", call(tool)), tool.name)
    }

    /// One sentence of at least one character, which ends at the first `.`, `!` or `?`. It has no
    /// digits but those of numbers, dates and times that stand in `text`, and somewhere at least one
    /// of the texts of `needed`, if there are any.
    ///
    /// # Errors
    /// If there is more in it than the library can hold.
    pub fn sentence(&self, text: &str, needed: &[&str]) -> Result<Grammar, GrammarError> {
        self.lark(&format!("start: /{}/", sentence::pattern(text, needed)), "the sentence")
    }

    fn lark(&self, grammar: &str, of: &str) -> Result<Grammar, GrammarError> {
        let grammar = TopLevelGrammar::from_lark(grammar.to_owned());
        let matcher = on_a_large_stack(|| Matcher::new(self.factory.create_parser(grammar)));
        match matcher.get_error() {
            None => Ok(Grammar { model: Arc::clone(&self.model), matcher }),
            Some(reason) => Err(GrammarError::Schema { of: of.to_owned(), reason: told(&reason) }),
        }
    }
}

/// What the library says, without the addresses and names of functions that follow where it panicked.
fn told(reason: &str) -> String {
    reason.lines().next().unwrap_or_default().to_owned()
}

/// Runs something on a thread with [`STACK_BYTES`] of stack: the library calls itself for each reference
/// and each member of a schema. Where there is no thread, on this one.
fn on_a_large_stack<T: Send>(what: impl FnOnce() -> T + Send) -> T {
    let mut what = Some(what);
    let mut run = || what.take().map(|what| what());
    let done = thread::scope(|scope| {
        let builder = thread::Builder::new().name("grammar".to_owned()).stack_size(STACK_BYTES);
        builder
            .spawn_scoped(scope, &mut run)
            .ok()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    done.unwrap_or_else(run).expect("it ran on no other thread")
}

/// A regular expression, with its anchors, for the whole numbers from `min` to `max` in decimal, each in its
/// one written form: for a string of a JSON schema, where numbers do not have 256 bits. The bounds are
/// as in [`Grammars::integer`].
///
/// # Errors
/// As [`Grammars::integer`].
pub fn integer_pattern(min: Option<&str>, max: Option<&str>) -> Result<String, GrammarError> {
    Ok(format!("^({})$", integer::pattern(min, max)?))
}

/// The beginning of a call of this tool, up to its arguments.
#[must_use]
pub fn call_beginning(name: &str) -> String {
    format!("{CALL_START}{{\"name\":{},\"arguments\":", Value::from(name))
}

fn call(tool: &Tool<'_>) -> String {
    let beginning = literal(&call_beginning(tool.name));
    let end = literal(&format!("}}{CALL_END}"));
    format!("{beginning} {} {end}", schema::rule(tool.arguments))
}

/// A text in a grammar. The grammar's texts are written as those of JSON.
fn literal(text: &str) -> String {
    Value::from(text).to_string()
}

impl Grammar {
    /// Begins an answer of this form.
    pub(crate) fn run(&self, model: &Arc<Model>) -> Result<Run, AnswerError> {
        if !Arc::ptr_eq(model, &self.model) {
            return Err(AnswerError::ForeignGrammar);
        }
        Ok(Run { matcher: self.matcher.deep_clone() })
    }
}

/// An answer of a form, on its way.
pub(crate) struct Run {
    matcher: Matcher,
}

impl Run {
    fn fault(&self, tokens: u32) -> AnswerError {
        let reason = self.matcher.get_error();
        let reason = reason.map_or_else(|| "it stopped".to_owned(), |reason| told(&reason));
        AnswerError::Grammar { tokens, reason }
    }

    /// Whether the form is complete and allows nothing more.
    pub(crate) fn is_done(&self, tokens: u32) -> Result<bool, AnswerError> {
        if self.matcher.is_error() {
            Err(self.fault(tokens))
        } else {
            Ok(self.matcher.is_stopped())
        }
    }

    /// Takes and answers the tokens about which there is no choice.
    pub(crate) fn forced(&mut self) -> Vec<Token> {
        self.matcher.consume_ff_tokens().into_iter().map(Token::new).collect()
    }

    /// The numbers of the tokens that may come next, from the lowest on.
    pub(crate) fn allowed(&mut self, tokens: u32) -> Result<Vec<usize>, AnswerError> {
        match self.matcher.compute_mask() {
            Err(_) => Err(self.fault(tokens)),
            Ok(mask) => {
                let mut allowed = Vec::new();
                mask.iter_set_entries(|token| allowed.push(token));
                Ok(allowed)
            }
        }
    }

    /// Goes on with a token that is allowed.
    pub(crate) fn take(&mut self, token: Token, tokens: u32) -> Result<(), AnswerError> {
        // The library's own error is kept by the matcher, and told by `fault`.
        match self.matcher.consume_token(token.number()) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.fault(tokens)),
        }
    }
}
