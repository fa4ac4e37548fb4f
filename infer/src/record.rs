//! What a session reads and chooses, so that somebody else can check it ([`crate::verify`]).

use sha2::{Digest as _, Sha256};

use crate::error::AnswerError;
use crate::session::Session;
use crate::tokenizer::Token;

/// Scores that are hashed at a time.
const STRIDE: usize = 1_024;
/// How a score that is not a number is hashed, whatever its bits: as x86-64 has it.
const NOT_A_NUMBER: [u8; 4] = 0xffc0_0000_u32.to_le_bytes();

/// A token that was chosen, or whose likelihood was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The token.
    pub token: Token,
    /// [`scores_sha256`] of the scores where it stands; none for a token about which a grammar left no
    /// choice, because nothing was computed for it.
    pub scores: Option<[u8; 32]>,
}

/// Tokens that a model read from the beginning of its context, and what it did then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// [`Session::generate`]: it chose one token after another.
    Answer {
        /// What it read.
        prompt: Vec<Token>,
        /// What it put out.
        chosen: Vec<Chosen>,
        /// The token with which the answer ended and that was not put out: the one by which a model says
        /// that it is done, or the next one where there was no room. None where a grammar was complete.
        end: Option<Chosen>,
    },
    /// [`Session::choose`]: it was asked how likely each of some texts is.
    Choice {
        /// What it read, once for all texts.
        prompt: Vec<Token>,
        /// Each text's tokens, all of which but the last it read as well, and with each token the scores
        /// from which its likelihood was computed: those before it.
        texts: Vec<Vec<Chosen>>,
        /// The likeliest text; of equally likely ones the first.
        index: usize,
    },
}

impl Reading {
    /// Tokens that were given to the model: the prompt, and the texts of a choice.
    #[must_use]
    pub fn input_tokens(&self) -> usize {
        match self {
            Self::Answer { prompt, .. } => prompt.len(),
            Self::Choice { prompt, texts, .. } => {
                prompt.len() + texts.iter().map(Vec::len).sum::<usize>()
            }
        }
    }
}

/// SHA-256 over scores, each as a little-endian `f32`, in the order of the tokens. One that is not a number
/// counts as `0xffc00000`, because its bits differ between processors.
#[must_use]
pub fn scores_sha256(scores: &[f32]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    let mut bytes = Vec::with_capacity(STRIDE * size_of::<f32>());
    for part in scores.chunks(STRIDE) {
        bytes.clear();
        part.iter().for_each(|score| {
            bytes.extend(if score.is_nan() { NOT_A_NUMBER } else { score.to_le_bytes() });
        });
        hasher.update(&bytes);
    }
    hasher.finalize().into()
}

/// What a session writes down.
#[derive(Debug)]
pub(crate) struct Record {
    readings: Vec<Reading>,
    input_tokens_left: u64,
    is_exhausted: bool,
}

impl Session {
    /// Writes down what it reads and chooses from now on; what was written before is dropped. A question
    /// with which all questions since then would have more than `input_tokens_max` tokens
    /// ([`Reading::input_tokens`]) is refused before anything of it is read.
    pub fn record(&mut self, input_tokens_max: u64) {
        self.record = Some(Record {
            readings: Vec::new(),
            input_tokens_left: input_tokens_max,
            is_exhausted: false,
        });
    }

    /// Takes what was written since [`Self::record`], and writes nothing more. A question that was
    /// cancelled or failed is not in it.
    pub fn recorded(&mut self) -> Vec<Reading> {
        self.record.take().map(|record| record.readings).unwrap_or_default()
    }

    /// Whether a question was refused since [`Self::record`], because more would have been read than is
    /// allowed.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.record.as_ref().is_some_and(|record| record.is_exhausted)
    }

    /// Counts tokens that are to be read.
    pub(crate) fn spend(&mut self, tokens: usize) -> Result<(), AnswerError> {
        let Some(record) = &mut self.record else { return Ok(()) };
        let (tokens, max) = (tokens as u64, record.input_tokens_left);
        match max.checked_sub(tokens) {
            Some(left) => {
                record.input_tokens_left = left;
                Ok(())
            }
            None => {
                record.is_exhausted = true;
                Err(AnswerError::InputTokens { tokens, max })
            }
        }
    }

    /// The digest of scores, if it is wanted.
    pub(crate) fn digest(&self, scores: &[f32]) -> Option<[u8; 32]> {
        self.record.as_ref().map(|_| scores_sha256(scores))
    }

    /// Writes down what was read, if that is wanted.
    pub(crate) fn write_down(&mut self, reading: impl FnOnce() -> Reading) {
        if let Some(record) = &mut self.record {
            record.readings.push(reading());
        }
    }
}
