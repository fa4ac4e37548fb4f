//! The pool on the rules of the ledger, in memory.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the assertion")]
#![expect(clippy::unwrap_in_result, reason = "in a test, a panic is the assertion")]

mod admission;
mod bounds;
mod calls;
mod concurrency;
mod fairness;
mod favoured;
mod following;
mod journal;
mod limits;
mod market;
mod model;
mod queries;
mod rivals;
mod slices;
mod stakes;
mod support;
mod tenth;
mod verifier;
mod votes;
mod waits;
