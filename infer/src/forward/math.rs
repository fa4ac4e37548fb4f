//! The sums and functions between the matrices, each with one written order.

use fearless_simd::prelude::*;
use fearless_simd::{Simd, f32x8};

/// The sum of the products of two vectors whose length is a multiple of 8: in eight lanes, each
/// from the first number to the last, and then over the lanes in the order written here.
#[inline(always)]
pub(super) fn dot<S: Simd>(simd: S, left: &[f32], right: &[f32]) -> f32 {
    let mut lanes = simd.splat_f32x8(0.0);
    let (left, right) = (left.as_chunks::<8>().0, right.as_chunks::<8>().0);
    for (left, right) in left.iter().zip(right) {
        lanes += f32x8::simd_from(simd, *left) * f32x8::simd_from(simd, *right);
    }
    let [a, b, c, d, e, f, g, h]: [f32; 8] = lanes.into();
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// Adds `factor` times `numbers` to `sums`.
#[inline(always)]
pub(super) fn add_scaled<S: Simd>(simd: S, sums: &mut [f32], numbers: &[f32], factor: f32) {
    let (sums, numbers) = (sums.as_chunks_mut::<8>().0, numbers.as_chunks::<8>().0);
    for (sums, numbers) in sums.iter_mut().zip(numbers) {
        let term = f32x8::simd_from(simd, *numbers) * factor;
        *sums = (f32x8::simd_from(simd, *sums) + term).into();
    }
}

/// Each token's numbers divided by the root of the mean of their squares, times `weights`.
#[inline(always)]
pub(super) fn normalise<S: Simd>(
    simd: S,
    numbers: &[f32],
    weights: &[f32],
    epsilon: f32,
    out: &mut Vec<f32>,
) {
    out.clear();
    for token in numbers.chunks_exact(weights.len()) {
        let mean = dot(simd, token, token) / weights.len() as f32;
        let scale = 1.0 / (mean + epsilon).sqrt();
        out.extend(token.iter().zip(weights).map(|(number, weight)| number * scale * weight));
    }
}

/// Turns scores into shares that add up to about 1.
pub(super) fn softmax(scores: &mut [f32]) {
    let largest = scores.iter().fold(f32::NEG_INFINITY, |largest, score| largest.max(*score));
    let mut sum = 0.0;
    for score in &mut *scores {
        *score = libm::expf(*score - largest);
        sum += *score;
    }
    for score in scores {
        *score /= sum;
    }
}

/// The gate of a feed-forward block: `gate * sigmoid(gate) * up`, written over `gate`.
pub(super) fn gate(gate: &mut [f32], up: &[f32]) {
    for (gate, up) in gate.iter_mut().zip(up) {
        *gate = *gate / (1.0 + libm::expf(-*gate)) * up;
    }
}

pub(super) fn add(sums: &mut [f32], numbers: &[f32]) {
    for (sum, number) in sums.iter_mut().zip(numbers) {
        *sum += number;
    }
}
