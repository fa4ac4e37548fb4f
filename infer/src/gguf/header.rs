//! The header of a model file: its settings and the directory of its tensors.

use std::collections::BTreeMap;
use std::io::Read;

use super::metadata::Metadata;
use super::source::Source;
use super::tensor::{TensorEntry, place, read_directory};
use crate::error::FileError;

const MAGIC: [u8; 4] = *b"GGUF";
const VERSION: u32 = 3;

/// The most settings of a file; the model files seen have some thirty.
const SETTINGS_MAX: u64 = 4_096;
/// The most tensors of a file; a model of 256 layers of this architecture has fewer.
const TENSORS_MAX: u64 = 8_192;
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
        let directory = read_directory(source, tensors)?;
        let alignment = metadata.alignment()?;
        source.skip_to(source.position().next_multiple_of(alignment))?;
        let tensors = place(directory, source.position(), source.len(), alignment)?;
        Ok(Self { metadata, tensors })
    }
}
