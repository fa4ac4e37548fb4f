//! What a session writes down, and whether it is found right.

use std::num::NonZeroUsize;
use std::sync::Arc;

use infer::{
    AnswerError, Chosen, Difference, End, Flow, Grammar, Grammars, Limits, Manifest, Model,
    Reading, SMOLLM2_135M, SMOLLM2_135M_MANIFEST, Session, Verified, scores_sha256, verify,
};
use serde_json::json;

use crate::support::{CONTEXT, ask, asked, generate, model, session, session_with};

/// The most tokens of a free answer.
const TOKENS_MAX: u32 = 24;

/// What is written down of an answer. One within a grammar may be as long as it wants.
fn answer(session: &mut Session, text: &str, grammar: Option<&Grammar>) -> Reading {
    let prompt = ask(session.model(), text);
    session.record(u64::MAX);
    generate(session, &prompt, if grammar.is_some() { 99 } else { TOKENS_MAX }, grammar).unwrap();
    let mut readings = session.recorded();
    assert_eq!(readings.len(), 1);
    readings.remove(0)
}

fn choice(session: &mut Session, text: &str, texts: &[&str]) -> Reading {
    let prompt = ask(session.model(), text);
    session.record(u64::MAX);
    let choice = session.choose(&prompt, texts, &mut |_| Flow::Continue).unwrap().unwrap();
    let reading = session.recorded().remove(0);
    let Reading::Choice { index, .. } = &reading else { panic!("a choice") };
    assert_eq!(*index, choice.index);
    reading
}

fn check(session: &mut Session, reading: &Reading, grammar: Option<&Grammar>) -> Verified {
    verify(session, reading, grammar, &mut |_| Flow::Continue).unwrap()
}

fn object(model: &Arc<Model>) -> Grammar {
    let schema = json!({
        "type": "object",
        "properties": { "label": { "enum": ["good", "bad"] }, "sure": { "type": "boolean" } },
        "required": ["label", "sure"],
    });
    Grammars::new(Arc::clone(model)).unwrap().json(&schema).unwrap()
}

fn chosen(reading: &Reading) -> &[Chosen] {
    let Reading::Answer { chosen, .. } = reading else { panic!("an answer") };
    chosen
}

/// The same reading with other tokens chosen.
fn with_chosen(reading: &Reading, change: impl FnOnce(&mut Vec<Chosen>)) -> Reading {
    let mut reading = reading.clone();
    let Reading::Answer { chosen, .. } = &mut reading else { panic!("an answer") };
    change(chosen);
    reading
}

#[test]
fn each_token_has_the_digest_of_the_scores_where_it_stands() {
    let model = model();
    let reading = answer(&mut session(&model), "go on", None);
    let Reading::Answer { prompt, chosen, end } = &reading else { panic!("an answer") };
    assert_eq!(prompt, ask(&model, "go on").tokens());
    assert_eq!(chosen.len(), 24);
    let mut other = session(&model);
    let mut tokens = prompt.clone();
    for next in chosen.iter().chain(end) {
        let scores = other.scores(&tokens).unwrap();
        assert_eq!(next.scores, Some(scores_sha256(&scores)));
        tokens.push(next.token);
    }
    assert!(end.is_some(), "what there was no room for");
}

#[test]
fn what_a_grammar_leaves_no_choice_about_has_no_digest() {
    let model = model();
    let grammar = object(&model);
    let reading = answer(&mut session(&model), "how was it?", Some(&grammar));
    let without = chosen(&reading).iter().filter(|chosen| chosen.scores.is_none()).count();
    assert!(without > 0 && without < chosen(&reading).len(), "{reading:?}");
    let Reading::Answer { end, .. } = &reading else { panic!("an answer") };
    assert_eq!(*end, None, "the grammar is complete");
}

#[test]
fn recording_changes_no_answer_and_other_machines_write_the_same() {
    let model = model();
    let grammar = object(&model);
    let prompt = ask(&model, "go on");
    let plain = generate(&mut session(&model), &prompt, TOKENS_MAX, None).unwrap();
    let mut recording = session(&model);
    recording.record(u64::MAX);
    assert_eq!(generate(&mut recording, &prompt, TOKENS_MAX, None).unwrap(), plain);
    let first = recording.recorded().remove(0);
    let (labels, object) = (["good", "not good"], |session: &mut Session| {
        answer(session, "how was it?", Some(&grammar))
    });
    let weighed = choice(&mut session(&model), "how was it?", &labels);
    let held = object(&mut session(&model));
    for threads in [1, 2, 3] {
        let mut other = session_with(&model, threads);
        other.read_at_once(NonZeroUsize::new(threads * 5).unwrap());
        other.compute_plainly();
        assert_eq!(answer(&mut other, "go on", None), first, "{threads} threads");
        assert_eq!(choice(&mut other, "how was it?", &labels), weighed, "{threads} threads");
        assert_eq!(object(&mut other), held, "{threads} threads");
    }
}

#[test]
fn what_was_written_down_follows_however_it_is_read() {
    let model = model();
    let grammar = object(&model);
    let readings = [
        (answer(&mut session(&model), "go on", None), None),
        (answer(&mut session(&model), "how was it?", Some(&grammar)), Some(&grammar)),
        (choice(&mut session(&model), "how was it?", &["good", "bad", "good"]), None),
    ];
    for (reading, grammar) in readings {
        for chunk in [1, 3, 64] {
            let mut other = session_with(&model, 2);
            other.read_at_once(NonZeroUsize::new(chunk).unwrap());
            assert_eq!(check(&mut other, &reading, grammar), Verified::Follows, "{chunk}");
            assert_eq!(check(&mut other, &reading, grammar), Verified::Follows, "again");
        }
    }
}

#[test]
fn the_first_difference_is_told_with_both_tokens() {
    let model = model();
    let reading = answer(&mut session(&model), "go on", None);
    let honest = chosen(&reading).to_vec();
    let other = model.tokenizer().token(honest[7].token.number() ^ 1).unwrap();
    let mut session = session(&model);
    let token = with_chosen(&reading, |chosen| chosen[7].token = other);
    let differs_at = |at: usize, claimed| {
        Verified::Differs(Difference { text: 0, at, claimed: Some(claimed), own: Some(honest[at]) })
    };
    let expected = differs_at(7, Chosen { token: other, ..honest[7] });
    assert_eq!(check(&mut session, &token, None), expected);
    let digest = with_chosen(&reading, |chosen| chosen[9].scores = Some([0; 32]));
    let expected = differs_at(9, Chosen { scores: Some([0; 32]), ..honest[9] });
    assert_eq!(check(&mut session, &digest, None), expected);
    let unproved = with_chosen(&reading, |chosen| chosen[3].scores = None);
    let Verified::Differs(Difference { at: 3, .. }) = check(&mut session, &unproved, None) else {
        panic!("a digest is missing");
    };
}

#[test]
fn an_answer_that_ends_too_early_or_goes_on_too_long_differs() {
    let model = model();
    let grammar = object(&model);
    let reading = answer(&mut session(&model), "how was it?", Some(&grammar));
    let honest = chosen(&reading).to_vec();
    let mut session = session(&model);
    let short = with_chosen(&reading, |chosen| chosen.truncate(chosen.len() - 1));
    let last = honest.len() - 1;
    let expected = Difference { text: 0, at: last, claimed: None, own: Some(honest[last]) };
    assert_eq!(check(&mut session, &short, Some(&grammar)), Verified::Differs(expected));
    let long = with_chosen(&reading, |chosen| chosen.push(honest[0]));
    let expected = Difference { text: 0, at: honest.len(), claimed: Some(honest[0]), own: None };
    assert_eq!(check(&mut session, &long, Some(&grammar)), Verified::Differs(expected));
    assert_ne!(check(&mut session, &reading, None), Verified::Follows, "without its grammar");
}

#[test]
fn a_choice_differs_by_its_digests_and_by_what_was_chosen() {
    let model = model();
    let honest = choice(&mut session(&model), "how was it?", &["good", "bad"]);
    let mut session = session(&model);
    let mut other = honest.clone();
    let Reading::Choice { index, .. } = &mut other else { panic!("a choice") };
    *index = 1 - *index;
    assert_ne!(check(&mut session, &other, None), Verified::Follows);
    let mut other = honest.clone();
    let Reading::Choice { texts, .. } = &mut other else { panic!("a choice") };
    texts[1][2].scores = None;
    let Verified::Differs(difference) = check(&mut session, &other, None) else {
        panic!("a digest is missing");
    };
    assert_eq!((difference.text, difference.at), (1, 2));
    let Reading::Choice { texts, prompt, .. } = &honest else { panic!("a choice") };
    let tokens: usize = texts.iter().map(Vec::len).sum();
    assert_eq!(honest.input_tokens(), prompt.len() + tokens);
}

#[test]
fn more_tokens_than_are_allowed_are_not_read() {
    let (mut session, prompt) = asked("go on");
    let tokens = prompt.tokens().len() as u64;
    let answer = |session: &mut Session| generate(session, &prompt, TOKENS_MAX, None);
    session.record(tokens * 2);
    assert_eq!(answer(&mut session).unwrap().end, End::Length);
    assert_eq!(answer(&mut session).unwrap().end, End::Length, "all that is allowed");
    let refused = AnswerError::InputTokens { tokens, max: 0 };
    assert!(!session.is_exhausted());
    assert_eq!(answer(&mut session).unwrap_err(), refused);
    assert!(session.is_exhausted());
    assert_eq!(session.recorded().len(), 2, "what was refused was not read");
    let mut choose = |max: u64| {
        session.record(max);
        session.choose(&prompt, &["in", "on"], &mut |_| Flow::Continue)
    };
    assert_eq!(choose(tokens + 2).unwrap().unwrap().output_tokens, 1);
    let refused = AnswerError::InputTokens { tokens: tokens + 2, max: tokens + 1 };
    assert_eq!(choose(tokens + 1).unwrap_err(), refused);
}

#[test]
fn a_cancelled_question_is_not_written_down_and_a_check_can_be_cancelled() {
    let (mut session, prompt) = asked("go on");
    session.record(u64::MAX);
    let limits = Limits { output_tokens_max: TOKENS_MAX };
    session.generate(&prompt, &limits, None, &mut |_| Flow::Cancel).unwrap();
    assert_eq!(session.recorded(), []);
    let reading = answer(&mut session, "go on", None);
    session.read_at_once(NonZeroUsize::new(4).unwrap());
    let cancelled = verify(&mut session, &reading, None, &mut |_| Flow::Cancel).unwrap();
    assert_eq!(cancelled, Verified::Cancelled);
}

#[test]
fn a_claim_that_does_not_fit_into_the_context_is_refused() {
    let model = model();
    let mut session = session(&model);
    let reading = answer(&mut session, "go on", None);
    let long = with_chosen(&reading, |chosen| chosen.resize(CONTEXT as usize, chosen[0]));
    let refused = verify(&mut session, &long, None, &mut |_| Flow::Continue).unwrap_err();
    assert!(matches!(refused, AnswerError::PromptTooLong { max: 640, .. }), "{refused}");
}

#[test]
fn a_manifest_has_a_hash_and_that_of_the_known_model_is_written_down() {
    let own = model().manifest().clone();
    let known = Manifest {
        sha256: SMOLLM2_135M.sha256.to_owned(),
        context_tokens_max: 8_192,
        ..own.clone()
    };
    assert_eq!(known.hash(), SMOLLM2_135M_MANIFEST);
    assert_ne!(own.hash(), known.hash());
    let document = include_str!("../../../docs/model.md");
    assert!(document.contains(SMOLLM2_135M_MANIFEST), "docs/model.md has it");
}
