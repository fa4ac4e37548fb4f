//! A choice between given texts, by how likely the model finds each.

use crate::chat::Prompt;
use crate::error::AnswerError;
use crate::record::{Chosen, Reading};
use crate::session::{Event, Flow, Read, Session, Watch};
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
    /// It reads the prompt once, and after it each text but for its last token, both in parts as
    /// [`Session::read_at_once`] says. A text's likelihood needs the scores before each of its tokens:
    /// those after the prompt, which all texts share, and those after each token that it reads.
    /// [`Session::record`] writes down exactly that ([`Reading::Choice`]), the digest after the prompt
    /// once for each text.
    ///
    /// # Errors
    /// If there is no text, one is empty, or prompt and text do not fit together; or if more would be read
    /// than [`Session::record`] allows.
    pub fn choose(
        &mut self,
        prompt: &Prompt,
        texts: &[&str],
        watch: &mut Watch<'_>,
    ) -> Result<Option<Choice>, AnswerError> {
        let texts: Vec<Vec<Token>> =
            texts.iter().map(|text| self.model.tokenizer().encode(text)).collect();
        self.weigh(prompt.tokens(), &texts, watch)
    }

    /// Chooses the likeliest of some texts that are cut into tokens.
    pub(crate) fn weigh(
        &mut self,
        prompt: &[Token],
        texts: &[Vec<Token>],
        watch: &mut Watch<'_>,
    ) -> Result<Option<Choice>, AnswerError> {
        if let Some(at) = texts.iter().position(Vec::is_empty) {
            return Err(AnswerError::LabelEmpty { at, count: texts.len() });
        }
        let prompt_tokens = prompt.len();
        let longest = texts.iter().map(Vec::len).max();
        let longest = longest.ok_or(AnswerError::LabelEmpty { at: 0, count: 0 })?;
        if prompt_tokens + longest > self.context_tokens_max() {
            let (tokens, max) = (prompt_tokens + longest, self.context_tokens_max());
            return Err(AnswerError::PromptTooLong { tokens, max });
        }
        self.spend(prompt_tokens + texts.iter().map(Vec::len).sum::<usize>())?;
        if self.read_prompt(prompt, watch)? == Read::Cancelled {
            return Ok(None);
        }
        let first = self.forward.scores(1);
        let first_digest = self.digest(&first);
        let mut scores = Vec::with_capacity(texts.len());
        let mut weighed = Vec::new();
        for text in texts {
            let mut digests = vec![first_digest];
            let likelihood = self.likelihood(prompt_tokens, &first, text, &mut digests, watch)?;
            let Some(likelihood) = likelihood else { return Ok(None) };
            scores.push(likelihood);
            if self.record.is_some() {
                let chosen = text.iter().zip(digests);
                let chosen = chosen.map(|(&token, scores)| Chosen { token, scores });
                weighed.push(chosen.collect());
            }
            let event = Event::Read { tokens: prompt_tokens + text.len() };
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
        self.write_down(|| Reading::Choice { prompt: prompt.to_vec(), texts: weighed, index });
        let [output_tokens, prompt_tokens] =
            [texts[index].len(), prompt_tokens].map(|count| count as u32);
        Ok(Some(Choice { index, scores, output_tokens, prompt_tokens }))
    }

    /// The mean logarithm of the likelihood of a text's tokens after the prompt, whose scores are
    /// `first`; the digests of the others are added where they are wanted. None if it was cancelled.
    fn likelihood(
        &mut self,
        prompt_tokens: usize,
        first: &[f32],
        text: &[Token],
        digests: &mut Vec<Option<[u8; 32]>>,
        watch: &mut Watch<'_>,
    ) -> Result<Option<f64>, AnswerError> {
        let (_, before) = text.split_last().ok_or(AnswerError::PromptEmpty)?;
        let mut sum = log_likelihood(first, text[0]);
        if !before.is_empty() {
            self.keep(prompt_tokens);
        }
        // What comes after the first token is summed up by itself.
        let mut rest = 0.0;
        let mut next = text[1..].iter();
        let mut left = before.len();
        // The scores of a token take more memory than the token's whole part of the context.
        for part in before.chunks(self.chunk.get()) {
            self.read_on(part);
            let scores = self.forward.scores(part.len());
            for (row, token) in scores.chunks_exact(first.len()).zip(next.by_ref()) {
                digests.push(self.digest(row));
                rest += log_likelihood(row, *token);
            }
            left -= part.len();
            if left > 0 && watch(Event::Read { tokens: self.held() }) == Flow::Cancel {
                return Ok(None);
            }
        }
        sum += rest;
        if sum.is_nan() {
            return Err(AnswerError::NotANumber { tokens: self.held() });
        }
        Ok(Some(sum / text.len() as f64))
    }
}

/// The logarithm of the likelihood of a token: its score less the logarithm of the sum of the
/// exponentials of all, summed up from the lowest token to the highest.
fn log_likelihood(scores: &[f32], token: Token) -> f64 {
    let largest = scores.iter().fold(f32::NEG_INFINITY, |largest, score| largest.max(*score));
    let sum: f64 = scores.iter().map(|score| libm::exp(f64::from(score - largest))).sum();
    f64::from(scores[token.index()] - largest) - libm::log(sum)
}
