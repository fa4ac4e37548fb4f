//! What a program for `wasm-1` needs: memory, the host's functions, and the encodings that it speaks.
//!
//! An agent exports `handle` and leaves the rest to [`answer`]:
//!
//! ```ignore
//! #[unsafe(no_mangle)]
//! extern "C" fn handle(pointer: usize, length: usize) -> u64 {
//!     guest::answer(pointer, length, |payload| {
//!         let text = guest::abi::Arguments::of(payload)?.string(0)?;
//!         Ok(guest::abi::Outputs::new().string(text).finish())
//!     })
//! }
//! ```
#![no_std]

extern crate alloc;

pub mod abi;
mod heap;
pub mod host;
pub mod json;

use alloc::string::String;
use alloc::vec::Vec;

/// Why an agent does not answer: the reason of its failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(pub String);

impl From<&str> for Fault {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

/// Reads the payload that the host gave, and gives it the encoded outputs, or ends with the fault.
pub fn answer(
    pointer: usize,
    length: usize,
    work: impl FnOnce(&[u8]) -> Result<Vec<u8>, Fault>,
) -> u64 {
    let payload = host::take(pointer, length);
    match work(&payload) {
        Ok(outputs) => host::pack(outputs),
        Err(Fault(reason)) => host::fail(&reason),
    }
}
