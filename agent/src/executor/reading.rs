//! What a model read and chose, token by token.

use types::Hash;

/// Tokens that a model read at once, and what it chose after them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// What it read, from the beginning of its context.
    pub prompt: Vec<u32>,
    /// What it chose, in order.
    pub chosen: Vec<Chosen>,
    /// What it chose last and did not put out: its word that it is done, or a token for which there was no
    /// room.
    pub end: Option<Chosen>,
    /// Texts whose likelihood it was asked for after the prompt. What was chosen is one of them then, and
    /// nothing if there is only one; its scores stand here.
    pub weighed: Vec<Vec<Chosen>>,
}

impl Reading {
    /// Tokens that it was given: the prompt, and the texts that were weighed.
    #[must_use]
    pub fn input_tokens(&self) -> u64 {
        count(&self.prompt).saturating_add(self.weighed.iter().map(|text| count(text)).sum())
    }

    /// Tokens that it put out.
    #[must_use]
    pub fn output_tokens(&self) -> u64 {
        count(&self.chosen)
    }
}

fn count<T>(items: &[T]) -> u64 {
    u64::try_from(items.len()).unwrap_or(u64::MAX)
}

/// A token that a model chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The token.
    pub token: u32,
    /// SHA-256 over the scores of all tokens, each as a little-endian `f32`, in order of the tokens; none
    /// for a token about which the form of the answer left no choice, so that nothing was computed for it.
    pub scores: Option<Hash>,
}
