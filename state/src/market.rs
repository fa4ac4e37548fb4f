//! The agent market: what miners offer, who may be drawn for a call, and the draw (docs/protocol.md
//! section 17).
//!
//! ```text
//!   MINER_OFFER ─▶ offers ─┐
//!   whatever changes bonds ┴▶ offers_by_executor ─▶ candidates ─▶ elect ─▶ members
//!                                                      ▲                      │
//!                             bonds, assignments ──────┘◀── assign, lock ─────┘
//! ```
//!
//! An election reads the offers of the largest bonds, however many there are: [`offers`] keeps them in
//! that order. [`eligible::candidates`] says who takes part, and [`election::elect`] draws. Who holds an
//! election then notes for each member that it works ([`assignments`]) and locks a part of its bond
//! ([`crate::bonds`]).

pub mod assignments;
pub mod election;
pub mod eligible;
pub mod list;
pub mod offers;

#[cfg(test)]
mod tests;
