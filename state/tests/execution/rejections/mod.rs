//! Every rejection that needs state, kind by kind, in the order of docs/protocol.md section 9: each
//! case breaks its own rule and, where it can, the rules behind it.

mod blobs;
mod envelope;
mod runs;
mod turns;
mod votes;
