//! Tells by its words whether a review is friendly: an agent that asks no model.
#![no_std]

use guest::abi::{Arguments, Outputs};

const GOOD: [&str; 10] =
    ["good", "great", "well", "fast", "friendly", "love", "perfect", "reliable", "thanks", "works"];
const BAD: [&str; 10] =
    ["bad", "broken", "slow", "rude", "hate", "late", "never", "refund", "useless", "worst"];

/// `classify(string text)` answers `(string label, int256 score)`: how many more friendly than unfriendly
/// words there are, and what follows from it.
#[unsafe(no_mangle)]
extern "C" fn handle(pointer: usize, length: usize) -> u64 {
    guest::answer(pointer, length, |payload| {
        let text = Arguments::of(payload)?.string(0)?;
        let score = score(text);
        let label = match score {
            1.. => "positive",
            0 => "neutral",
            _ => "negative",
        };
        Ok(Outputs::new().string(label).int(score).finish())
    })
}

fn score(text: &str) -> i64 {
    let words = text.split(|letter: char| !letter.is_ascii_alphabetic());
    words.map(|word| count(&GOOD, word) - count(&BAD, word)).sum()
}

fn count(list: &[&str], word: &str) -> i64 {
    list.iter().any(|known| known.eq_ignore_ascii_case(word)).into()
}
