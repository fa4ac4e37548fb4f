//! The numbers of a model, packed for the kernels while the file is read.

mod half;
mod kernel;
mod matrix;
mod pack;

pub(crate) use kernel::multiply;
pub(crate) use matrix::Matrix;

use std::collections::BTreeMap;
use std::io::Read;

use crate::error::FileError;
use crate::gguf::{Kind, Source, TensorEntry};
use crate::shape::Shape;

/// One layer.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) attention_norm: Vec<f32>,
    pub(crate) query: Matrix,
    pub(crate) key: Matrix,
    pub(crate) value: Matrix,
    pub(crate) attention_out: Matrix,
    pub(crate) feed_norm: Vec<f32>,
    pub(crate) gate: Matrix,
    pub(crate) up: Matrix,
    pub(crate) down: Matrix,
}

/// All of a model.
#[derive(Debug)]
pub(crate) struct Weights {
    pub(crate) embedding: Matrix,
    pub(crate) layers: Vec<Layer>,
    pub(crate) norm: Vec<f32>,
    /// Where the file has no output matrix, the embedding is used for it.
    output: Option<Matrix>,
}

impl Weights {
    pub(crate) fn output(&self) -> &Matrix {
        self.output.as_ref().unwrap_or(&self.embedding)
    }

    /// Reads the tensors in the order in which they stand in the file.
    pub(crate) fn read<R: Read>(
        source: &mut Source<R>,
        tensors: BTreeMap<String, TensorEntry>,
        shape: &Shape,
        vocabulary: usize,
    ) -> Result<Self, FileError> {
        let mut in_order: Vec<_> = tensors.into_iter().collect();
        in_order.sort_by_key(|(_, entry)| entry.offset);
        let mut parts = Parts::default();
        for (name, entry) in in_order {
            let expected = expected_size(&name, shape, vocabulary);
            let expected =
                expected.ok_or_else(|| FileError::UnknownTensor { name: name.clone() })?;
            let found = (entry.rows, entry.cols);
            if found != expected {
                return Err(FileError::Size { name, found, expected });
            }
            source.skip_to(entry.offset)?;
            if name.ends_with("norm.weight") {
                let vector = read_vector(source, &name, &entry)?;
                parts.vectors.insert(name, vector);
            } else {
                let matrix = Matrix::read(source, &name, &entry)?;
                parts.matrices.insert(name, matrix);
            }
        }
        parts.assemble(shape.layers)
    }
}

/// Rows and columns of a tensor of this name.
fn expected_size(name: &str, shape: &Shape, vocabulary: usize) -> Option<(usize, usize)> {
    let part = match name.strip_prefix("blk.") {
        None => name,
        Some(rest) => {
            let (layer, part) = rest.split_once('.')?;
            let number: usize = layer.parse().ok()?;
            if number >= shape.layers || number.to_string() != layer {
                return None;
            }
            part
        }
    };
    let (width, inner, kv) = (shape.width, shape.inner_width, shape.kv_width());
    let is_of_a_layer = part.len() != name.len();
    Some(match (is_of_a_layer, part) {
        (false, "token_embd.weight" | "output.weight") => (vocabulary, width),
        (false, "output_norm.weight") | (true, "attn_norm.weight" | "ffn_norm.weight") => {
            (1, width)
        }
        (true, "attn_q.weight" | "attn_output.weight") => (width, width),
        (true, "attn_k.weight" | "attn_v.weight") => (kv, width),
        (true, "ffn_gate.weight" | "ffn_up.weight") => (inner, width),
        (true, "ffn_down.weight") => (width, inner),
        _ => return None,
    })
}

/// Tensors that were read, by name.
#[derive(Default)]
struct Parts {
    vectors: BTreeMap<String, Vec<f32>>,
    matrices: BTreeMap<String, Matrix>,
}

impl Parts {
    fn vector(&mut self, name: String) -> Result<Vec<f32>, FileError> {
        self.vectors.remove(&name).ok_or(FileError::MissingTensor { name })
    }

    fn matrix(&mut self, name: String) -> Result<Matrix, FileError> {
        self.matrices.remove(&name).ok_or(FileError::MissingTensor { name })
    }

    fn layer(&mut self, number: usize) -> Result<Layer, FileError> {
        let name = |part: &str| format!("blk.{number}.{part}.weight");
        Ok(Layer {
            attention_norm: self.vector(name("attn_norm"))?,
            query: self.matrix(name("attn_q"))?,
            key: self.matrix(name("attn_k"))?,
            value: self.matrix(name("attn_v"))?,
            attention_out: self.matrix(name("attn_output"))?,
            feed_norm: self.vector(name("ffn_norm"))?,
            gate: self.matrix(name("ffn_gate"))?,
            up: self.matrix(name("ffn_up"))?,
            down: self.matrix(name("ffn_down"))?,
        })
    }

    fn assemble(mut self, layers: usize) -> Result<Weights, FileError> {
        Ok(Weights {
            embedding: self.matrix("token_embd.weight".to_owned())?,
            norm: self.vector("output_norm.weight".to_owned())?,
            layers: (0..layers).map(|number| self.layer(number)).collect::<Result<_, _>>()?,
            output: self.matrices.remove("output.weight"),
        })
    }
}

/// Reads a vector of 32-bit floats, all finite.
fn read_vector<R: Read>(
    source: &mut Source<R>,
    name: &str,
    entry: &TensorEntry,
) -> Result<Vec<f32>, FileError> {
    if entry.kind != Kind::F32 {
        let (name, found) = (name.to_owned(), entry.kind);
        return Err(FileError::VectorKind { name, found: format!("{found:?}") });
    }
    let mut bytes = vec![0; entry.cols * Kind::F32.block_bytes()];
    source.fill(&mut bytes, "a tensor")?;
    let (numbers, _) = bytes.as_chunks::<4>();
    let vector: Vec<_> = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    if !vector.iter().all(|number| number.is_finite()) {
        return Err(FileError::NotFinite { name: name.to_owned() });
    }
    Ok(vector)
}
