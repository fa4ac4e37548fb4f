//! Whole numbers of 256 bits with a sign, in decimal (docs/agent-methods.md sections 4 and 9).

use std::fmt;

use alloy_primitives::{I256, U256};

use crate::text;

/// Decimal digits that any number below 10^77 has room in; 2^255 has 77.
const DIGITS_MAX: usize = 77;

/// U+2212, which models write for a minus.
const MINUS_SIGN: char = '\u{2212}';

/// A whole number from −2^255 to 2^255−1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Integer(I256);

impl Integer {
    /// Zero.
    pub const ZERO: Self = Self(I256::ZERO);
    /// −2^255.
    pub const MIN: Self = Self(I256::MIN);
    /// 2^255−1.
    pub const MAX: Self = Self(I256::MAX);
    /// What [`Self::parse`] wants.
    pub(super) const EXPECTED: &'static str = "a decimal string ^-?[0-9]+$ from -2^255 to 2^255-1";

    /// Reads `^-?[0-9]+$`. Leading zeros and `-0` are taken, as the pattern has it: what counts is
    /// the number. `None` for any other text, and for a number that does not fit.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (is_negative, digits) = sign_and_digits(text)?;
        magnitude(digits).and_then(|magnitude| signed(is_negative, magnitude)).map(Self)
    }

    /// The first whole number in a model's output, taken to the nearest that fits if it is too
    /// large. What counts as one is in docs/agent-methods.md section 9.
    #[must_use]
    pub fn first_in(output: &str) -> Option<Self> {
        let characters: Vec<char> = output.chars().collect();
        let mut at = 0;
        while let Some(ahead) = characters.get(at..)?.iter().position(char::is_ascii_digit) {
            let start = at.saturating_add(ahead);
            let numeral = Numeral::at(&characters, start);
            if numeral.is_whole {
                let number = magnitude(&numeral.digits)
                    .and_then(|magnitude| signed(numeral.is_negative, magnitude));
                let nearest = if numeral.is_negative { Self::MIN } else { Self::MAX };
                return Some(number.map_or(nearest, Self));
            }
            at = numeral.end;
        }
        None
    }
}

impl fmt::Display for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The parts of `^-?[0-9]+$`.
pub(super) fn sign_and_digits(text: &str) -> Option<(bool, &str)> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then_some((is_negative, digits))
}

/// The number that digits make, if it has at most 256 bits.
pub(super) fn magnitude(digits: &str) -> Option<U256> {
    let digits = digits.trim_start_matches('0');
    match digits.len() {
        0 => Some(U256::ZERO),
        // 2^256 has 78 digits.
        length if length <= DIGITS_MAX.saturating_add(1) => U256::from_str_radix(digits, 10).ok(),
        _ => None,
    }
}

/// The number with a sign, if it fits.
pub(super) fn signed(is_negative: bool, magnitude: U256) -> Option<I256> {
    let sign = if is_negative && !magnitude.is_zero() {
        alloy_primitives::Sign::Negative
    } else {
        alloy_primitives::Sign::Positive
    };
    I256::checked_from_sign_and_abs(sign, magnitude)
}

/// A run of digits in a text, with what belongs to it.
struct Numeral {
    is_negative: bool,
    digits: String,
    /// Whether it is a whole number that stands for itself.
    is_whole: bool,
    /// Where the search goes on.
    end: usize,
}

impl Numeral {
    /// The numeral whose first digit is at `start`.
    fn at(characters: &[char], start: usize) -> Self {
        let character = |at: usize| characters.get(at).copied();
        let before = |steps: usize| start.checked_sub(steps).and_then(character);
        let is_digit = |at: usize| character(at).is_some_and(|c| c.is_ascii_digit());

        let mut digits = run_of_digits(characters, start);
        let mut end = start.saturating_add(digits.len());
        if digits.len() <= 3 && !digits.starts_with('0') {
            while let Some(group) = group_of_three(characters, end) {
                digits.push_str(&group);
                end = end.saturating_add(4);
            }
        }

        let is_in_word =
            before(1).is_some_and(is_of_word) || character(end).is_some_and(is_of_word);
        let is_fraction = before(1) == Some('.')
            || (character(end) == Some('.') && is_digit(end.saturating_add(1)));
        let is_negative = before(1).is_some_and(|c| c == '-' || c == MINUS_SIGN)
            && !before(2).is_some_and(is_of_word);
        let is_whole = !is_in_word && !is_fraction;
        if !is_whole {
            let goes_on = |at: usize| match character(at) {
                Some('.' | ',') => is_digit(at.saturating_add(1)),
                Some(other) => is_of_word(other),
                None => false,
            };
            while goes_on(end) {
                end = end.saturating_add(1);
            }
        }
        Self { is_negative, digits, is_whole, end }
    }
}

/// What makes a word, or a number of another script, of the digits beside it.
fn is_of_word(character: char) -> bool {
    text::is_of_word(character) || character == '_'
}

fn run_of_digits(characters: &[char], start: usize) -> String {
    let rest = characters.get(start..).unwrap_or_default();
    rest.iter().take_while(|c| c.is_ascii_digit()).collect()
}

/// The digits of `,ddd` at `start`, if no digit follows them.
fn group_of_three(characters: &[char], start: usize) -> Option<String> {
    if characters.get(start) != Some(&',') {
        return None;
    }
    let digits = run_of_digits(characters, start.saturating_add(1));
    (digits.len() == 3).then_some(digits)
}

#[cfg(test)]
mod tests;
