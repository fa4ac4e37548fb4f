//! How rows of quantised numbers are laid out for the kernels: eight rows beside each other, so
//! that a vector register holds one number of each row and no sum crosses its lanes.
//!
//! ```text
//! Q4_1  | scale of 8 rows: 8 x f16 | offset of 8 rows: 8 x f16 | 8 x 16 bytes of nibbles |
//! Q4_0  | scale of 8 rows: 8 x f16 |                             8 x 16 bytes of nibbles |
//! Q8_0  | scale of 8 rows: 8 x f16 |                            16 x 16 bytes            |
//! ```
//!
//! That is one block of 32 columns; the blocks of eight rows follow each other. The `i`-th 16 bytes
//! of nibbles have, for each row, columns `4i` and `4i + 1` in the low halves and `4i + 2` and
//! `4i + 3` in the high ones; the `i`-th 16 bytes of `Q8_0` have columns `2i` and `2i + 1`. The
//! size is that of the file.

use super::half;
use crate::gguf::Kind;
use crate::shape::BLOCK;

/// Rows beside each other.
pub(crate) const LANES: usize = 8;

/// A quantised form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Q4_0,
    Q4_1,
    Q8_0,
}

impl Form {
    pub(super) const fn kind(self) -> Kind {
        match self {
            Self::Q4_0 => Kind::Q4_0,
            Self::Q4_1 => Kind::Q4_1,
            Self::Q8_0 => Kind::Q8_0,
        }
    }

    /// Bytes of a block of eight rows.
    pub(super) const fn group_bytes(self) -> usize {
        self.kind().block_bytes() * LANES
    }

    /// Bytes of a block before its quantised numbers.
    const fn head_bytes(self) -> usize {
        match self {
            Self::Q4_0 | Self::Q8_0 => 2,
            Self::Q4_1 => 4,
        }
    }

    /// Packs block `block` of row `lane` into its place in the eight rows `group`. False if its
    /// scale or offset is not finite.
    pub(super) fn pack(self, from: &[u8], group: &mut [u8], block: usize, lane: usize) -> bool {
        let to = &mut group[block * self.group_bytes()..][..self.group_bytes()];
        let (head, quants) = from.split_at(self.head_bytes());
        for (at, bytes) in head.as_chunks::<2>().0.iter().enumerate() {
            if !half::is_finite(u16::from_le_bytes(*bytes)) {
                return false;
            }
            to[at * 2 * LANES + lane * 2..][..2].copy_from_slice(bytes);
        }
        let to = &mut to[self.head_bytes() * LANES..];
        match self {
            Self::Q4_0 | Self::Q4_1 => {
                let quant = |col: usize| (quants[col % 16] >> (col / 16 * 4)) & 15;
                for col in (0..BLOCK).step_by(4) {
                    for pair in 0..2 {
                        let byte = quant(col + pair) | (quant(col + 2 + pair) << 4);
                        to[col / 4 * 16 + lane * 2 + pair] = byte;
                    }
                }
            }
            Self::Q8_0 => {
                for (col, quant) in quants.iter().enumerate() {
                    to[col / 2 * 16 + lane * 2 + col % 2] = *quant;
                }
            }
        }
        true
    }

    /// The numbers of one packed block of one row.
    pub(super) fn unpack(self, group: &[u8], block: usize, lane: usize) -> [f32; BLOCK] {
        let from = &group[block * self.group_bytes()..][..self.group_bytes()];
        let half = |at: usize| {
            let at = at * 2 * LANES + lane * 2;
            half::widen(u16::from_le_bytes([from[at], from[at + 1]]))
        };
        let quants = &from[self.head_bytes() * LANES..];
        let nibble = |col: usize| {
            let byte = quants[col / 4 * 16 + lane * 2 + col % 2];
            f32::from((byte >> (col / 2 % 2 * 4)) & 15)
        };
        std::array::from_fn(|col| match self {
            Self::Q4_0 => half(0) * (nibble(col) - 8.0),
            Self::Q4_1 => half(0) * nibble(col) + half(1),
            Self::Q8_0 => {
                half(0) * f32::from(quants[col / 2 * 16 + lane * 2 + col % 2].cast_signed())
            }
        })
    }
}
