//! The BFT engine (Malachite) with this chain's types: the only place that names its generics.
//!
//! * [`context`]: heights, votes, proposals, validators as the engine wants them.
//! * [`codec`]: how they travel and how the engine's log keeps them (borsh).
//! * [`signing`]: the scheme over this project's keys, the guarded signer, the verifier.
//! * [`settings`]: the engine's configuration made of ours.
//! * [`patience`]: how long it waits in a round.

pub(crate) mod codec;
pub(crate) mod context;
pub(crate) mod patience;
pub(crate) mod settings;
pub(crate) mod signing;
