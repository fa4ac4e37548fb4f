//! The latest committed state with transactions applied to it that wait for a block: what the pool
//! asks whether one more fits.

#![expect(clippy::disallowed_types, reason = "keyed look-ups only, several for each transaction")]

mod admitted;
mod alone;
mod retract;
mod shared;
mod state;

pub use retract::Retracted;
pub use shared::SharedPending;
pub use state::{Base, PendingState, RESERVE_FACTOR};
