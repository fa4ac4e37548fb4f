//! The sizes of a model, as its file says them.

use crate::error::FileError;
use crate::gguf::{Metadata, Value};

/// The one architecture that is computed here.
const ARCHITECTURE: &str = "llama";

/// The most layers.
const LAYERS_MAX: u32 = 256;
/// The widest activation.
const WIDTH_MAX: u32 = 64 * 1024;
/// The most attention heads.
const HEADS_MAX: u32 = 1_024;
/// The most tokens of a context: the positions that a 32-bit float counts exactly are far more.
const CONTEXT_MAX: u32 = 1 << 20;

/// Activations are quantised in blocks of this many.
pub(crate) const BLOCK: usize = 32;

/// The sizes of a model. All are above 0.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    pub(crate) layers: usize,
    /// Numbers of an activation between layers; a multiple of [`BLOCK`].
    pub(crate) width: usize,
    /// Numbers in the middle of a feed-forward block; a multiple of [`BLOCK`].
    pub(crate) inner_width: usize,
    pub(crate) heads: usize,
    /// Heads of keys and values; divides `heads`.
    pub(crate) kv_heads: usize,
    /// Numbers of a head; a multiple of 8.
    pub(crate) head_width: usize,
    /// The most tokens that the model was made for.
    pub(crate) context_tokens_max: usize,
    pub(crate) rope_base: f64,
    pub(crate) norm_epsilon: f32,
}

impl Shape {
    pub(crate) fn read(metadata: &Metadata) -> Result<Self, FileError> {
        let architecture = metadata.text("general.architecture")?;
        if architecture != ARCHITECTURE {
            let found = architecture.to_owned();
            return Err(FileError::Architecture { found, expected: ARCHITECTURE });
        }
        refuse_unknown(metadata)?;
        let width = multiple(metadata, "llama.embedding_length", WIDTH_MAX, BLOCK)?;
        let heads = metadata.number("llama.attention.head_count", 1, HEADS_MAX)?;
        let kv_heads = metadata.number("llama.attention.head_count_kv", 1, HEADS_MAX)?;
        if !heads.is_multiple_of(kv_heads) || !width.is_multiple_of(heads * 8) {
            return Err(FileError::Heads { width, heads, kv_heads });
        }
        let shape = Self {
            layers: metadata.number("llama.block_count", 1, LAYERS_MAX)?,
            width,
            inner_width: multiple(metadata, "llama.feed_forward_length", WIDTH_MAX, BLOCK)?,
            heads,
            kv_heads,
            head_width: width / heads,
            context_tokens_max: metadata.number("llama.context_length", 2, CONTEXT_MAX)?,
            rope_base: metadata.positive("llama.rope.freq_base")?,
            norm_epsilon: metadata.positive("llama.attention.layer_norm_rms_epsilon")? as f32,
        };
        let rotated = metadata.number("llama.rope.dimension_count", 1, WIDTH_MAX)?;
        if rotated != shape.head_width {
            let expected = shape.head_width;
            return Err(FileError::Rotation { found: rotated, expected });
        }
        Ok(shape)
    }

    /// Numbers of all keys of a token in a layer; as many values.
    pub(crate) const fn kv_width(&self) -> usize {
        self.kv_heads * self.head_width
    }
}

fn multiple(metadata: &Metadata, name: &str, max: u32, of: usize) -> Result<usize, FileError> {
    let value = metadata.number(name, 1, max)?;
    if !value.is_multiple_of(of) {
        return Err(FileError::NotMultiple { name: name.to_owned(), value, of });
    }
    Ok(value)
}

/// Settings that change what the architecture computes, in ways that are not computed here.
fn refuse_unknown(metadata: &Metadata) -> Result<(), FileError> {
    const ABSENT: [&str; 4] = [
        "llama.expert_count",
        "llama.attention.key_length",
        "llama.attention.value_length",
        "llama.attention.sliding_window",
    ];
    for name in ABSENT {
        let value = metadata.optional(name);
        if value.is_some_and(|value| *value != Value::Integer(0)) {
            return Err(FileError::Unsupported { name: name.to_owned() });
        }
    }
    const SCALING: &str = "llama.rope.scaling.type";
    let scaling = metadata.optional(SCALING);
    if scaling.is_some_and(|value| *value != Value::Text("none".to_owned())) {
        return Err(FileError::Unsupported { name: SCALING.to_owned() });
    }
    Ok(())
}
