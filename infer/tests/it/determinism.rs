//! The same scores to the last bit, however they are computed.

use std::num::NonZeroUsize;

use infer::{Session, Token};
use sha2::{Digest as _, Sha256};

use crate::support::{ask, model, session, session_with};

/// Sha256 over every score of every step below. A change of it is a change of what all miners
/// answer: give the engine a new name (`ENGINE` in src/model.rs) with it.
const GOLDEN: &str = "ec2b659a8947f7072de1d042274fbbad8436bcfd174909b9c8659c2497c062cd";

const TEXT: &str = "The quick brown fox: 1, 2, 3 and another 40 words \u{1f98a} on an old fence. ";
const STEPS: usize = 24;

/// Hashes the scores after the prompt and after each of some tokens that follow it, always the one
/// with the highest score.
fn hash(session: &mut Session, prompt: &[Token]) -> String {
    let mut tokens = prompt.to_vec();
    let mut hasher = Sha256::new();
    for _ in 0..STEPS {
        let scores = session.scores(&tokens).unwrap();
        scores.iter().for_each(|score| hasher.update(score.to_le_bytes()));
        let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let best = scores.iter().position(|score| *score == highest).unwrap();
        tokens.push(session.model().tokenizer().token(best as u32).unwrap());
    }
    const_hex::encode(hasher.finalize())
}

#[test]
fn scores_are_the_golden_ones_for_any_threads_and_chunks() {
    let model = model();
    let prompt = ask(&model, &TEXT.repeat(8));
    assert!(prompt.tokens().len() > 512, "{} tokens", prompt.tokens().len());
    for threads in [1, 2, 3] {
        for chunk in [1, 7, 16, 512] {
            let mut session = session_with(&model, threads);
            session.read_at_once(NonZeroUsize::new(chunk).unwrap());
            let found = hash(&mut session, prompt.tokens());
            assert_eq!(found, GOLDEN, "{threads} threads, {chunk} tokens at once");
        }
    }
}

#[test]
fn scores_are_the_golden_ones_on_a_plainer_processor() {
    let model = model();
    let prompt = ask(&model, &TEXT.repeat(8));
    let mut session = session(&model);
    session.compute_plainly();
    assert_eq!(hash(&mut session, prompt.tokens()), GOLDEN);
}

#[test]
fn scores_are_the_golden_ones_after_anything_else() {
    let model = model();
    let prompt = ask(&model, &TEXT.repeat(8));
    let mut session = session(&model);
    // The same beginning and another end, so that a part of what is held is used again.
    let other = ask(&model, &format!("{}but not this", TEXT.repeat(5)));
    assert_ne!(hash(&mut session, other.tokens()), GOLDEN);
    assert_eq!(hash(&mut session, prompt.tokens()), GOLDEN, "after another prompt");
    assert_eq!(hash(&mut session, prompt.tokens()), GOLDEN, "after itself");
    session.forget();
    assert_eq!(hash(&mut session, prompt.tokens()), GOLDEN, "after nothing");
}

#[test]
fn a_prompt_that_begins_as_the_one_before_is_read_from_where_they_differ() {
    let model = model();
    let mut session = session(&model);
    session.read_at_once(NonZeroUsize::MIN);
    let mut read = |text: &str| {
        let prompt = ask(&model, text);
        let mut events = Vec::new();
        let limits = infer::Limits { output_tokens_max: 1 };
        let answer = session.generate(&prompt, &limits, None, &mut |event| {
            if let infer::Event::Read { tokens } = event {
                events.push(tokens);
            }
            infer::Flow::Continue
        });
        answer.unwrap();
        events
    };
    let first = read("on and on");
    assert_eq!(first[0], 1, "the first is read from its beginning");
    let second = read("on and off");
    assert!(second[0] > 6, "the second is read from {} on", second[0]);
}
