//! Reads an expression and calculates it on the way.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = signed { ("*" | "/" | "%") signed }
//! signed  = ("-" | "+") signed | power
//! power   = item [ "^" signed ]            so that 2^3^2 = 2^9, -2^2 = -4, 2^-1 = 1/2
//! item    = number | name "(" sum { "," sum } ")" | "(" sum ")"
//! number  = digits [ "." digits ] [ ("e" | "E") [ "+" | "-" ] digits ]
//! ```

use num_rational::BigRational;
use num_traits::{One, Signed, Zero};

use types::text::QuotedChar;

use super::exact::{bounded, decimal, power, root};

/// Nested parentheses, signs and exponents.
const DEPTH_MAX: usize = 32;

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum MathFault {
    #[error("found {found} at character {at}: expected {expected}")]
    Syntax { at: usize, found: String, expected: &'static str },
    #[error("more than {DEPTH_MAX} nested parentheses, signs or exponents")]
    TooDeep,
    #[error("a number of the calculation has more than {} binary digits", super::exact::BITS_MAX)]
    TooLarge,
    #[error("division by zero")]
    ZeroDivision,
    #[error("an exponent is not a whole number: for roots there is sqrt(x)")]
    Exponent,
    #[error("the square root of a negative number")]
    NegativeRoot,
}

type Answer = Result<BigRational, MathFault>;

/// The value, and whether it is exact.
pub(super) fn evaluate(text: &str) -> Result<(BigRational, bool), MathFault> {
    let mut reader = Reader { text, at: 0, depth: 0, is_exact: true };
    let value = reader.sum()?;
    match reader.peek() {
        None => Ok((value, reader.is_exact)),
        Some(_) => Err(reader.syntax("an operator or the end")),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    is_exact: bool,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next character that is not white space.
    fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.rest().chars().next()
    }

    fn takes(&mut self, wanted: char) -> bool {
        let is_next = self.peek() == Some(wanted);
        if is_next {
            self.at += wanted.len_utf8();
        }
        is_next
    }

    fn syntax(&mut self, expected: &'static str) -> MathFault {
        let found =
            self.peek().map_or_else(|| "the end".to_owned(), |it| QuotedChar(it).to_string());
        let at = self.text[..self.at].chars().count() + 1;
        MathFault::Syntax { at, found, expected }
    }

    /// What `inner` reads, one level deeper.
    fn deeper(&mut self, inner: impl FnOnce(&mut Self) -> Answer) -> Answer {
        if self.depth == DEPTH_MAX {
            return Err(MathFault::TooDeep);
        }
        self.depth += 1;
        let value = inner(self);
        self.depth -= 1;
        value
    }

    fn sum(&mut self) -> Answer {
        let mut value = self.product()?;
        loop {
            value = if self.takes('+') {
                bounded(value + self.product()?)?
            } else if self.takes('-') {
                bounded(value - self.product()?)?
            } else {
                return Ok(value);
            };
        }
    }

    fn product(&mut self) -> Answer {
        let mut value = self.signed()?;
        loop {
            value = if self.takes('*') {
                bounded(value * self.signed()?)?
            } else if self.takes('/') {
                bounded(value / self.divisor()?)?
            } else if self.takes('%') {
                bounded(value % self.divisor()?)?
            } else {
                return Ok(value);
            };
        }
    }

    fn divisor(&mut self) -> Answer {
        let value = self.signed()?;
        if value.is_zero() { Err(MathFault::ZeroDivision) } else { Ok(value) }
    }

    fn signed(&mut self) -> Answer {
        if self.takes('-') {
            return Ok(-self.deeper(Self::signed)?);
        }
        if self.takes('+') {
            return self.deeper(Self::signed);
        }
        let base = self.item()?;
        if !self.takes('^') {
            return Ok(base);
        }
        let exponent = self.deeper(Self::signed)?;
        power(&base, &exponent)
    }

    fn item(&mut self) -> Answer {
        match self.peek() {
            Some('(') => {
                self.at += 1;
                let value = self.deeper(Self::sum)?;
                if self.takes(')') { Ok(value) } else { Err(self.syntax("an operator or )")) }
            }
            Some('0'..='9' | '.') => self.number(),
            Some('a'..='z') => self.function(),
            _ => Err(self.syntax("a number, ( or a function")),
        }
    }

    /// Steps over digits.
    fn digits(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn number(&mut self) -> Answer {
        let whole = self.digits();
        let has_point = self.rest().starts_with('.');
        self.at += usize::from(has_point);
        let fraction = if has_point { self.digits() } else { "" };
        if whole.is_empty() || (has_point && fraction.is_empty()) {
            return Err(self.syntax("a digit"));
        }
        let mut exponent = String::new();
        if self.rest().starts_with(['e', 'E']) {
            self.at += 1;
            if self.rest().starts_with(['+', '-']) {
                exponent.push_str(&self.rest()[..1]);
                self.at += 1;
            }
            let digits = self.digits();
            if digits.is_empty() {
                return Err(self.syntax("a digit"));
            }
            exponent.push_str(digits);
        }
        decimal(whole, fraction, &exponent)
    }

    fn function(&mut self) -> Answer {
        let start = self.at;
        let rest = self.rest();
        let end = rest.find(|it: char| !it.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let name = &rest[..end];
        let is_of_many = matches!(name, "min" | "max");
        if !is_of_many && !matches!(name, "abs" | "floor" | "ceil" | "round" | "sqrt") {
            return Err(self.syntax("one of min, max, abs, floor, ceil, round, sqrt"));
        }
        self.at = start + end;
        if !self.takes('(') {
            return Err(self.syntax("("));
        }
        let mut value = self.deeper(Self::sum)?;
        while is_of_many && self.takes(',') {
            let other = self.deeper(Self::sum)?;
            value = if name == "min" { value.min(other) } else { value.max(other) };
        }
        if !self.takes(')') {
            return Err(self.syntax(if is_of_many { ", or )" } else { ")" }));
        }
        match name {
            "abs" => Ok(value.abs()),
            "floor" => Ok(value.floor()),
            "ceil" => Ok(value.ceil()),
            "round" => Ok(rounded(&value)),
            "sqrt" => self.square_root(&value),
            _ => Ok(value),
        }
    }

    fn square_root(&mut self, value: &BigRational) -> Answer {
        if value.is_negative() {
            return Err(MathFault::NegativeRoot);
        }
        let (value, is_exact) = root(value);
        self.is_exact &= is_exact;
        bounded(value)
    }
}

/// To the nearest whole number, halves away from zero.
fn rounded(value: &BigRational) -> BigRational {
    let half = BigRational::new(One::one(), 2.into());
    if value.is_negative() { (value - half).ceil() } else { (value + half).floor() }
}
