//! Digests of scores and answers that never change, and how they are made. A change of one is a change
//! of what all miners answer: give the engine a new name (`ENGINE` in src/model.rs) with it.

use infer::{
    Chosen, Flow, Grammars, Limits, Model, Prompt, Reading, Role, Session, Token, Tool, Turn,
};
use serde_json::json;
use sha2::{Digest as _, Sha256};

/// A question, and the digests of what a model makes of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Golden {
    /// The turn of the system, if there is one.
    pub(crate) system: Option<&'static str>,
    /// The turn of the user.
    pub(crate) text: &'static str,
    /// How often the user says it.
    pub(crate) times: usize,
    /// How many times scores are asked for: after the prompt, and after each token that follows it.
    pub(crate) steps: usize,
    /// The most tokens of each answer.
    pub(crate) output_tokens_max: u32,
    /// [`scores`].
    pub(crate) scores: &'static str,
    /// [`answers`].
    pub(crate) answers: &'static str,
}

/// Of the small model with random weights in tests/support; its prompt has more than 512 tokens.
pub(crate) const SMALL: Golden = Golden {
    system: None,
    text: "The quick brown fox: 1, 2, 3 and another 40 words \u{1f98a} on an old fence. ",
    times: 8,
    steps: 24,
    output_tokens_max: 20,
    scores: "ec2b659a8947f7072de1d042274fbbad8436bcfd174909b9c8659c2497c062cd",
    answers: "c0cf19fcca746c25965b433c0027017353e7c17aed03ab3a1a7f0ad11cecd689",
};

/// Of `loud` in tests/support, with the prompt of [`SMALL`].
pub(crate) const LOUD: Golden = Golden {
    scores: "4765a4186ab8fafaa18055ddaec9524ed187100dde6cc8ded502084f1cca7a66",
    answers: "e1c9cd70539ea48180862831ec05b1e93e5f739e2ea535002297ba0c44555920",
    ..SMALL
};

/// [`infer::scores_sha256`] of the scores of `overflowing` in tests/support after the prompt of [`SMALL`].
pub(crate) const OVERFLOWING: &str =
    "095b3cb415445e536867a74faf9e15d6d3ac71724b9a8dc5ff7ce102b4d94372";

pub(crate) const SYSTEM: &str =
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face";

/// Of the real model ([`infer::SMOLLM2_135M`]). The first is short, for emulated processors.
pub(crate) const REAL: [Golden; 3] = [
    Golden {
        system: None,
        text: "Name a fruit.",
        times: 1,
        steps: 6,
        output_tokens_max: 6,
        scores: "c279f4d027d50b740bdf2d5cff612492c6cc38fd9399f644392dc7f82e282c0b",
        answers: "8f3d3ef5fa4de9fb9658f4e7aad8473ba9b7307987d55afa3579ed1f9b8e549f",
    },
    Golden {
        system: Some(SYSTEM),
        text: "Give me three fruits and explain why they are healthy.",
        times: 1,
        steps: 48,
        output_tokens_max: 20,
        scores: "8d0d693fe9f156e38c3dbd818bc11838d728605a09bb55426a47a05eca99b239",
        answers: "f8780420c25c132a084cb2fb10370b3342e9252d4121ee3516efac54378b6162",
    },
    Golden {
        system: Some(SYSTEM),
        text: "What is the capital of France?",
        times: 1,
        steps: 48,
        output_tokens_max: 20,
        scores: "b3b2c8eac0788b22e4c51fcb9850656cebdc14840d711101e7fca274209b1f96",
        answers: "f56cf97e08965b204081aaa96f0229d6aa63205242652b0b5d264834561ff4de",
    },
];

/// The question as a model reads it.
pub(crate) fn prompt(model: &Model, golden: &Golden) -> Prompt {
    let text = golden.text.repeat(golden.times);
    let mut turns = vec![Turn { role: Role::User, text: &text }];
    if let Some(text) = golden.system {
        turns.insert(0, Turn { role: Role::System, text });
    }
    model.prompt(&turns)
}

/// Sha256 over all scores after the prompt and after each of some tokens that follow it, always the one
/// with the highest score.
pub(crate) fn scores(session: &mut Session, prompt: &Prompt, steps: usize) -> String {
    let mut tokens: Vec<Token> = prompt.tokens().to_vec();
    let mut hasher = Sha256::new();
    for _ in 0..steps {
        let scores = session.scores(&tokens).unwrap();
        scores.iter().for_each(|score| hasher.update(score.to_le_bytes()));
        let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let best = scores.iter().position(|score| *score == highest).unwrap();
        tokens.push(session.model().tokenizer().token(best as u32).unwrap());
    }
    const_hex::encode(hasher.finalize())
}

/// Sha256 over what a session reads, chooses and says when it answers a prompt: freely, with a whole
/// number, with a call of a tool, and by a choice between texts.
pub(crate) fn answers(
    session: &mut Session,
    grammars: &Grammars,
    prompt: &Prompt,
    output_tokens_max: u32,
) -> String {
    let address = json!({ "type": "object", "properties": {
        "address": { "type": "string", "pattern": "^0x[0-9a-f]{6}$" } }, "required": ["address"] });
    let integer = grammars.integer(Some("-20"), Some("3000")).unwrap();
    let call = grammars.tool_call(&Tool { name: "balance", arguments: &address }).unwrap();
    let limits = Limits { output_tokens_max };
    let mut hasher = Sha256::new();
    session.record(u64::MAX);
    for form in [None, Some(&integer), Some(&call)] {
        let answer = session.generate(prompt, &limits, form, &mut |_| Flow::Continue).unwrap();
        hasher.update(answer.text);
    }
    let texts = ["The answer is yes.", "The answer is no."];
    let choice = session.choose(prompt, &texts, &mut |_| Flow::Continue).unwrap().unwrap();
    choice.scores.iter().for_each(|score| hasher.update(score.to_le_bytes()));
    for reading in session.recorded() {
        let (prompt, chosen) = match reading {
            Reading::Answer { prompt, chosen, end } => {
                (prompt, chosen.into_iter().chain(end).collect())
            }
            Reading::Choice { prompt, texts, index } => {
                hasher.update((index as u64).to_le_bytes());
                (prompt, texts.concat())
            }
        };
        prompt.iter().for_each(|token| hasher.update(token.number().to_le_bytes()));
        for Chosen { token, scores } in chosen {
            hasher.update(token.number().to_le_bytes());
            hasher.update(scores.unwrap_or_default());
        }
    }
    const_hex::encode(hasher.finalize())
}
