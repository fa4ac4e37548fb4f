//! Whole numbers between two bounds as a pattern over their digits.
//!
//! The bounds have up to 256 bits, with or without a sign, so they are compared and counted as decimal texts.

use crate::error::GrammarError;

/// The smallest number of 256 bits with a sign, without it: 2 to the power of 255.
const MAGNITUDE_MIN: &str =
    "57896044618658097711785492504343953926634992332820282019728792003956564819968";
/// The largest: one less.
const MAGNITUDE_MAX: &str =
    "57896044618658097711785492504343953926634992332820282019728792003956564819967";

/// The largest number of 256 bits without a sign.
const UNSIGNED_MAX: &str =
    "115792089237316195423570985008687907853269984665640564039457584007913129639935";

/// A number: whether it is below 0, and its digits.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Number {
    is_negative: bool,
    digits: Vec<u8>,
}

impl Number {
    fn parse(bound: &'static str, text: &str) -> Result<Self, GrammarError> {
        let wrong = || GrammarError::Bound { bound, text: text.to_owned() };
        let (is_negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(wrong());
        }
        let digits = digits.trim_start_matches('0');
        let digits = if digits.is_empty() { "0" } else { digits };
        let number = Self { is_negative: is_negative && digits != "0", digits: digits.into() };
        let largest = if number.is_negative { MAGNITUDE_MIN } else { UNSIGNED_MAX };
        if is_less(largest.as_bytes(), &number.digits) {
            return Err(wrong());
        }
        Ok(number)
    }

    fn is_below(&self, other: &Self) -> bool {
        match (self.is_negative, other.is_negative) {
            (true, false) => true,
            (false, true) => false,
            (false, false) => is_less(&self.digits, &other.digits),
            (true, true) => is_less(&other.digits, &self.digits),
        }
    }
}

/// Compares digits without leading zeros.
fn is_less(left: &[u8], right: &[u8]) -> bool {
    (left.len(), left) < (right.len(), right)
}

/// A regular expression for the numbers from `min` to `max`, each in its one written form.
pub(super) fn pattern(min: Option<&str>, max: Option<&str>) -> Result<String, GrammarError> {
    let min = min.map_or_else(|| format!("-{MAGNITUDE_MIN}"), str::to_owned);
    let max = max.map_or_else(|| MAGNITUDE_MAX.to_owned(), str::to_owned);
    let low = Number::parse("minimum", &min)?;
    let high = Number::parse("maximum", &max)?;
    if high.is_below(&low) {
        return Err(GrammarError::NoNumber { min, max });
    }
    let mut choices = Vec::new();
    match (low.is_negative, high.is_negative) {
        (true, true) => magnitudes(&high.digits, &low.digits, "-", &mut choices),
        (false, false) => magnitudes(&low.digits, &high.digits, "", &mut choices),
        (true, false) => {
            magnitudes(b"1", &low.digits, "-", &mut choices);
            magnitudes(b"0", &high.digits, "", &mut choices);
        }
        // A number below 0 that is at least one that is not: refused above.
        (false, true) => {}
    }
    Ok(choices.join("|"))
}

/// Adds patterns for the digits from `low` to `high`, length by length.
fn magnitudes(low: &[u8], high: &[u8], sign: &str, choices: &mut Vec<String>) {
    for length in low.len()..=high.len() {
        let mut first = vec![b'0'; length];
        first[0] = b'1';
        let last = vec![b'9'; length];
        let from = if length == low.len() { low } else { &first };
        let to = if length == high.len() { high } else { &last };
        same_length(from, to, sign.to_owned(), choices);
    }
}

/// Adds patterns for the digits from `low` to `high`, which are equally many.
fn same_length(low: &[u8], high: &[u8], prefix: String, choices: &mut Vec<String>) {
    let (Some((&a, low_rest)), Some((&b, high_rest))) = (low.split_first(), high.split_first())
    else {
        return choices.push(prefix);
    };
    if a == b {
        return same_length(low_rest, high_rest, prefix + &digit(a, a), choices);
    }
    // The first digit of the lower bound with all that may follow it, unless that is everything.
    let (mut from, mut to) = (a, b);
    if low_rest.iter().any(|digit| *digit != b'0') {
        let nines = vec![b'9'; low_rest.len()];
        same_length(low_rest, &nines, format!("{prefix}{}", digit(a, a)), choices);
        from += 1;
    }
    if high_rest.iter().any(|digit| *digit != b'9') {
        let zeros = vec![b'0'; high_rest.len()];
        same_length(&zeros, high_rest, format!("{prefix}{}", digit(b, b)), choices);
        to -= 1;
    }
    if from <= to {
        let any = match low_rest.len() {
            0 => String::new(),
            count => format!("[0-9]{{{count}}}"),
        };
        choices.push(format!("{prefix}{}{any}", digit(from, to)));
    }
}

fn digit(from: u8, to: u8) -> String {
    let (from, to) = (char::from(from), char::from(to));
    if from == to { from.to_string() } else { format!("[{from}-{to}]") }
}

#[cfg(test)]
mod tests;
