//! Checks what somebody says that a model read and chose.

use std::collections::VecDeque;

use crate::error::AnswerError;
use crate::generate::{Forced, choice};
use crate::grammar::{Grammar, Run};
use crate::record::{Chosen, Reading, scores_sha256};
use crate::session::{Event, Flow, Read, Session, Watch};
use crate::tokenizer::Token;

/// Whether a reading is what this engine does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verified {
    /// Every token and every digest is the one that this engine has.
    Follows,
    /// It is not; this is the first difference.
    Differs(Difference),
    /// The caller wanted no more of it.
    Cancelled,
}

/// Where a reading is not what this engine does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Of a choice, which text; 0 for an answer.
    pub text: usize,
    /// Which token of the answer or of the text, from 0.
    pub at: usize,
    /// What is claimed; none where it has ended.
    pub claimed: Option<Chosen>,
    /// What this engine has; none where it has ended.
    pub own: Option<Chosen>,
}

/// Checks a reading by reading: the claimed answer is read after the prompt, many tokens at once, and
/// at each position the token that this engine chooses there, within the grammar if there is one, and
/// the digest of its scores are compared with the claimed ones. Scores do not depend on how many tokens
/// are read at once, so an answer follows if, and only if, [`Session::generate`] gives it.
///
/// How many tokens an answer may have is not known here: whether one that ends with another token than
/// the model's last word has as many as it may, is for the caller to see. A choice is made again.
///
/// # Errors
/// If prompt and answer do not fit into the context, or the model or the grammar cannot go on.
pub fn verify(
    session: &mut Session,
    reading: &Reading,
    grammar: Option<&Grammar>,
    watch: &mut Watch<'_>,
) -> Result<Verified, AnswerError> {
    match reading {
        Reading::Answer { prompt, chosen, end } => {
            let run = grammar.map(|grammar| grammar.run(&session.model)).transpose()?;
            let replay = Replay { run, forced: VecDeque::new(), at: 0 };
            session.check_answer(prompt, &Claim { chosen, end: *end }, replay, watch)
        }
        Reading::Choice { prompt, texts, .. } => {
            let weighed: Vec<Vec<Token>> =
                texts.iter().map(|text| text.iter().map(|it| it.token).collect()).collect();
            let before = session.record.take();
            session.record(u64::MAX);
            let choice = session.weigh(prompt, &weighed, watch);
            let own = session.recorded();
            session.record = before;
            if choice?.is_none() {
                return Ok(Verified::Cancelled);
            }
            Ok(own.first().map_or(Verified::Follows, |own| compare_choices(reading, own)))
        }
    }
}

/// An answer that somebody claims.
struct Claim<'a> {
    chosen: &'a [Chosen],
    end: Option<Chosen>,
}

impl Claim<'_> {
    fn at(&self, at: usize) -> Option<Chosen> {
        if at < self.chosen.len() { Some(self.chosen[at]) } else { self.end }
    }
}

/// What this engine chooses, position by position, as long as it is what is claimed.
struct Replay {
    run: Option<Run>,
    /// What the grammar leaves no choice about.
    forced: VecDeque<Chosen>,
    at: usize,
}

impl Replay {
    /// What comes at the next position, where these are the scores; none if the grammar is complete.
    fn next(&mut self, scores: &[f32], held: usize) -> Result<Option<Chosen>, AnswerError> {
        let output_tokens = u32::try_from(self.at).unwrap_or(u32::MAX);
        self.at += 1;
        if let Some(forced) = self.forced.pop_front() {
            return Ok(Some(forced));
        }
        match Forced::by(self.run.as_mut(), output_tokens)? {
            Forced::End => Ok(None),
            Forced::Tokens(tokens) => {
                self.forced = tokens.into();
                Ok(self.forced.pop_front())
            }
            Forced::Nothing => {
                let token = choice(scores, self.run.as_mut(), output_tokens)?;
                let token = token.ok_or(AnswerError::NotANumber { tokens: held })?;
                Ok(Some(Chosen { token, scores: Some(scores_sha256(scores)) }))
            }
        }
    }
}

impl Session {
    fn check_answer(
        &mut self,
        prompt: &[Token],
        claim: &Claim<'_>,
        mut replay: Replay,
        watch: &mut Watch<'_>,
    ) -> Result<Verified, AnswerError> {
        let (tokens, max) = (prompt.len() + claim.chosen.len(), self.context_tokens_max());
        if tokens > max {
            return Err(AnswerError::PromptTooLong { tokens, max });
        }
        if self.read_prompt(prompt, watch)? == Read::Cancelled {
            return Ok(Verified::Cancelled);
        }
        let first = self.forward.scores(1);
        if let Some(verified) = self.compare(&mut replay, claim, &first)? {
            return Ok(verified);
        }
        for part in claim.chosen.chunks(self.chunk.get()) {
            let tokens: Vec<Token> = part.iter().map(|chosen| chosen.token).collect();
            self.read_on(&tokens);
            let scores = self.forward.scores(tokens.len());
            for scores in scores.chunks_exact(first.len()) {
                if let Some(verified) = self.compare(&mut replay, claim, scores)? {
                    return Ok(verified);
                }
            }
            if watch(Event::Read { tokens: self.held() }) == Flow::Cancel {
                return Ok(Verified::Cancelled);
            }
        }
        Ok(Verified::Follows)
    }

    /// Compares one position; none if it is the claimed one and another follows.
    fn compare(
        &self,
        replay: &mut Replay,
        claim: &Claim<'_>,
        scores: &[f32],
    ) -> Result<Option<Verified>, AnswerError> {
        let at = replay.at;
        let (claimed, mut own) = (claim.at(at), replay.next(scores, self.held())?);
        let is_last = at == claim.chosen.len();
        let ends = own.is_none_or(|own| self.model.tokenizer().is_control(own.token));
        if ends && !is_last {
            // It would have ended here and not put this out.
            own = None;
        }
        Ok(if own != claimed || (ends && !is_last) {
            Some(Verified::Differs(Difference { text: 0, at, claimed, own }))
        } else if is_last {
            Some(Verified::Follows)
        } else {
            None
        })
    }
}

/// The first difference of two choices between the same texts.
fn compare_choices(claimed: &Reading, own: &Reading) -> Verified {
    let (
        Reading::Choice { texts: claimed, index: claimed_index, .. },
        Reading::Choice { texts: own, index, .. },
    ) = (claimed, own)
    else {
        return Verified::Follows;
    };
    for (text, (claimed, own)) in claimed.iter().zip(own).enumerate() {
        let pairs = claimed.iter().zip(own).enumerate();
        if let Some((at, (claimed, own))) = pairs.into_iter().find(|(_, (a, b))| a != b) {
            let (claimed, own) = (Some(*claimed), Some(*own));
            return Verified::Differs(Difference { text, at, claimed, own });
        }
    }
    if claimed_index == index {
        return Verified::Follows;
    }
    // The likelihoods are these, and another text is the likeliest.
    let first = |text: usize| claimed.get(text).and_then(|text| text.first()).copied();
    let (claimed, own) = (first(*claimed_index), first(*index));
    Verified::Differs(Difference { text: *claimed_index, at: 0, claimed, own })
}
