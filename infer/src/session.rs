//! A session: a model that reads, remembers what it has read, and answers.

use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::error::AnswerError;
use crate::forward::Forward;
use crate::model::Model;
use crate::record::{Reading, Record, scores_sha256};
use crate::threads::Threads;
use crate::tokenizer::Token;

/// Prompt tokens that are read at once unless told otherwise.
const CHUNK: NonZeroUsize = NonZeroUsize::new(64).expect("64 is not 0");

/// A model that reads and answers, one prompt at a time. It keeps what it has read: a prompt that
/// begins as the one before is read from where they differ. The answer is the same either way.
#[derive(Debug)]
pub struct Session {
    pub(crate) model: Arc<Model>,
    pub(crate) forward: Forward,
    /// The tokens that `forward` has read.
    held: Vec<Token>,
    context_tokens_max: usize,
    pub(crate) chunk: NonZeroUsize,
    /// What is written down, if anything.
    pub(crate) record: Option<Record>,
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    Continue,
    /// Stop here.
    Cancel,
}

/// Something that happened while a model worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// It has read this many tokens of the prompt and of what comes after it, those remembered included.
    Read {
        /// How many.
        tokens: usize,
    },
    /// It has put out a token.
    Token {
        /// Which.
        token: Token,
        /// The characters that are complete with it; often one word, sometimes none.
        text: &'a str,
    },
}

/// Whom to tell what happens, and who can cancel at each event. There is no clock in here.
pub type Watch<'a> = dyn FnMut(Event<'_>) -> Flow + 'a;

/// How reading a prompt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Done,
    Cancelled,
}

impl Session {
    /// A session that holds at most `context_tokens_max` tokens of prompt and output, or as many as
    /// the model was made for if that is fewer. Memory is taken as tokens come.
    #[must_use]
    pub fn new(model: Arc<Model>, threads: Threads, context_tokens_max: NonZeroUsize) -> Self {
        let context_tokens_max = context_tokens_max.get().min(model.shape().context_tokens_max);
        let forward = Forward::new(Arc::clone(&model), threads);
        Self { model, forward, held: Vec::new(), context_tokens_max, chunk: CHUNK, record: None }
    }

    /// A session of the same model on the same threads, which has read nothing, for at most so many tokens.
    #[must_use]
    pub fn beside(&self, context_tokens_max: NonZeroUsize) -> Self {
        Self::new(Arc::clone(&self.model), self.forward.threads().clone(), context_tokens_max)
    }

    /// Its model.
    #[must_use]
    pub const fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// The most tokens of prompt and output together.
    #[must_use]
    pub const fn context_tokens_max(&self) -> usize {
        self.context_tokens_max
    }

    /// Reads at most so many tokens at once: more are faster, fewer hear a cancellation
    /// sooner. The answer is the same.
    pub const fn read_at_once(&mut self, tokens: NonZeroUsize) {
        self.chunk = tokens;
    }

    /// Computes with what every processor has for which the program was compiled, and nothing that
    /// only this one has: slower. The answer is the same, which is what this is there to show.
    pub const fn compute_plainly(&mut self) {
        self.forward.compute_plainly();
    }

    /// The set of instructions that it computes with: `sse2`, `sse4.2`, `avx2`, `avx512`, `neon`, or
    /// `other`. The answer is the same with each.
    #[must_use]
    pub const fn instructions(&self) -> &'static str {
        self.forward.instructions()
    }

    /// Forgets everything; the memory is free for others.
    pub fn forget(&mut self) {
        let threads = self.forward.threads().clone();
        self.forward = Forward::new(Arc::clone(&self.model), threads);
        self.held = Vec::new();
    }

    /// The score of every token of the vocabulary, by its number, for what comes after `tokens`.
    ///
    /// # Errors
    /// If there are no tokens or more than fit.
    pub fn scores(&mut self, tokens: &[Token]) -> Result<Vec<f32>, AnswerError> {
        self.check_length(tokens)?;
        let _ = self.read(tokens, &mut |_| Flow::Continue);
        Ok(self.forward.scores(1))
    }

    fn check_length(&self, tokens: &[Token]) -> Result<(), AnswerError> {
        if tokens.is_empty() {
            return Err(AnswerError::PromptEmpty);
        }
        if tokens.len() >= self.context_tokens_max {
            let (tokens, max) = (tokens.len(), self.context_tokens_max);
            return Err(AnswerError::PromptTooLong { tokens, max });
        }
        Ok(())
    }

    /// Reads a prompt; what is held of it already is not read again, but for its last token, after
    /// which scores are wanted.
    pub(crate) fn read_prompt(
        &mut self,
        prompt: &[Token],
        watch: &mut Watch<'_>,
    ) -> Result<Read, AnswerError> {
        self.check_length(prompt)?;
        Ok(self.read(prompt, watch))
    }

    fn read(&mut self, tokens: &[Token], watch: &mut Watch<'_>) -> Read {
        let pairs = self.held.iter().zip(tokens);
        let common = pairs.take_while(|(held, token)| held == token).count();
        let kept = common.min(tokens.len().saturating_sub(1));
        self.keep(kept);
        self.read_in_parts(&tokens[kept..], watch)
    }

    /// Reads tokens after those that are held, not too many at once.
    pub(crate) fn read_in_parts(&mut self, tokens: &[Token], watch: &mut Watch<'_>) -> Read {
        let end = self.held.len() + tokens.len();
        for part in tokens.chunks(self.chunk.get()) {
            self.read_on(part);
            let event = Event::Read { tokens: self.held.len() };
            if self.held.len() < end && watch(event) == Flow::Cancel {
                return Read::Cancelled;
            }
        }
        Read::Done
    }

    /// Reads tokens after those that are held.
    pub(crate) fn read_on(&mut self, tokens: &[Token]) {
        self.forward.read(tokens);
        self.held.extend_from_slice(tokens);
    }

    /// Forgets all but the first `tokens`.
    pub(crate) fn keep(&mut self, tokens: usize) {
        self.forward.cut(tokens);
        self.held.truncate(tokens);
    }

    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }
}

impl Session {
    /// Writes down what it reads and chooses from now on; what was written before is dropped. A question
    /// with which all questions since then would have more than `input_tokens_max` tokens
    /// ([`Reading::input_tokens`]) is refused before anything of it is read.
    pub fn record(&mut self, input_tokens_max: u64) {
        self.record = Some(Record::new(input_tokens_max));
    }

    /// Takes what was written since [`Self::record`], and writes nothing more. A question that was
    /// cancelled or failed is not in it.
    pub fn recorded(&mut self) -> Vec<Reading> {
        self.record.take().map(Record::into_readings).unwrap_or_default()
    }

    /// Whether a question was refused since [`Self::record`], because more would have been read than is
    /// allowed.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.record.as_ref().is_some_and(Record::is_exhausted)
    }

    /// Counts tokens that are to be read.
    pub(crate) fn spend(&mut self, tokens: usize) -> Result<(), AnswerError> {
        self.record.as_mut().map_or(Ok(()), |record| record.spend(tokens))
    }

    /// The digest of scores, if it is wanted.
    pub(crate) fn digest(&self, scores: &[f32]) -> Option<[u8; 32]> {
        self.record.as_ref().map(|_| scores_sha256(scores))
    }

    /// Writes down what was read, if that is wanted.
    pub(crate) fn write_down(&mut self, reading: impl FnOnce() -> Reading) {
        if let Some(record) = &mut self.record {
            record.push(reading());
        }
    }
}
