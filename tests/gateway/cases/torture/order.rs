//! What clients ask.

use serde_json::{Value, json};
use testkit::chat::chat;
use testkit::dice::Dice;

/// Longer than what a request has inline: it goes into a blob.
const LONG_WORDS: usize = 5_000;
/// Different bodies that all clients ask again and again.
const COMMON: u64 = 3;

/// A request, and how it is made.
pub(super) struct Order {
    /// What tells its run from others on the chain. It is the answer, too.
    pub(super) title: String,
    pub(super) body: Value,
    /// Its `Idempotency-Key`.
    pub(super) name: Option<String>,
    /// Whether the miner holds its answer back until the suite lets it go.
    pub(super) is_held: bool,
}

impl Order {
    /// The next order of a client.
    pub(super) fn next(customer: u64, number: u64, dice: &mut Dice) -> Self {
        let is_stream = dice.hits(2);
        let shape = if is_stream { "stream" } else { "whole" };
        // In each fourth, two clients ask the same with the same Idempotency-Key.
        if number.is_multiple_of(4) {
            let title = format!("pair-{}-{number}", customer / 2);
            // Both must have the same body.
            return Self::of(title.clone(), number.is_multiple_of(8), Some(title), dice);
        }
        if dice.hits(4) {
            return Self::of(
                format!("common-{}-{shape}", dice.roll(0, COMMON)),
                is_stream,
                None,
                dice,
            );
        }
        let title = format!("own-{customer}-{number}");
        let name = dice.hits(2).then(|| title.clone());
        Self::of(title, is_stream, name, dice)
    }

    fn of(title: String, is_stream: bool, name: Option<String>, dice: &mut Dice) -> Self {
        let is_own = title.starts_with("own");
        let is_held = is_own && dice.hits(8);
        let word = if is_held { "hold" } else { "moody" };
        let mut text = format!("{word} {title}");
        if is_own && dice.hits(10) {
            text = format!("{title} {}\n{text}", "long ".repeat(LONG_WORDS));
        }
        let mut body = chat(&text);
        body["stream"] = json!(is_stream);
        Self { title, body, name, is_held }
    }

    pub(super) fn is_stream(&self) -> bool {
        self.body["stream"] == true
    }
}
