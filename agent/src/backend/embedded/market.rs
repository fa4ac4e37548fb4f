//! The model inside the process, as agents of the market ask it (docs/market.md section 9.3).
//!
//! It answers as the model of runs does, and what it does then is part of the rules by which members of a
//! committee agree: the choice of tools, the sentences, the short names. Whatever changes an answer here
//! needs an executor of another name; the golden cases of `executor/model` tell.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use infer::{FileError, Grammars, Model, Reading, Session, Threads};
use parking_lot::Mutex;
use types::Hash;

use super::arguments::Dates;
use super::{Embedded, Inner, Job, plain, turns, unfit};
use crate::backend::BackendError;
use crate::executor::{self, Chosen, Form, Inference, ModelAsk, ModelFault, Stop};
use crate::messages::{Constraint, End, Output};

/// How often a question that waits for its turn looks whether it is time to give up.
const TURN: Duration = Duration::from_millis(100);

/// A model inside the process that agents ask, one question at a time. It has a session of its own with
/// the whole context of the model, because what fits must not depend on the operator's settings.
#[derive(Debug)]
pub struct MarketModel {
    manifest: Hash,
    inner: Mutex<Inner>,
}

impl Embedded {
    /// The same model for agents of the market, on the same threads.
    #[must_use]
    pub fn for_market(&self) -> MarketModel {
        let inner = self.inner.lock();
        let session = inner.session.beside(NonZeroUsize::MAX);
        MarketModel::with(&self.model, session, Arc::clone(&inner.grammars))
    }
}

impl MarketModel {
    /// A model on these threads. Making it takes about a second.
    ///
    /// # Errors
    /// If the model's vocabulary cannot be held to a form.
    pub fn new(model: &Arc<Model>, threads: Threads) -> Result<Self, FileError> {
        let grammars = Arc::new(Grammars::new(Arc::clone(model))?);
        let session = Session::new(Arc::clone(model), threads, NonZeroUsize::MAX);
        Ok(Self::with(model, session, grammars))
    }

    fn with(model: &Model, session: Session, grammars: Arc<Grammars>) -> Self {
        // It always has the form of a hash.
        let manifest = Hash::parse(&model.manifest().hash()).unwrap_or(Hash::ZERO);
        Self { manifest, inner: Mutex::new(Inner { session, grammars }) }
    }

    /// Computes with what every processor has for which the program was compiled: slower, and the answers
    /// are the same, which is what this is there to show.
    pub fn compute_plainly(&self) {
        self.inner.lock().session.compute_plainly();
    }
}

impl executor::Model for MarketModel {
    fn manifest(&self) -> Hash {
        self.manifest
    }

    fn infer(&self, ask: &ModelAsk<'_>, stop: &Stop) -> Result<Inference, ModelFault> {
        let mut inner = loop {
            if let Some(inner) = self.inner.try_lock_for(TURN) {
                break inner;
            }
            // Another question is being answered.
            if stop.is_now() {
                return Err(given_up(stop));
            }
        };
        inner.session.record(ask.input_tokens_max);
        let answered = inner.answer_in_form(ask, stop);
        let is_exhausted = inner.session.is_exhausted();
        let readings = inner.session.recorded();
        match answered {
            Ok(Output { text, tool_calls, end, .. }) => Ok(Inference {
                text,
                tool_calls,
                is_cut: matches!(end, End::Length | End::CallCut),
                readings: readings.into_iter().map(reading).collect(),
                served: None,
            }),
            Err(_) if is_exhausted => Err(ModelFault::InputTokens),
            Err(BackendError::Cancelled) => Err(given_up(stop)),
            // Everything else follows from the question and the model's file.
            Err(error) => Err(ModelFault::Question(reason(&error))),
        }
    }
}

/// Why a question has no answer, for the receipt: nothing that differs between builds of this program, as
/// what the library of grammars says does.
fn reason(error: &BackendError) -> String {
    match error {
        BackendError::TooLong { .. } | BackendError::Model(_) => error.to_string(),
        BackendError::Refused { .. } => {
            "the model cannot be held to the form of the answer".to_owned()
        }
        BackendError::Unreachable { .. }
        | BackendError::Busy { .. }
        | BackendError::Failed { .. }
        | BackendError::Stalled { .. }
        | BackendError::Broken { .. }
        | BackendError::NoUsage { .. }
        | BackendError::WrongUsage { .. }
        | BackendError::Truncated { .. }
        | BackendError::Cancelled
        | BackendError::Open { .. } => "the model does not answer".to_owned(),
    }
}

/// Why an answer was given up.
fn given_up(stop: &Stop) -> ModelFault {
    ModelFault::Unable(match stop.check() {
        Err(executor::Halt::Unable(why)) => why,
        Err(executor::Halt::Exhausted(_)) | Ok(()) => "the miner stops".to_owned(),
    })
}

impl Inner {
    fn answer_in_form(&mut self, ask: &ModelAsk<'_>, stop: &Stop) -> Result<Output, BackendError> {
        if stop.is_now() {
            return Err(BackendError::Cancelled);
        }
        let ModelAsk { messages, form, output_tokens_max, input_tokens_max: _ } = *ask;
        let mut job = Job {
            messages: messages.to_vec(),
            tools: Vec::new(),
            constraint: Constraint::Free,
            thinks: false,
            so_far: String::new(),
            stops: Vec::new(),
            dates: Dates::Letters,
            output_tokens_max,
            stop: stop.clone(),
        };
        match form {
            Form::Plain(constraint) => {
                job.constraint = constraint.clone();
                self.answer(&job)
            }
            Form::Tools(tools) => {
                job.tools.clone_from(tools);
                self.answer(&job)
            }
            Form::Call(tools) => {
                job.tools.clone_from(tools);
                let call = self.call_once(&job, output_tokens_max)?;
                Ok(call.unwrap_or_else(nothing))
            }
            Form::Schema(schema) => {
                let grammar = self.grammars.json(schema).map_err(unfit)?;
                let turns = turns::turns(messages, &[]);
                self.generate(&job, &turns, output_tokens_max, Some(&grammar)).map(plain)
            }
        }
    }
}

/// An output that says nothing.
fn nothing() -> Output {
    let (text, thoughts, tool_calls) = (String::new(), None, Vec::new());
    Output { text, thoughts, tool_calls, output_tokens: 0, prompt_tokens: 0, end: End::Stop }
}

/// A reading as receipts have it.
fn reading(reading: Reading) -> executor::Reading {
    let numbers = |tokens: Vec<infer::Token>| tokens.iter().map(|it| it.number()).collect();
    let one =
        |it: infer::Chosen| Chosen { token: it.token.number(), scores: it.scores.map(Hash::new) };
    let all = |chosen: Vec<infer::Chosen>| chosen.into_iter().map(one).collect::<Vec<_>>();
    match reading {
        Reading::Answer { prompt, chosen, end } => executor::Reading {
            prompt: numbers(prompt),
            chosen: all(chosen),
            end: end.map(one),
            weighed: Vec::new(),
        },
        Reading::Choice { prompt, texts, index } => {
            let chosen = texts.get(index).filter(|_| texts.len() > 1).cloned().unwrap_or_default();
            let bare = |it: Chosen| Chosen { scores: None, ..it };
            executor::Reading {
                prompt: numbers(prompt),
                chosen: all(chosen).into_iter().map(bare).collect(),
                end: None,
                weighed: texts.into_iter().map(all).collect(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use infer::{AnswerError, GrammarError};

    use super::super::unfit;
    use super::*;

    #[test]
    fn what_the_library_of_grammars_says_is_in_no_receipt() {
        let panic = || "panic: attempt to negate with overflow\n   0: core::panicking".to_owned();
        let schema = GrammarError::Schema { of: "answer".to_owned(), reason: panic() };
        assert_eq!(reason(&unfit(schema)), "the model cannot be held to the form of the answer");
        let stuck = AnswerError::Grammar { tokens: 7, reason: panic() };
        let stuck = reason(&BackendError::Model(stuck.to_string()));
        assert_eq!(stuck, "the model failed: the grammar cannot go on after 7 tokens");
        let long = BackendError::TooLong { tokens_min: 9, output_tokens: 1, context_tokens_max: 8 };
        assert_eq!(reason(&long), long.to_string());
    }
}
