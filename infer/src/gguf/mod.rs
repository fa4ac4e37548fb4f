//! GGUF: the file form of a model. A header of settings and of a directory of tensors, then the
//! tensors' bytes.
//!
//! The file is read once, from front to back, and hashed on the way: what was hashed is what is
//! used, also if the file changes meanwhile. Every length that the file claims is compared with
//! what is left of the file before memory is taken for it.

mod metadata;
mod source;
mod tensor;

use std::collections::BTreeMap;
use std::io::Read;

pub(crate) use metadata::{Metadata, Value};
pub(crate) use source::Source;
pub(crate) use tensor::{Kind, TensorEntry};

use crate::error::FileError;

const MAGIC: [u8; 4] = *b"GGUF";
const VERSION: u32 = 3;

/// The most settings of a file; the model files seen have some thirty.
const SETTINGS_MAX: u64 = 4_096;
/// The most tensors of a file; a model of 256 layers of this architecture has fewer.
const TENSORS_MAX: u64 = 8_192;
/// The most bytes of a name of a setting or a tensor.
const NAME_BYTES_MAX: u64 = 256;

/// What stands before the tensors' bytes.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) metadata: Metadata,
    /// By name; the ranges are within the file and do not overlap.
    pub(crate) tensors: BTreeMap<String, TensorEntry>,
}

impl Header {
    /// Reads the header; the source then stands at the first byte of the tensors' part.
    pub(crate) fn read<R: Read>(source: &mut Source<R>) -> Result<Self, FileError> {
        let magic: [u8; 4] = source.array("the magic bytes")?;
        if magic != MAGIC {
            return Err(FileError::Magic { found: magic });
        }
        let version = source.u32("the version")?;
        if version != VERSION {
            return Err(FileError::Version { found: version, expected: VERSION });
        }
        let tensors = source.count("tensors", TENSORS_MAX)?;
        let settings = source.count("settings", SETTINGS_MAX)?;
        let metadata = Metadata::read(source, settings)?;
        let directory = tensor::read_directory(source, tensors)?;
        let alignment = metadata.alignment()?;
        source.skip_to(source.position().next_multiple_of(alignment))?;
        let tensors = tensor::place(directory, source.position(), source.len(), alignment)?;
        Ok(Self { metadata, tensors })
    }
}
