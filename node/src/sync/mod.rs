//! Bringing a node that is behind up to the chain, and noticing that it is behind.
//!
//! ```text
//! start ─▶ meeting: who is how far? ─▶ catching up: blocks in batches ─▶ consensus
//!              (a few seconds at most)      (`catch_up.rs`)                  │
//!                                                            watch: behind? stuck? (`watch.rs`)
//! ```

mod catch_up;
mod claims;
mod confirm;
mod progress;
mod proof;
mod state;
mod trust;
mod voices;
mod watch;

pub(crate) use catch_up::CatchUp;
pub(crate) use state::{Phase, SyncState};
pub(crate) use trust::{Trust, TrustCheck, TrustedBlock};
pub(crate) use watch::Watch;
