//! What happens on the chain, for waiting calls and subscribers.
//!
//! ```text
//! Events::committed (a height) ──▶ Hub: blocks with their derived events, those of the tip and
//!                                   │   those that were replayed last
//!                                   ├─▶ waiting calls, answered by hash, or told that a call of an agent
//!                                   │   has come so far
//!                                   └─▶ subscriptions, each reading block after block
//! Events::pool ────────────────────────▶ subscriptions of kind `pool`
//! ```
//!
//! A subscription pulls: it walks from its next block to the tip and then waits for the tip to
//! move. Replay and live are therefore the same loop, in order, without a gap or a repeat, and a
//! slow subscriber holds nothing but its own place. It reads in slices, for each of which it waits
//! for its turn, and who replays pays for each with a call of the rate limit.

mod block;
mod calls;
mod derive;
mod escrows;
mod filter;
mod hub;
mod item;
mod notice;
mod scan;
mod tips;
mod waiting;

pub(crate) use filter::Filter;
pub(crate) use hub::{Hub, next_height};
pub(crate) use item::Keys;
pub(crate) use notice::pool_notice;
pub(crate) use scan::{BYTES_MAX, Cursor, Meter, Slice, scan};
pub(crate) use waiting::WaitFor;
