//! The rotations that tell a head where a token stands.

use crate::shape::Shape;

/// Cosines and sines by position; made as far as positions are used.
#[derive(Debug)]
pub(super) struct Rotation {
    /// Turns of each pair of numbers from one position to the next, in radians.
    frequencies: Vec<f64>,
    /// A cosine and a sine for each pair, position after position.
    turns: Vec<(f32, f32)>,
}

impl Rotation {
    pub(super) fn new(shape: &Shape) -> Self {
        let width = shape.head_width as f64;
        let frequency = |pair: usize| libm::pow(shape.rope_base, -2.0 * pair as f64 / width);
        Self { frequencies: (0..shape.head_width / 2).map(frequency).collect(), turns: Vec::new() }
    }

    /// Makes ready for positions below `end`.
    pub(super) fn extend(&mut self, end: usize) {
        let pairs = self.frequencies.len();
        for position in self.turns.len() / pairs..end {
            self.turns.extend(self.frequencies.iter().map(|frequency| {
                let angle = position as f64 * frequency;
                (libm::cos(angle) as f32, libm::sin(angle) as f32)
            }));
        }
    }

    /// Rotates the heads of the token at `position`.
    pub(super) fn apply(&self, position: usize, heads: &mut [f32]) {
        let pairs = self.frequencies.len();
        let turns = &self.turns[position * pairs..][..pairs];
        for head in heads.chunks_exact_mut(pairs * 2) {
            for ([left, right], (cos, sin)) in head.as_chunks_mut::<2>().0.iter_mut().zip(turns) {
                (*left, *right) = (*left * cos - *right * sin, *left * sin + *right * cos);
            }
        }
    }
}
