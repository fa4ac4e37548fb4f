//! The agent market: the draw of the members of a call (docs/protocol.md section 17).

pub mod election;
