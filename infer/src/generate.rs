//! Answers: token after token, always the one with the highest score.

use crate::chat::Prompt;
use crate::error::AnswerError;
use crate::grammar::{Grammar, Run};
use crate::record::{Chosen, Reading};
use crate::session::{Event, Flow, Read, Session, Watch};
use crate::tokenizer::{TextStream, Token};

/// Bounds of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most tokens that are put out.
    pub output_tokens_max: u32,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The model was done, or the grammar allows nothing more.
    Stop,
    /// At the most tokens, or at the end of the context. What a grammar asks for may be unfinished.
    Length,
    /// The caller wanted so.
    Cancelled,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// The text.
    pub text: String,
    /// Tokens that were put out; the one by which the model says that it is done is not counted.
    pub output_tokens: u32,
    /// Tokens of the prompt, those remembered included.
    pub prompt_tokens: u32,
    /// Why it ended.
    pub end: End,
}

impl Session {
    /// Answers a prompt, within a grammar if there is one. The same prompt, limits and grammar give
    /// the same answer, whatever the session did before.
    ///
    /// # Errors
    /// If the prompt does not fit, or the model or the grammar cannot go on.
    pub fn generate(
        &mut self,
        prompt: &Prompt,
        limits: &Limits,
        grammar: Option<&Grammar>,
        watch: &mut Watch<'_>,
    ) -> Result<Generated, AnswerError> {
        let run = grammar.map(|grammar| grammar.run(&self.model)).transpose()?;
        let prompt_tokens = prompt.tokens().len();
        let mut answer = Answer {
            run,
            text: String::new(),
            stream: TextStream::default(),
            unread: Vec::new(),
            chosen: Vec::new(),
            end: None,
            output_tokens: 0,
            output_tokens_max: limits.output_tokens_max.min(self.room(prompt_tokens)),
        };
        self.spend(prompt_tokens)?;
        let end = match self.read_prompt(prompt.tokens(), watch)? {
            Read::Cancelled => End::Cancelled,
            Read::Done => self.go_on(&mut answer, watch)?,
        };
        let Answer { mut text, stream, output_tokens, chosen, end: last, .. } = answer;
        if end != End::Cancelled {
            let prompt = prompt.tokens();
            self.write_down(|| Reading::Answer { prompt: prompt.to_vec(), chosen, end: last });
        }
        text.push_str(&stream.finish());
        Ok(Generated { text, output_tokens, prompt_tokens: prompt_tokens as u32, end })
    }

    /// The tokens that fit after a prompt.
    fn room(&self, prompt_tokens: usize) -> u32 {
        let room = self.context_tokens_max().saturating_sub(prompt_tokens);
        u32::try_from(room).unwrap_or(u32::MAX)
    }

    fn go_on(&mut self, answer: &mut Answer, watch: &mut Watch<'_>) -> Result<End, AnswerError> {
        loop {
            let next = match answer.forced()? {
                Forced::Nothing => match self.choose_token(answer, watch)? {
                    Some(chosen) => vec![chosen],
                    None => return Ok(End::Cancelled),
                },
                Forced::Tokens(tokens) => tokens,
                Forced::End => return Ok(End::Stop),
            };
            for chosen in next {
                answer.end = Some(chosen);
                let token = chosen.token;
                if self.model.tokenizer().is_control(token) {
                    return Ok(End::Stop);
                }
                if answer.output_tokens == answer.output_tokens_max {
                    return Ok(End::Length);
                }
                let bytes = self.model.tokenizer().bytes(token);
                answer.end = None;
                if self.record.is_some() {
                    answer.chosen.push(chosen);
                }
                if answer.put_out(token, bytes, watch) == Flow::Cancel {
                    return Ok(End::Cancelled);
                }
            }
        }
    }

    /// The token with the highest score of those that are allowed; of equal ones the lowest. None if it
    /// was cancelled.
    fn choose_token(
        &mut self,
        answer: &mut Answer,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Chosen>, AnswerError> {
        // A grammar may leave no choice about thousands of tokens.
        if self.read_in_parts(&answer.unread, watch) == Read::Cancelled {
            return Ok(None);
        }
        answer.unread.clear();
        let scores = self.forward.scores(1);
        let token = choice(&scores, answer.run.as_mut(), answer.output_tokens)?;
        let token = token.ok_or_else(|| AnswerError::NotANumber { tokens: self.held() })?;
        Ok(Some(Chosen { token, scores: self.digest(&scores) }))
    }
}

/// The token with the highest score of those that are allowed, which the run takes; none if no score is
/// a number.
pub(crate) fn choice(
    scores: &[f32],
    run: Option<&mut Run>,
    output_tokens: u32,
) -> Result<Option<Token>, AnswerError> {
    let Some(run) = run else { return Ok(best(scores, 0..scores.len())) };
    let allowed = run.allowed(output_tokens)?;
    let best = best(scores, allowed.into_iter());
    if let Some(token) = best {
        run.take(token, output_tokens)?;
    }
    Ok(best)
}

/// The token with the highest score; none if no score is a number.
fn best(scores: &[f32], tokens: impl Iterator<Item = usize>) -> Option<Token> {
    let mut best: Option<(usize, f32)> = None;
    for token in tokens {
        let Some(&score) = scores.get(token) else { continue };
        let is_best = match best {
            None => !score.is_nan(),
            Some((_, highest)) => score > highest,
        };
        if is_best {
            best = Some((token, score));
        }
    }
    best.and_then(|(token, _)| u32::try_from(token).ok()).map(Token::new)
}

/// An answer on its way.
struct Answer {
    run: Option<Run>,
    text: String,
    stream: TextStream,
    /// Tokens that were put out and that the model has not read yet.
    unread: Vec<Token>,
    /// What was put out, where it is written down.
    chosen: Vec<Chosen>,
    /// What ended it and was not put out.
    end: Option<Chosen>,
    output_tokens: u32,
    output_tokens_max: u32,
}

/// What a grammar leaves no choice about.
pub(crate) enum Forced {
    Nothing,
    Tokens(Vec<Chosen>),
    End,
}

impl Forced {
    /// What a run leaves no choice about now; it takes it.
    pub(crate) fn by(run: Option<&mut Run>, output_tokens: u32) -> Result<Self, AnswerError> {
        let Some(run) = run else { return Ok(Self::Nothing) };
        if run.is_done(output_tokens)? {
            return Ok(Self::End);
        }
        let tokens = run.forced().into_iter().map(|token| Chosen { token, scores: None });
        let tokens: Vec<_> = tokens.collect();
        Ok(if tokens.is_empty() { Self::Nothing } else { Self::Tokens(tokens) })
    }
}

impl Answer {
    fn forced(&mut self) -> Result<Forced, AnswerError> {
        Forced::by(self.run.as_mut(), self.output_tokens)
    }

    fn put_out(&mut self, token: Token, bytes: &[u8], watch: &mut Watch<'_>) -> Flow {
        self.output_tokens += 1;
        self.unread.push(token);
        let text = self.stream.push(bytes);
        let flow = watch(Event::Token { token, text: &text });
        self.text.push_str(&text);
        flow
    }
}
