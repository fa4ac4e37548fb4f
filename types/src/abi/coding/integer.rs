//! Whole numbers of up to 256 bits: words, and decimal digits.

use super::shape::WORD;

/// 32 bytes, big-endian; of a number with a sign its two's complement.
pub(super) type Word = [u8; WORD];

/// 2^256 has 78 digits.
const DIGITS_MAX: usize = 78;
/// What a division takes off at a time, and its digits.
const PART: u32 = 10_000;
const PART_DIGITS: usize = 4;

/// A number without a sign that fits into so many bits.
pub(super) fn unsigned(text: &str, bits: u16) -> Option<Word> {
    let word = magnitude(text)?;
    is_unsigned(&word, bits).then_some(word)
}

/// A number with a sign that fits into so many bits.
pub(super) fn signed(text: &str, bits: u16) -> Option<Word> {
    let Some(digits) = text.strip_prefix('-') else {
        let word = magnitude(text)?;
        return (!is_negative(&word) && is_signed(&word, bits)).then_some(word);
    };
    let magnitude = magnitude(digits)?;
    let word = negated(&magnitude);
    let is_zero = magnitude == [0; WORD];
    ((is_zero || is_negative(&word)) && is_signed(&word, bits)).then_some(word)
}

/// Whether a word is a number without a sign of so many bits.
pub(super) fn is_unsigned(word: &Word, bits: u16) -> bool {
    let (above, _) = word.split_at(first_byte(bits));
    above.iter().all(|byte| *byte == 0)
}

/// Whether a word is a number with a sign of so many bits.
pub(super) fn is_signed(word: &Word, bits: u16) -> bool {
    let (above, own) = word.split_at(first_byte(bits));
    let is_negative = own.first().is_some_and(|byte| *byte >= 0x80);
    let filling = if is_negative { 0xff } else { 0 };
    above.iter().all(|byte| *byte == filling)
}

/// Where the bytes of a number of so many bits begin.
fn first_byte(bits: u16) -> usize {
    WORD.saturating_sub(usize::from(bits / 8))
}

fn is_negative(word: &Word) -> bool {
    word.first().is_some_and(|byte| *byte >= 0x80)
}

/// The number that decimal digits make, zeros before it among them.
fn magnitude(digits: &str) -> Option<Word> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = digits.trim_start_matches('0');
    if digits.len() > DIGITS_MAX {
        return None;
    }
    let mut word = [0; WORD];
    for digit in digits.bytes() {
        let mut carry = u16::from(digit.saturating_sub(b'0'));
        for byte in word.iter_mut().rev() {
            let [high, low] =
                u16::from(*byte).saturating_mul(10).saturating_add(carry).to_be_bytes();
            *byte = low;
            carry = u16::from(high);
        }
        if carry > 0 {
            return None;
        }
    }
    Some(word)
}

/// The number with the other sign.
fn negated(word: &Word) -> Word {
    let mut negated = word.map(|byte| !byte);
    for byte in negated.iter_mut().rev() {
        let (sum, is_over) = byte.overflowing_add(1);
        *byte = sum;
        if !is_over {
            break;
        }
    }
    negated
}

/// The decimal digits of a number without a sign.
pub(super) fn unsigned_text(word: &Word) -> String {
    if let ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ..], Some(low)) =
        (word, word.last_chunk::<16>())
    {
        return u128::from_be_bytes(*low).to_string();
    }
    let (mut left, mut parts) = (*word, Vec::new());
    while left != [0; WORD] {
        let mut rest = 0_u32;
        for byte in &mut left {
            let dividend = rest.saturating_mul(256).saturating_add(u32::from(*byte));
            // The rest is below the divisor, so the quotient is below 256.
            *byte = u8::try_from(dividend.checked_div(PART).unwrap_or(0)).unwrap_or(u8::MAX);
            rest = dividend.checked_rem(PART).unwrap_or(0);
        }
        parts.push(rest);
    }
    let mut text = String::new();
    for part in parts.iter().rev() {
        let width = if text.is_empty() { 0 } else { PART_DIGITS };
        text.push_str(&format!("{part:0width$}"));
    }
    text
}

/// The decimal digits of a number with a sign.
pub(super) fn signed_text(word: &Word) -> String {
    if is_negative(word) {
        format!("-{}", unsigned_text(&negated(word)))
    } else {
        unsigned_text(word)
    }
}
