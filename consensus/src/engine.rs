//! The BFT engine (Malachite) with this chain's types: the only place that names its generics.
//!
//! * [`context`]: heights, votes, proposals, validators as the engine wants them.
//! * [`codec`]: how they travel and how the engine's log keeps them (borsh).
//! * [`scheme`]: the signature scheme over this project's keys.
//! * [`signing`]: the guarded signer, the verifier.
//! * [`settings`]: the engine's configuration made of ours.
//! * [`timeouts`]: how long it waits in a round.

pub(crate) mod codec;
pub(crate) mod context;
pub(crate) mod scheme;
pub(crate) mod settings;
pub(crate) mod signing;
pub(crate) mod timeouts;
