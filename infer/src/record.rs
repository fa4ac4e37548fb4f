//! What a session reads and chooses, so that somebody else can check it ([`crate::verify`]).

use sha2::{Digest as _, Sha256};

use crate::error::AnswerError;
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
    /// [`crate::Session::generate`]: it chose one token after another.
    Answer {
        /// What it read.
        prompt: Vec<Token>,
        /// What it put out.
        chosen: Vec<Chosen>,
        /// The token with which the answer ended and that was not put out: the one by which a model says
        /// that it is done, or the next one where there was no room. None where a grammar was complete.
        end: Option<Chosen>,
    },
    /// [`crate::Session::choose`]: it was asked how likely each of some texts is.
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

impl Record {
    /// Nothing yet, for questions of so many tokens at most.
    pub(crate) const fn new(input_tokens_max: u64) -> Self {
        Self { readings: Vec::new(), input_tokens_left: input_tokens_max, is_exhausted: false }
    }

    /// What was written.
    pub(crate) fn into_readings(self) -> Vec<Reading> {
        self.readings
    }

    /// Whether a question was refused because more would have been read than is allowed.
    pub(crate) const fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    /// Counts tokens that are to be read.
    pub(crate) fn spend(&mut self, tokens: usize) -> Result<(), AnswerError> {
        let (tokens, max) = (tokens as u64, self.input_tokens_left);
        match max.checked_sub(tokens) {
            Some(left) => {
                self.input_tokens_left = left;
                Ok(())
            }
            None => {
                self.is_exhausted = true;
                Err(AnswerError::InputTokens { tokens, max })
            }
        }
    }

    /// Writes down what was read.
    pub(crate) fn push(&mut self, reading: Reading) {
        self.readings.push(reading);
    }
}
