//! Short names for long numbers in hexadecimal, which a small model reads slowly and copies badly.

use std::collections::BTreeMap;

use crate::text::is_of_word;

/// Digits of addresses and of hashes.
const KINDS: [(usize, &str); 2] = [(40, "ADDRESS"), (64, "HASH")];

/// Names, and what they stand for.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(BTreeMap<String, String>);

impl Names {
    /// A text with names in the place of addresses and hashes. A text that has such a name of its
    /// own is left as it is.
    pub(super) fn hide(&mut self, text: &str) -> String {
        if self.0.is_empty() && KINDS.iter().any(|(_, name)| text.contains(name)) {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        for word in words(text) {
            match KINDS.iter().find(|(digits, _)| is_hex(word, *digits)) {
                Some((_, kind)) => out.push_str(&self.name(kind, word)),
                None => out.push_str(word),
            }
        }
        out
    }

    /// The text with what the names stand for.
    pub(super) fn show(&self, text: &str) -> String {
        let part = |word| self.0.get(word).map_or(word, String::as_str);
        words(text).map(part).collect()
    }

    fn name(&mut self, kind: &str, hidden: &str) -> String {
        let known = self.0.iter().find(|(_, known)| known.as_str() == hidden);
        if let Some((name, _)) = known {
            return name.clone();
        }
        // No digits: those are for numbers.
        let mut name = kind.to_owned();
        while self.0.contains_key(&name) {
            name.push('X');
        }
        self.0.insert(name.clone(), hidden.to_owned());
        name
    }
}

/// Whether a word is so many digits of a hexadecimal number.
pub(super) fn is_hex(word: &str, digits: usize) -> bool {
    word.len() == digits && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Runs of letters and digits, and what is between them.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = is_of_word(rest.chars().next()?);
        let end = rest.find(|letter: char| is_of_word(letter) != first);
        let (word, left) = rest.split_at(end.unwrap_or(rest.len()));
        rest = left;
        Some(word)
    })
}
