//! The same scores to the last bit, however they are computed.

use std::num::NonZeroUsize;

use infer::{Grammars, Prompt, Session, scores_sha256};

use crate::golden::{self, LOUD, OVERFLOWING, SMALL};
use crate::support::{ask, loud, model, overflowing, session, session_with};

fn hash(session: &mut Session, prompt: &Prompt) -> String {
    golden::scores(session, prompt, SMALL.steps)
}

#[test]
fn scores_are_the_golden_ones_for_any_threads_and_chunks_and_on_a_plainer_processor() {
    let model = model();
    let prompt = golden::prompt(&model, &SMALL);
    assert!(prompt.tokens().len() > 512, "{} tokens", prompt.tokens().len());
    for threads in [1, 2, 3] {
        for chunk in [1, 7, 16, 512] {
            let mut session = session_with(&model, threads);
            session.read_at_once(NonZeroUsize::new(chunk).unwrap());
            let found = hash(&mut session, &prompt);
            assert_eq!(found, SMALL.scores, "{threads} threads, {chunk} tokens at once");
        }
    }
    let mut plain = session(&model);
    plain.compute_plainly();
    assert_eq!(hash(&mut plain, &prompt), SMALL.scores, "plainly");
}

#[test]
fn answers_are_the_golden_ones() {
    for (model, golden) in [(model(), SMALL), (loud(), LOUD)] {
        let grammars = Grammars::new(model.clone()).unwrap();
        let prompt = golden::prompt(&model, &golden);
        let mut plain = session(&model);
        plain.compute_plainly();
        for mut session in [session(&model), session_with(&model, 3), plain] {
            let found = golden::answers(&mut session, &grammars, &prompt, golden.output_tokens_max);
            assert_eq!(found, golden.answers, "{session:?}");
        }
    }
}

#[test]
fn scores_that_follow_each_rounding_are_the_golden_ones() {
    let model = loud();
    let prompt = golden::prompt(&model, &LOUD);
    for threads in [1, 3] {
        let mut session = session_with(&model, threads);
        assert_eq!(golden::scores(&mut session, &prompt, LOUD.steps), LOUD.scores, "{threads}");
        session.forget();
        session.compute_plainly();
        assert_eq!(golden::scores(&mut session, &prompt, LOUD.steps), LOUD.scores, "plainly");
    }
}

/// Processors differ in the bits of a result that is not a number: the sign is set on x86-64 and not on
/// ARM, and the rest may be that of either operand.
#[test]
fn scores_that_are_not_numbers_have_the_same_digest_on_every_processor() {
    let digest = |bits: u32| scores_sha256(&[1.5, f32::from_bits(bits), f32::NEG_INFINITY]);
    for bits in [0x7fc0_0000, 0x7fc0_1234, 0xffff_ffff] {
        assert_eq!(digest(bits), digest(0xffc0_0000), "{bits:x}");
    }
    assert_ne!(digest(0x7f80_0000), digest(0xffc0_0000), "infinity is a number of its own");
    let model = overflowing();
    let mut session = session(&model);
    let scores = session.scores(golden::prompt(&model, &SMALL).tokens()).unwrap();
    let count = scores.iter().filter(|score| score.is_nan()).count();
    assert!((1..scores.len()).contains(&count), "{count} are not numbers");
    assert_eq!(const_hex::encode(scores_sha256(&scores)), OVERFLOWING);
}

#[test]
fn scores_are_the_golden_ones_after_anything_else() {
    let model = model();
    let prompt = golden::prompt(&model, &SMALL);
    let mut session = session(&model);
    // The same beginning and another end, so that a part of what is held is used again.
    let other = ask(&model, &format!("{}but not this", SMALL.text.repeat(5)));
    assert_ne!(hash(&mut session, &other), SMALL.scores);
    assert_eq!(hash(&mut session, &prompt), SMALL.scores, "after another prompt");
    assert_eq!(hash(&mut session, &prompt), SMALL.scores, "after itself");
    session.forget();
    assert_eq!(hash(&mut session, &prompt), SMALL.scores, "after nothing");
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
        events[0]
    };
    assert_eq!(read("on and on"), 1, "the first is read from its beginning");
    let second = read("on and off");
    assert!(second > 6, "the second is read from {second} on");
}
