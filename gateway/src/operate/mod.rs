//! What an operator sees of a gateway.
//!
//! ```text
//! interfaces, store ──events──▶ Counters ──┐
//! store, node ──▶ look.rs, now and then ───┴──▶ metrics
//! ```
//!
//! A question about the gateway is answered from what was counted and seen last: it reads neither the
//! store nor the chain. Nothing here has a part for each key.

mod asking;
mod event;
mod look;
mod meter;
mod number;
mod seen;
mod watch;

pub(crate) use asking::Asking;
pub use event::{Counters, Event, Interface, Uncounted};
pub(crate) use meter::Meter;
pub(crate) use number::One;
pub use seen::{Check, PHASES, Seen};
pub(crate) use watch::Watch;
