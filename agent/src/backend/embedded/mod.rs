//! The back end inside the process: the crate `infer`, on threads of its own.
//!
//! One question is answered at a time; others wait. The answer is a function of the question and the
//! model file alone (docs/model.md).

mod arguments;
mod facts;
mod market;
mod names;
#[cfg(test)]
mod tests;
mod tools;
mod turns;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use infer::{
    CALL_END, CALL_START, Event, Flow, Generated, Grammar, Grammars, Limits, Model, Prompt,
    Session, Threads, Turn,
};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use self::arguments::Dates;
pub use self::market::MarketModel;
use crate::backend::{Backend, BackendError, Health, Manifest};
use crate::executor::{self, Stop};
use crate::messages::{
    Constraint, End, Iteration, Message, NOW_ANSWER, Output, ToolCall, ToolSpec,
};
use crate::methods::first_of;
use crate::model_file::{NoPlace, default_path};
use crate::text::with_causes;

/// Settings of the model inside the process; the table `[embedded]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EmbeddedConfig {
    /// The model file, in the GGUF form; if none is named, that of [`default_path`].
    pub file: Option<PathBuf>,
    /// Whether the file must be the one that this program knows, by its hash.
    pub pinned: bool,
    /// Threads that compute.
    pub threads: NonZeroUsize,
    /// Tokens of prompt and output together; the model may have room for fewer.
    pub context_tokens_max: NonZeroUsize,
}

impl Default for EmbeddedConfig {
    fn default() -> Self {
        Self {
            file: None,
            pinned: true,
            threads: const { NonZeroUsize::new(2).expect("2 is not 0") },
            context_tokens_max: const { NonZeroUsize::new(2_048).expect("2048 is not 0") },
        }
    }
}

impl EmbeddedConfig {
    /// The model file.
    ///
    /// # Errors
    /// If none is named and there is no place for one.
    pub fn path(&self) -> Result<PathBuf, NoPlace> {
        self.file.clone().map_or_else(|| default_path(&infer::SMOLLM2_135M), Ok)
    }

    /// The name of the model: that of its file, without the ending; empty if there is no place for
    /// a file.
    #[must_use]
    pub fn model_name(&self) -> String {
        let path = self.path().ok();
        let stem = path.as_deref().and_then(Path::file_stem);
        stem.unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Why the model inside the process cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// There is no file.
    #[error(
        "there is no model file at {path}: `ombra model fetch --file {path}` gets one",
        path = .0.display()
    )]
    Missing(PathBuf),
    /// No file is named, and there is no place where one would be.
    #[error("embedded.file is not given: {0}")]
    NoPlace(#[from] NoPlace),
    /// The file is another one, or no model.
    #[error("embedded.file: {}", with_causes(.0))]
    Model(#[from] infer::ModelError),
    /// The model's vocabulary cannot be held to a form.
    #[error("embedded.file: {}", with_causes(.0))]
    Grammars(#[from] infer::FileError),
    /// The system gives no threads.
    #[error("embedded.threads: {0}")]
    Threads(String),
}

/// A model inside the process.
#[derive(Clone, Debug)]
pub struct Embedded {
    manifest: Manifest,
    /// Counts while `inner` answers.
    model: Arc<Model>,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    session: Session,
    grammars: Arc<Grammars>,
}

/// A question that outlives its asker.
struct Job {
    messages: Vec<Message>,
    tools: Vec<ToolSpec>,
    constraint: Constraint,
    thinks: bool,
    so_far: String,
    stops: Vec<String>,
    dates: Dates,
    output_tokens_max: u32,
    stop: Stop,
}

impl Embedded {
    /// Opens the model file; takes about a second and, while it lasts, a thread.
    ///
    /// # Errors
    /// When the file is not the model that is wanted, or there are no threads.
    pub fn open(config: &EmbeddedConfig) -> Result<Self, EmbeddedError> {
        let EmbeddedConfig { file: _, pinned, threads, context_tokens_max } = config;
        let file = config.path()?;
        if !file.exists() {
            return Err(EmbeddedError::Missing(file));
        }
        let model = if *pinned {
            Model::open_pinned(&file, &infer::SMOLLM2_135M)?
        } else {
            Model::open(&file)?
        };
        let model = Arc::new(model);
        let threads =
            Threads::new(*threads).map_err(|error| EmbeddedError::Threads(error.to_string()))?;
        let session = Session::new(Arc::clone(&model), threads, *context_tokens_max);
        let hash = model.manifest().sha256.get(..12).unwrap_or_default();
        let manifest = Manifest {
            name: format!("embedded:{hash}"),
            model: config.model_name(),
            deterministic: true,
            context_tokens_max: u32::try_from(session.context_tokens_max()).unwrap_or(u32::MAX),
            constrains: true,
        };
        let grammars = Arc::new(Grammars::new(Arc::clone(&model))?);
        Ok(Self { manifest, model, inner: Arc::new(Mutex::new(Inner { session, grammars })) })
    }
}

#[async_trait]
impl Backend for Embedded {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn for_market(&self) -> Option<Arc<dyn executor::Model>> {
        Some(Arc::new(Self::for_market(self)))
    }

    async fn health(&self) -> Health {
        Health::Ready
    }

    async fn fits(&self, iteration: &Iteration<'_>) -> Result<u64, BackendError> {
        let Iteration { messages, tools, so_far, output_tokens_max, .. } = *iteration;
        let context_tokens_max = self.manifest.context_tokens_max;
        let turns = turns::turns(messages, tools);
        let (model, so_far) = (Arc::clone(&self.model), so_far.to_owned());
        let count = move || prompt(&model, &turns, &so_far).tokens().len();
        let counted = tokio::task::spawn_blocking(count).await;
        let tokens = counted.map_err(|error| BackendError::Model(error.to_string()))?;
        let tokens_min = u64::try_from(tokens).unwrap_or(u64::MAX);
        if tokens_min.saturating_add(output_tokens_max.into()) > context_tokens_max.into() {
            let output_tokens = output_tokens_max;
            return Err(BackendError::TooLong { tokens_min, output_tokens, context_tokens_max });
        }
        Ok(tokens_min)
    }

    async fn infer(
        &self,
        iteration: &Iteration<'_>,
        stop: &CancellationToken,
    ) -> Result<Output, BackendError> {
        let Iteration { messages, tools, constraint, thinks, so_far, stops, output_tokens_max } =
            *iteration;
        let job = Job {
            messages: messages.to_vec(),
            tools: tools.to_vec(),
            constraint: constraint.clone(),
            thinks,
            so_far: so_far.to_owned(),
            stops: stops.to_vec(),
            dates: Dates::Words,
            output_tokens_max,
            stop: Stop::new(stop.clone(), None),
        };
        let inner = Arc::clone(&self.inner);
        let answered = tokio::task::spawn_blocking(move || inner.lock().answer(&job)).await;
        answered.unwrap_or_else(|error| Err(BackendError::Model(error.to_string())))
    }
}

impl Inner {
    fn answer(&mut self, job: &Job) -> Result<Output, BackendError> {
        if job.stop.is_now() {
            return Err(BackendError::Cancelled);
        }
        let mut turns = turns::turns(&job.messages, &job.tools);
        let mut thoughts = None;
        let mut first_prompt_tokens = None;
        let mut left = job.output_tokens_max;
        if job.thinks && left > 1 {
            let thought = self.generate(job, &turns, left / 2, None)?;
            left -= thought.output_tokens;
            first_prompt_tokens = Some(thought.prompt_tokens);
            turns.push((infer::Role::Assistant, thought.text.clone()));
            turns.push((infer::Role::User, NOW_ANSWER.to_owned()));
            thoughts = Some(thought.text);
        }
        let mut output = match &job.constraint {
            Constraint::OneOf(texts) => self.choose(job, &turns, texts, left)?,
            Constraint::Integer { min, max } => {
                let grammar = self.grammars.integer(min.as_deref(), max.as_deref());
                plain(self.generate(job, &turns, left, Some(&grammar.map_err(unfit)?))?)
            }
            // An answer that has begun as a text stays one.
            Constraint::Free if job.tools.is_empty() || !job.so_far.is_empty() => {
                plain(self.generate(job, &turns, left, None)?)
            }
            Constraint::Free => self.answer_with_tools(job, left)?,
            Constraint::Call => self.call_any(job, left)?,
            Constraint::Json { schema, alone } => self.answer_json(job, schema, *alone, left)?,
        };
        output.output_tokens =
            output.output_tokens.saturating_add(job.output_tokens_max.saturating_sub(left));
        // The prompt without the thoughts: it only grows from one question to the next.
        output.prompt_tokens = first_prompt_tokens.unwrap_or(output.prompt_tokens);
        output.thoughts = thoughts;
        Ok(output)
    }

    fn generate(
        &mut self,
        job: &Job,
        turns: &[(infer::Role, String)],
        output_tokens_max: u32,
        grammar: Option<&Grammar>,
    ) -> Result<Generated, BackendError> {
        let prompt = prompt(self.session.model(), turns, &job.so_far);
        let limits = Limits { output_tokens_max };
        // What has a form ends by itself.
        let stops = if grammar.is_none() { &job.stops[..] } else { &[] };
        let mut written = Written::after(&job.so_far, stops);
        let generated = self
            .session
            .generate(&prompt, &limits, grammar, &mut |event| match event {
                Event::Token { text, .. } if written.stops_with(text) => Flow::Cancel,
                Event::Token { .. } | Event::Read { .. } => flow(&job.stop),
            })
            .map_err(|error| self.failed(&error, output_tokens_max))?;
        match generated.end {
            infer::End::Cancelled if written.is_stopped => {
                Ok(Generated { end: infer::End::Stop, ..generated })
            }
            infer::End::Cancelled => Err(BackendError::Cancelled),
            infer::End::Stop | infer::End::Length => Ok(generated),
        }
    }

    /// The likeliest of some texts: this model chooses far better so than by writing.
    fn choose(
        &mut self,
        job: &Job,
        turns: &[(infer::Role, String)],
        texts: &[String],
        output_tokens_max: u32,
    ) -> Result<Output, BackendError> {
        let prompt = prompt(self.session.model(), turns, "");
        let texts: Vec<_> = texts.iter().map(String::as_str).collect();
        let choice = self
            .session
            .choose(&prompt, &texts, &mut |_: Event<'_>| flow(&job.stop))
            .map_err(|error| self.failed(&error, output_tokens_max))?
            .ok_or(BackendError::Cancelled)?;
        let fits = choice.output_tokens <= output_tokens_max;
        Ok(Output {
            text: texts.get(choice.index).map(|text| (*text).to_owned()).unwrap_or_default(),
            thoughts: None,
            tool_calls: Vec::new(),
            output_tokens: choice.output_tokens.min(output_tokens_max),
            prompt_tokens: choice.prompt_tokens,
            end: if fits { End::Stop } else { End::Length },
        })
    }

    fn failed(&self, error: &infer::AnswerError, output_tokens: u32) -> BackendError {
        if let infer::AnswerError::PromptTooLong { tokens, max } = error {
            return BackendError::TooLong {
                tokens_min: u64::try_from(*tokens).unwrap_or(u64::MAX),
                output_tokens,
                context_tokens_max: u32::try_from(*max).unwrap_or(u32::MAX),
            };
        }
        BackendError::Model(error.to_string())
    }
}

/// The end of what is written, and whether a text has come at which the answer stops.
struct Written<'a> {
    end: String,
    stops: &'a [String],
    is_stopped: bool,
}

impl<'a> Written<'a> {
    fn after(so_far: &str, stops: &'a [String]) -> Self {
        let end = if stops.is_empty() { String::new() } else { so_far.to_owned() };
        Self { end, stops, is_stopped: false }
    }

    /// Whether the answer stops with this part of it.
    fn stops_with(&mut self, text: &str) -> bool {
        if self.stops.is_empty() {
            return false;
        }
        self.end.push_str(text);
        self.is_stopped = first_of(self.stops, &self.end).is_some();
        let longest = self.stops.iter().map(String::len).max().unwrap_or_default();
        let kept = self.end.len().saturating_sub(longest);
        let kept = (0..=kept).rev().find(|at| self.end.is_char_boundary(*at)).unwrap_or_default();
        self.end.drain(..kept);
        self.is_stopped
    }
}

/// What the model reads: the conversation, and what it has written of its message already.
fn prompt(model: &Model, turns: &[(infer::Role, String)], so_far: &str) -> Prompt {
    let turns: Vec<_> = turns.iter().map(|(role, text)| Turn { role: *role, text }).collect();
    let prompt = model.prompt(&turns);
    if so_far.is_empty() { prompt } else { prompt.answered_with(model.tokenizer(), so_far) }
}

fn flow(stop: &Stop) -> Flow {
    if stop.is_now() { Flow::Cancel } else { Flow::Continue }
}

/// A form that cannot be held: the run's fault, or that of a tool's schema.
fn unfit(error: infer::GrammarError) -> BackendError {
    BackendError::Refused { url: "embedded".to_owned(), status: 400, body: error.to_string() }
}

fn plain(generated: Generated) -> Output {
    let Generated { text, output_tokens, prompt_tokens, end } = generated;
    let end = if end == infer::End::Length { End::Length } else { End::Stop };
    let (thoughts, tool_calls) = (None, Vec::new());
    Output { text, thoughts, tool_calls, output_tokens, prompt_tokens, end }
}

/// A text, or the call that it is.
fn called(generated: Generated) -> Output {
    let mut output = plain(generated);
    let inner = output.text.trim().strip_prefix(CALL_START);
    let inner = inner.and_then(|text| text.strip_suffix(CALL_END));
    if let Some(call) = inner.and_then(read_call) {
        output.text = String::new();
        output.tool_calls = vec![call];
        output.end = End::ToolCalls;
    } else if output.end == End::Length && output.text.trim_start().starts_with(CALL_START) {
        output.end = End::CallCut;
    }
    output
}

fn read_call(text: &str) -> Option<ToolCall> {
    let call: Map<String, Value> = serde_json::from_str(text).ok()?;
    let name = call.get("name")?.as_str()?.to_owned();
    let arguments = call.get("arguments")?.as_object()?.clone();
    // Names of calls are given by whoever keeps the conversation.
    Some(ToolCall { id: String::new(), name, arguments })
}
