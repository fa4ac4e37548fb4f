//! Whole numbers of up to 256 bits: words, and decimal digits.

use super::shape::WORD;

/// 32 bytes, big-endian; of a number with a sign its two's complement.
pub(super) type Word = [u8; WORD];

/// 2^256 has 78 digits.
const DIGITS_MAX: usize = 78;
/// As many digits as a limb of 64 bits always holds, and what they count up to.
const LIMB_DIGITS: usize = 19;
const LIMB: u64 = 10_u64.pow(19);
/// The limbs of 64 bits in a word.
const LIMBS: usize = WORD / 8;

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
    let mut limbs = [0_u64; LIMBS];
    let (first, rest) = digits.split_at(digits.len() % LIMB_DIGITS);
    let rest = rest.as_bytes().chunks(LIMB_DIGITS).filter_map(|it| std::str::from_utf8(it).ok());
    for part in std::iter::once(first).filter(|part| !part.is_empty()).chain(rest) {
        // The least significant limb is the last one.
        let mut carry: u64 = part.parse().ok()?;
        for limb in limbs.iter_mut().rev() {
            // At most (2^64 − 1) × 10^19 + 2^64 − 1, which is less than 2^128.
            let product = u128::from(*limb).saturating_mul(u128::from(LIMB));
            (carry, *limb) = halves(product.saturating_add(u128::from(carry)));
        }
        if carry > 0 {
            return None;
        }
    }
    let mut word = [0; WORD];
    for (bytes, limb) in word.as_chunks_mut().0.iter_mut().zip(limbs) {
        *bytes = limb.to_be_bytes();
    }
    Some(word)
}

/// The high and the low 64 bits.
fn halves(number: u128) -> (u64, u64) {
    let half = |bits: u128| u64::try_from(bits).unwrap_or(u64::MAX);
    (half(number >> 64), half(number & u128::from(u64::MAX)))
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
    let mut limbs = [0_u64; LIMBS];
    for (limb, bytes) in limbs.iter_mut().zip(word.as_chunks().0) {
        *limb = u64::from_be_bytes(*bytes);
    }
    let mut parts = Vec::new();
    while limbs != [0; LIMBS] {
        let mut rest = 0_u64;
        for limb in &mut limbs {
            let dividend = (u128::from(rest) << 64) | u128::from(*limb);
            let divisor = u128::from(LIMB);
            // The rest is below the divisor, so the quotient is below 2^64.
            (_, *limb) = halves(dividend.checked_div(divisor).unwrap_or(0));
            (_, rest) = halves(dividend.checked_rem(divisor).unwrap_or(0));
        }
        parts.push(rest);
    }
    let mut text = String::new();
    for part in parts.iter().rev() {
        let width = if text.is_empty() { 0 } else { LIMB_DIGITS };
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
