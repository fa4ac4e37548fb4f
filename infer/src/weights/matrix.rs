//! A matrix of weights.

use std::io::Read;

use super::half;
use super::pack::{Form, LANES};
use crate::error::FileError;
use crate::gguf::{Kind, Source, TensorEntry};
use crate::shape::BLOCK;

/// A matrix; its rows are multiplied with an activation.
pub(crate) struct Matrix {
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) packed: Packed,
}

/// The numbers, eight rows beside each other. What is missing to the last eight is 0.
pub(super) enum Packed {
    /// As pack.rs draws it.
    Quantised(Form, Vec<u8>),
    /// One number of each of eight rows, column by column.
    Dense(Vec<[f32; LANES]>),
}

impl std::fmt::Debug for Matrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Matrix")
            .field("rows", &self.rows)
            .field("cols", &self.cols)
            .finish_non_exhaustive()
    }
}

impl Matrix {
    pub(crate) const fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn groups(&self) -> usize {
        self.rows.div_ceil(LANES)
    }

    pub(super) fn blocks(&self) -> usize {
        self.cols / BLOCK
    }

    /// Reads and packs a tensor whose columns are a multiple of [`BLOCK`].
    pub(super) fn read<R: Read>(
        source: &mut Source<R>,
        name: &str,
        entry: &TensorEntry,
    ) -> Result<Self, FileError> {
        let (rows, cols) = (entry.rows, entry.cols);
        let packed = match entry.kind {
            Kind::Q4_0 => read_quantised(source, name, entry, Form::Q4_0)?,
            Kind::Q4_1 => read_quantised(source, name, entry, Form::Q4_1)?,
            Kind::Q8_0 => read_quantised(source, name, entry, Form::Q8_0)?,
            Kind::F16 | Kind::F32 => read_dense(source, name, entry)?,
        };
        Ok(Self { rows, cols, packed })
    }

    /// Writes row `row` to `out`.
    pub(crate) fn row(&self, row: usize, out: &mut [f32]) {
        let (group, lane) = (row / LANES, row % LANES);
        match &self.packed {
            Packed::Quantised(form, bytes) => {
                let size = form.group_bytes() * self.blocks();
                let group = &bytes[group * size..][..size];
                for (block, out) in out.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
                    *out = form.unpack(group, block, lane);
                }
            }
            Packed::Dense(numbers) => {
                let group = &numbers[group * self.cols..][..self.cols];
                for (out, numbers) in out.iter_mut().zip(group) {
                    *out = numbers[lane];
                }
            }
        }
    }
}

fn not_finite(name: &str) -> FileError {
    FileError::NotFinite { name: name.to_owned() }
}

fn read_quantised<R: Read>(
    source: &mut Source<R>,
    name: &str,
    entry: &TensorEntry,
    form: Form,
) -> Result<Packed, FileError> {
    let blocks = entry.cols / BLOCK;
    let block_bytes = form.kind().block_bytes();
    let mut row_bytes = vec![0; blocks * block_bytes];
    let group_bytes = form.group_bytes() * blocks;
    let mut bytes = vec![0; group_bytes * entry.rows.div_ceil(LANES)];
    for row in 0..entry.rows {
        source.fill(&mut row_bytes, "a tensor")?;
        let group = &mut bytes[row / LANES * group_bytes..][..group_bytes];
        for (block, from) in row_bytes.chunks_exact(block_bytes).enumerate() {
            if !form.pack(from, group, block, row % LANES) {
                return Err(not_finite(name));
            }
        }
    }
    Ok(Packed::Quantised(form, bytes))
}

fn read_dense<R: Read>(
    source: &mut Source<R>,
    name: &str,
    entry: &TensorEntry,
) -> Result<Packed, FileError> {
    let cols = entry.cols;
    let mut row_bytes = vec![0; cols * entry.kind.block_bytes()];
    let mut numbers = vec![[0.0; LANES]; cols * entry.rows.div_ceil(LANES)];
    for row in 0..entry.rows {
        source.fill(&mut row_bytes, "a tensor")?;
        let group = &mut numbers[row / LANES * cols..][..cols];
        for (bytes, lanes) in row_bytes.chunks_exact(entry.kind.block_bytes()).zip(group) {
            let number = match *bytes {
                [a, b] => {
                    let bits = u16::from_le_bytes([a, b]);
                    if half::is_finite(bits) { half::widen(bits) } else { f32::NAN }
                }
                [a, b, c, d] => f32::from_le_bytes([a, b, c, d]),
                _ => f32::NAN,
            };
            if !number.is_finite() {
                return Err(not_finite(name));
            }
            lanes[row % LANES] = number;
        }
    }
    Ok(Packed::Dense(numbers))
}
