//! Weights times activations.
//!
//! Within a block of 32 columns the products are whole numbers, whose sum is exact in any order
//! and so the same on every processor. Over the blocks the sum is of 32-bit floats and has one
//! order, from the first block to the last, in a lane of its own for each row. No product is fused
//! with a sum, and no sum is shared between threads or depends on the other tokens.

use fearless_simd::prelude::*;
use fearless_simd::{Level, Simd, dispatch, f32x8, i8x32, i16x16, u8x32};

use super::half;
use super::matrix::{Matrix, Packed};
use super::pack::{Form, LANES};
use crate::activation::{Activation, Quantised};
use crate::threads::{Threads, for_each_chunk};

#[cfg(target_endian = "big")]
compile_error!("pairs of numbers are put into vector lanes in little-endian order");

/// Tokens for which a weight is unpacked once.
const TOKENS: usize = 4;
/// The fewest weights that are worth handing to another thread.
const TASK_WEIGHTS: usize = 64 * 1024;

/// Writes the products of every row with every token's activation: token by token, in each the
/// rows. `tiles` is working memory.
pub(crate) fn multiply(
    (level, threads): (Level, &Threads),
    matrix: &Matrix,
    activation: &Activation,
    tiles: &mut Vec<[f32; LANES]>,
    out: &mut [f32],
) {
    let tokens = activation.tokens();
    tiles.clear();
    tiles.resize(matrix.groups() * tokens, [0.0; LANES]);
    let work = matrix.cols * LANES * tokens;
    let groups = TASK_WEIGHTS.div_ceil(work);
    for_each_chunk(threads, tiles, groups * tokens, |task, tiles| {
        dispatch!(level, simd => multiply_groups(simd, matrix, activation, task * groups, tiles));
    });
    for (token, out) in out.chunks_exact_mut(matrix.rows).enumerate() {
        for (out, tiles) in out.chunks_mut(LANES).zip(tiles.chunks_exact(tokens)) {
            out.copy_from_slice(&tiles[token][..out.len()]);
        }
    }
}

/// The products of the eight rows from group `first` on, as many as `tiles` has room for.
#[inline(always)]
fn multiply_groups<S: Simd>(
    simd: S,
    matrix: &Matrix,
    activation: &Activation,
    first: usize,
    tiles: &mut [[f32; LANES]],
) {
    let tokens = activation.tokens();
    for (at, tiles) in tiles.chunks_exact_mut(tokens).enumerate() {
        let group = first + at;
        match &matrix.packed {
            Packed::Quantised(form, bytes) => {
                let size = form.group_bytes() * matrix.blocks();
                let bytes = &bytes[group * size..][..size];
                let (fours, ones) = tiles.as_chunks_mut::<TOKENS>();
                let rest = fours.len() * TOKENS;
                for (at, tile) in fours.iter_mut().enumerate() {
                    let tokens = std::array::from_fn(|it| activation.quantised(at * TOKENS + it));
                    *tile = by_form(simd, *form, bytes, tokens);
                }
                for (at, tile) in ones.iter_mut().enumerate() {
                    [*tile] = by_form(simd, *form, bytes, [activation.quantised(rest + at)]);
                }
            }
            Packed::Dense(numbers) => {
                let numbers = &numbers[group * matrix.cols..][..matrix.cols];
                for (token, tile) in tiles.iter_mut().enumerate() {
                    *tile = dense(simd, numbers, activation.numbers(token));
                }
            }
        }
    }
}

#[inline(always)]
fn by_form<S: Simd, const T: usize>(
    simd: S,
    form: Form,
    bytes: &[u8],
    tokens: [Quantised<'_>; T],
) -> [[f32; LANES]; T] {
    match form {
        Form::Q4_0 => blocks::<S, T, 144>(simd, bytes, tokens, q4_0),
        Form::Q4_1 => blocks::<S, T, 160>(simd, bytes, tokens, q4_1),
        Form::Q8_0 => blocks::<S, T, 272>(simd, bytes, tokens, q8_0),
    }
}

/// What a block of eight rows adds: scale and offset of each row, and for each token the sum of
/// the products of whole numbers.
type Block<S, const T: usize> = (f32x8<S>, Option<f32x8<S>>, [fearless_simd::i32x8<S>; T]);

/// Sums up the blocks of eight rows, each of `B` bytes.
#[inline(always)]
fn blocks<S: Simd, const T: usize, const B: usize>(
    simd: S,
    bytes: &[u8],
    tokens: [Quantised<'_>; T],
    block: impl Fn(S, &[u8; B], [&[i32; 16]; T]) -> Block<S, T>,
) -> [[f32; LANES]; T] {
    let (packed, _) = bytes.as_chunks::<B>();
    let count = packed.len();
    let tokens = tokens.map(|token| token.cut(count));
    let mut sums = [simd.splat_f32x8(0.0); T];
    for (at, packed) in packed.iter().enumerate() {
        let pairs = std::array::from_fn(|token| &tokens[token].pairs[at]);
        let (scale, offset, whole) = block(simd, packed, pairs);
        for token in 0..T {
            let product = scale * tokens[token].scales[at] * simd.cvt_f32_i32x8(whole[token]);
            let term = match offset {
                Some(offset) => product + offset * tokens[token].sums[at],
                None => product,
            };
            sums[token] += term;
        }
    }
    let mut out = [[0.0; LANES]; T];
    for (out, sums) in out.iter_mut().zip(sums) {
        *out = sums.into();
    }
    out
}

#[inline(always)]
fn q4_1<S: Simd, const T: usize>(
    simd: S,
    bytes: &[u8; 160],
    pairs: [&[i32; 16]; T],
) -> Block<S, T> {
    let (heads, quants) = bytes.as_chunks::<16>().0.split_at(2);
    (halves(simd, &heads[0]), Some(halves(simd, &heads[1])), nibbles(simd, quants, pairs))
}

#[inline(always)]
fn q4_0<S: Simd, const T: usize>(
    simd: S,
    bytes: &[u8; 144],
    pairs: [&[i32; 16]; T],
) -> Block<S, T> {
    let (heads, quants) = bytes.as_chunks::<16>().0.split_at(1);
    let scale = halves(simd, &heads[0]);
    (scale, Some(scale * -8.0), nibbles(simd, quants, pairs))
}

/// Sums of products with numbers of 4 bits.
#[inline(always)]
fn nibbles<S: Simd, const T: usize>(
    simd: S,
    quants: &[[u8; 16]],
    pairs: [&[i32; 16]; T],
) -> [fearless_simd::i32x8<S>; T] {
    let mut sums = [simd.splat_i32x8(0); T];
    for (at, both) in quants.as_chunks::<2>().0.iter().enumerate() {
        let bytes = u8x32::from_slice(simd, both.as_flattened());
        let (low_first, low_second) = simd.widen_u8x32(bytes & 15);
        let (high_first, high_second) = simd.widen_u8x32(bytes >> 4);
        let weights: [i16x16<S>; 4] = [
            low_first.bitcast(),
            high_first.bitcast(),
            low_second.bitcast(),
            high_second.bitcast(),
        ];
        add_products(simd, &mut sums, &weights, pairs, at * 4);
    }
    sums
}

#[inline(always)]
fn q8_0<S: Simd, const T: usize>(
    simd: S,
    bytes: &[u8; 272],
    pairs: [&[i32; 16]; T],
) -> Block<S, T> {
    let (heads, quants) = bytes.as_chunks::<16>().0.split_at(1);
    let mut sums = [simd.splat_i32x8(0); T];
    for (at, both) in quants.as_chunks::<2>().0.iter().enumerate() {
        let bytes: i8x32<S> = u8x32::from_slice(simd, both.as_flattened()).bitcast();
        let (first, second) = simd.widen_i8x32(bytes);
        add_products(simd, &mut sums, &[first, second], pairs, at * 2);
    }
    (halves(simd, &heads[0]), None, sums)
}

/// Adds, for each token, the products of each register of weights with its pair of activations,
/// the first of which is pair `first`.
#[inline(always)]
fn add_products<S: Simd, const T: usize, const W: usize>(
    simd: S,
    sums: &mut [fearless_simd::i32x8<S>; T],
    weights: &[i16x16<S>; W],
    pairs: [&[i32; 16]; T],
    first: usize,
) {
    for token in 0..T {
        for (at, weights) in weights.iter().enumerate() {
            let pair: i16x16<S> = simd.splat_i32x8(pairs[token][first + at]).bitcast();
            sums[token] += simd.pairwise_dot_product_i16x16(*weights, pair);
        }
    }
}

/// Eight 16-bit floats as 32-bit ones.
#[inline(always)]
fn halves<S: Simd>(simd: S, bytes: &[u8; 16]) -> f32x8<S> {
    let (pairs, _) = bytes.as_chunks::<2>();
    let mut numbers = [0.0; LANES];
    for (number, pair) in numbers.iter_mut().zip(pairs) {
        *number = half::widen(u16::from_le_bytes(*pair));
    }
    f32x8::simd_from(simd, numbers)
}

/// Eight rows of plain floats, summed up from the first column to the last.
#[inline(always)]
fn dense<S: Simd>(simd: S, columns: &[[f32; LANES]], numbers: &[f32]) -> [f32; LANES] {
    let mut sums = simd.splat_f32x8(0.0);
    for (column, number) in columns.iter().zip(numbers) {
        sums += f32x8::simd_from(simd, *column) * *number;
    }
    sums.into()
}

#[cfg(test)]
mod tests;
