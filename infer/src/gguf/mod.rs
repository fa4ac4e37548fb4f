//! GGUF: the file form of a model. A header of settings and of a directory of tensors, then the
//! tensors' bytes.
//!
//! The file is read once, from front to back, and hashed on the way: what was hashed is what is
//! used, also if the file changes meanwhile. Every length that the file claims is compared with
//! what is left of the file before memory is taken for it.

mod header;
mod metadata;
mod source;
mod tensor;

pub(crate) use header::Header;
pub(crate) use metadata::{Metadata, Value};
pub(crate) use source::Source;
pub(crate) use tensor::{Kind, TensorEntry};
