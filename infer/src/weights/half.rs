//! 16-bit floats as 32-bit ones.

/// 2 to the power of 112: the difference of the exponents' biases.
const RAISE: f32 = f32::from_bits((127 + 112) << 23);

/// The value of a finite 16-bit float, exactly: a 32-bit float has every such value, and a
/// multiplication by a power of two rounds nothing.
#[inline(always)]
pub(super) const fn widen(bits: u16) -> f32 {
    let magnitude = f32::from_bits(((bits & 0x7fff) as u32) << 13) * RAISE;
    let sign = ((bits & 0x8000) as u32) << 16;
    f32::from_bits(magnitude.to_bits() | sign)
}

/// Whether it is a number, and not an infinity.
pub(super) const fn is_finite(bits: u16) -> bool {
    bits & 0x7c00 != 0x7c00
}
