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

pub mod appeal;
pub mod assignments;
pub(crate) mod callable;
pub mod calls;
pub mod decision;
pub mod draw;
pub mod election;
pub mod eligible;
pub mod estimate;
pub mod list;
pub mod offers;
pub(crate) mod phases;
pub mod rankings;
pub mod requirements;
pub mod roster;
pub mod settlement;
pub mod terms;

#[cfg(test)]
mod scene;
#[cfg(test)]
mod tests;
