//! Activations that are multiplied with weights: as they are, and quantised.

use crate::shape::BLOCK;

/// The largest quantised number.
const QUANT_MAX: f32 = 127.0;

/// Activations of some tokens.
#[derive(Debug, Default)]
pub(crate) struct Activation {
    width: usize,
    numbers: Vec<f32>,
    /// Quantised numbers, two in each: the first in the low half.
    pairs: Vec<[i32; BLOCK / 2]>,
    scales: Vec<f32>,
    sums: Vec<f32>,
}

/// One token's activation in blocks of 32: quantised numbers `q` that stand for `scale * q`.
#[derive(Clone, Copy)]
pub(crate) struct Quantised<'a> {
    pub(crate) pairs: &'a [[i32; BLOCK / 2]],
    pub(crate) scales: &'a [f32],
    /// The block's quantised numbers, summed up and times `scale`.
    pub(crate) sums: &'a [f32],
}

impl Quantised<'_> {
    /// The first `blocks` blocks.
    #[inline(always)]
    pub(crate) fn cut(self, blocks: usize) -> Self {
        Self {
            pairs: &self.pairs[..blocks],
            scales: &self.scales[..blocks],
            sums: &self.sums[..blocks],
        }
    }
}

impl Activation {
    /// Takes over the numbers of some tokens, `width` of each, a multiple of [`BLOCK`].
    pub(crate) fn set(&mut self, width: usize, numbers: &[f32]) {
        self.width = width;
        self.numbers.clear();
        self.numbers.extend_from_slice(numbers);
        self.pairs.clear();
        self.scales.clear();
        self.sums.clear();
        for block in numbers.as_chunks::<BLOCK>().0 {
            let (scale, quants) = quantise(block);
            let whole: i32 = quants.iter().sum();
            self.pairs.push(std::array::from_fn(|pair| {
                (quants[2 * pair] & 0xffff) | (quants[2 * pair + 1] << 16)
            }));
            self.scales.push(scale);
            self.sums.push(scale * whole as f32);
        }
    }

    pub(crate) fn tokens(&self) -> usize {
        self.numbers.len() / self.width
    }

    pub(crate) fn numbers(&self, token: usize) -> &[f32] {
        &self.numbers[token * self.width..][..self.width]
    }

    pub(crate) fn quantised(&self, token: usize) -> Quantised<'_> {
        let blocks = self.width / BLOCK;
        let range = token * blocks..(token + 1) * blocks;
        Quantised {
            pairs: &self.pairs[range.clone()],
            scales: &self.scales[range.clone()],
            sums: &self.sums[range],
        }
    }
}

/// The scale that makes the largest number 127, and the numbers rounded, ties to even.
fn quantise(block: &[f32; BLOCK]) -> (f32, [i32; BLOCK]) {
    let largest = block.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
    let scale = largest / QUANT_MAX;
    let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    let quants = block.map(|number| {
        let rounded = (number * inverse).round_ties_even();
        rounded.clamp(-QUANT_MAX, QUANT_MAX) as i32
    });
    (scale, quants)
}
