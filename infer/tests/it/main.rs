//! Tests of the crate's public face with a small random model that is made on the spot.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, a panic is the assertion")]

#[path = "../golden/mod.rs"]
#[expect(dead_code, reason = "the digests of the real model")]
mod golden;
#[path = "../support/mod.rs"]
mod support;

mod answers;
mod determinism;
mod grammars;
mod hostile;
mod records;
mod tokens;
