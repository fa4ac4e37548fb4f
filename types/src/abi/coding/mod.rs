//! Arguments and results of methods: as JSON, and in the binary encoding of Solidity's application
//! binary interface (docs/market.md section 5).
//!
//! The writer and the reader follow the type step by step and never read beyond the bytes. Other
//! libraries for this interface build a value of a type before they read: for
//! `uint8[1024][1024][1024]` in a text of a hundred bytes, they allocate gigabytes, and if several
//! offsets point to one place, they read that place several times. Here a value has one encoding,
//! so the reader reads each byte once.

mod decode;
mod encode;
mod error;
mod integer;
mod payload;
mod shape;

pub use encode::value_names;
pub use error::{VALUES_BYTES_MAX, ValueError};

#[cfg(test)]
mod tests;
