//! Numbers of a calculation: fractions of bounded size, how they are read and written.

use num_bigint::{BigInt, BigUint, Sign};
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};

use super::expression::MathFault;

/// Binary digits of a numerator and of a denominator; about 2,466 decimal ones.
pub(super) const BITS_MAX: u64 = 8192;
/// Decimal places of a root that is not exact, and of a fraction that decimals cannot give exactly.
const PLACES: u32 = 40;
/// Decimal places up to which a fraction is written out when decimals give it exactly.
const EXACT_PLACES_MAX: u64 = 200;
/// A fraction of at most so many characters is given beside its decimals.
const FRACTION_CHARACTERS_MAX: usize = 100;

/// A value that is not too large.
pub(super) fn bounded(value: BigRational) -> Result<BigRational, MathFault> {
    let fits = value.numer().bits() <= BITS_MAX && value.denom().bits() <= BITS_MAX;
    if fits { Ok(value) } else { Err(MathFault::TooLarge) }
}

/// The number `whole.fraction` times ten to the power of `exponent`, all as digits; the exponent may
/// have a sign and may be empty.
pub(super) fn decimal(
    whole: &str,
    fraction: &str,
    exponent: &str,
) -> Result<BigRational, MathFault> {
    let digits: BigInt =
        format!("{whole}{fraction}").parse().map_err(|_too_long| MathFault::TooLarge)?;
    let exponent: i64 = if exponent.is_empty() { 0 } else { exponent.parse().unwrap_or(i64::MAX) };
    let places = i64::try_from(fraction.len()).map_err(|_too_long| MathFault::TooLarge)?;
    let shift = exponent.checked_sub(places).ok_or(MathFault::TooLarge)?;
    let ten = BigRational::from_integer(10.into());
    let scale = power(&ten, &BigRational::from_integer(shift.into()))?;
    bounded(BigRational::from_integer(digits) * scale)
}

/// A power with a whole exponent. Its size is known before it is calculated.
pub(super) fn power(base: &BigRational, exponent: &BigRational) -> Result<BigRational, MathFault> {
    if !exponent.is_integer() {
        return Err(MathFault::Exponent);
    }
    let exponent = exponent.numer();
    if base.is_zero() && exponent.is_negative() {
        return Err(MathFault::ZeroDivision);
    }
    if base.is_zero() || base.abs().is_one() || exponent.is_zero() {
        let is_one = exponent.is_zero() || base.is_one();
        let is_minus_one = base.is_negative() && exponent.bit(0);
        return Ok(if is_one {
            One::one()
        } else if is_minus_one {
            base.clone()
        } else {
            base.abs()
        });
    }
    let bits = base.numer().bits().max(base.denom().bits());
    // A number of b bits, raised to e, has more than (b - 1) * e of them.
    let times =
        exponent.abs().to_u64().filter(|times| (bits - 1).saturating_mul(*times) <= BITS_MAX);
    let times = times.and_then(|times| i32::try_from(times).ok()).ok_or(MathFault::TooLarge)?;
    bounded(base.pow(if exponent.is_negative() { -times } else { times }))
}

/// The square root of a number that is not negative, and whether it is exact; if not, it is the next
/// lower one with [`PLACES`] decimal places.
pub(super) fn root(value: &BigRational) -> (BigRational, bool) {
    let (numer, denom) = (value.numer().sqrt(), value.denom().sqrt());
    if &numer * &numer == *value.numer() && &denom * &denom == *value.denom() {
        return (BigRational::new(numer, denom), true);
    }
    let scale = BigInt::from(10).pow(PLACES);
    let scaled = value * BigRational::from_integer(&scale * &scale);
    (BigRational::new(scaled.to_integer().sqrt(), scale), false)
}

/// The value in decimals. `about` stands before what is not exact, and the fraction after it.
pub(super) fn written(value: &BigRational, is_exact: bool) -> String {
    let places = decimal_places(value.denom().magnitude());
    if let Some(places) = places.filter(|places| *places <= EXACT_PLACES_MAX) {
        let text = with_places(value, u32::try_from(places).unwrap_or(PLACES));
        return if is_exact { text } else { format!("about {text}") };
    }
    let text = format!("about {}", with_places(value, PLACES));
    let fraction = value.to_string();
    if is_exact && fraction.len() <= FRACTION_CHARACTERS_MAX {
        return format!("{text}, exactly {fraction}");
    }
    text
}

/// How many decimal places give a fraction with this denominator exactly, if any do.
fn decimal_places(denominator: &BigUint) -> Option<u64> {
    let twos = denominator.trailing_zeros().unwrap_or(0);
    let mut rest = denominator >> twos;
    let mut fives = 0_u64;
    while !rest.is_one() {
        if !(&rest % 5_u32).is_zero() {
            return None;
        }
        rest /= 5_u32;
        fives += 1;
    }
    Some(twos.max(fives))
}

/// The value with so many decimal places, the last one rounded, halves away from zero.
fn with_places(value: &BigRational, places: u32) -> String {
    let scale = BigUint::from(10_u32).pow(places);
    let (numer, denom) = (value.numer().magnitude(), value.denom().magnitude());
    let scaled = (numer * scale * 2_u32 + denom) / (denom * 2_u32);
    let is_negative = value.numer().sign() == Sign::Minus && !scaled.is_zero();
    let mut digits = scaled.to_string();
    let places = usize::try_from(places).unwrap_or(0);
    if digits.len() <= places {
        digits.insert_str(0, &"0".repeat(places + 1 - digits.len()));
    }
    if places > 0 {
        digits.insert(digits.len() - places, '.');
    }
    format!("{}{digits}", if is_negative { "-" } else { "" })
}
