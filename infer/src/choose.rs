//! A choice between given texts, by how likely the model finds each.

use crate::chat::Prompt;
use crate::error::AnswerError;
use crate::session::{Flow, Read, Session, Watch};
use crate::tokenizer::Token;

/// Which of some texts a model finds the likeliest answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The text's place among those given; of equally likely ones the first.
    pub index: usize,
    /// For each text, the mean over its tokens of the logarithm of their likelihood: 0 is certain,
    /// and lower is less likely.
    pub scores: Vec<f64>,
    /// Tokens of the text that was chosen.
    pub output_tokens: u32,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
}

impl Session {
    /// Chooses the likeliest answer to a prompt. None if it was cancelled.
    ///
    /// # Errors
    /// If there is no text, one is empty, or prompt and text do not fit together.
    pub fn choose(
        &mut self,
        prompt: &Prompt,
        texts: &[&str],
        watch: &mut Watch<'_>,
    ) -> Result<Option<Choice>, AnswerError> {
        let texts: Vec<Vec<Token>> =
            texts.iter().map(|text| self.model.tokenizer().encode(text)).collect();
        if let Some(at) = texts.iter().position(Vec::is_empty) {
            return Err(AnswerError::LabelEmpty { at, count: texts.len() });
        }
        let prompt_tokens = prompt.tokens().len();
        let longest = texts.iter().map(Vec::len).max();
        let longest = longest.ok_or(AnswerError::LabelEmpty { at: 0, count: 0 })?;
        if prompt_tokens + longest > self.context_tokens_max() {
            let (tokens, max) = (prompt_tokens + longest, self.context_tokens_max());
            return Err(AnswerError::PromptTooLong { tokens, max });
        }
        if self.read_prompt(prompt, watch)? == Read::Cancelled {
            return Ok(None);
        }
        let first = self.forward.scores(1);
        let mut scores = Vec::with_capacity(texts.len());
        for text in &texts {
            scores.push(self.likelihood(prompt_tokens, &first, text)?);
            let event = crate::session::Event::Read { tokens: prompt_tokens + text.len() };
            if watch(event) == Flow::Cancel {
                return Ok(None);
            }
        }
        let mut index = 0;
        for (at, score) in scores.iter().enumerate() {
            if *score > scores[index] {
                index = at;
            }
        }
        let [output_tokens, prompt_tokens] =
            [texts[index].len(), prompt_tokens].map(|count| count as u32);
        Ok(Some(Choice { index, scores, output_tokens, prompt_tokens }))
    }

    /// The mean logarithm of the likelihood of a text's tokens after the prompt, whose scores are
    /// `first`.
    fn likelihood(
        &mut self,
        prompt_tokens: usize,
        first: &[f32],
        text: &[Token],
    ) -> Result<f64, AnswerError> {
        let (last, before) = text.split_last().ok_or(AnswerError::PromptEmpty)?;
        let mut sum = log_likelihood(first, text[0]);
        if !before.is_empty() {
            self.keep(prompt_tokens);
            self.read_on(before);
            let scores = self.forward.scores(before.len());
            let rows = scores.chunks_exact(first.len());
            let next = before[1..].iter().chain([last]);
            sum += rows.zip(next).map(|(row, token)| log_likelihood(row, *token)).sum::<f64>();
        }
        if sum.is_nan() {
            return Err(AnswerError::NotANumber { tokens: self.held() });
        }
        Ok(sum / text.len() as f64)
    }
}

/// The logarithm of the likelihood of a token: its score less the logarithm of the sum of the
/// exponentials of all, summed up from the lowest token to the highest.
fn log_likelihood(scores: &[f32], token: Token) -> f64 {
    let largest = scores.iter().fold(f32::NEG_INFINITY, |largest, score| largest.max(*score));
    let sum: f64 = scores.iter().map(|score| libm::exp(f64::from(score - largest))).sum();
    f64::from(scores[token.index()] - largest) - libm::log(sum)
}
