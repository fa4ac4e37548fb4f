//! Agreement: the BFT engine, and the loop between it and the ledger.
//!
//! The engine is Malachite (Tendermint's algorithm as a library) with its own network, log and
//! block sync. This crate gives it this chain's types and keys, and connects it to whoever keeps
//! the chain through four small ports.
//!
//! ```text
//!            peers                                     Pace: is a block due?
//!              │                                             │
//!        ┌─────┴─────┐  messages   ┌──────────┐  start next  │
//!        │  engine   ├────────────►│   app    │◄─────────────┘
//!        │ (actors)  │◄────────────┤  (loop)  ├──────► Ledger: propose, validate, commit
//!        └──┬─────┬──┘   answers   └──────────┘ ─────► Archive: kept undecided blocks
//!           │     └─► Signer ─► Guard: last-signed record
//!           └─► write-ahead log of the open height
//! ```
//!
//! # When blocks are made
//! The engine starts the next height when its `Finalized` message is answered. The loop keeps
//! that answer back until [`Pace`] says that a block is due, and goes on serving meanwhile. When
//! the first part of another validator's proposal for the next height, or a vote for it, arrives,
//! someone else found a block due: then it answers as soon as the minimum interval is over.
//! Followers never wait. An idle chain so costs nothing but a heartbeat block.
//!
//! # Invariants
//! 1. A body is durable before the engine hears of its hash; a vote for it leaves only after the
//!    ledger executed it ([`Ledger::propose`], [`Ledger::validate`]).
//! 2. A commit is durable before the next height starts, else the engine's log could be reset
//!    for a height that is not committed, and this node might sign twice.
//! 3. The engine is never asked to restart a height: that wipes its log.
//! 4. A key signs at most one message for each height, round and kind, also when the log is lost
//!    (`guard.rs`, [`GuardError`]).
//! 5. A validator whose log of a height that it has signed is lost signs nothing until that height is
//!    decided, however often it starts again meanwhile (`amnesia.rs`).
//! 6. Clock rules decide votes on live proposals only, never commits or synced blocks
//!    ([`Origin`]). What they turned down is kept on no disk, and becomes valid only when a quorum has
//!    voted for it.
//!
//! # Not here
//! What a valid block is, how it is stored, and clocks: the node gives these through the ports.
//! The engine reads the time for its timeouts only.

mod amnesia;
mod app;
mod certificate;
mod config;
mod control;
mod engine;
mod error;
mod guard;
mod metrics;
mod node_side;
mod parts;
mod ports;
mod presence;
mod punctuality;
mod quorums;
mod start;
#[cfg(test)]
mod testing;
mod validators;
mod wal_archive;
mod wal_file;
mod wal_space;

pub use amnesia::remembers;
pub use certificate::{Certificate, CertificateError, CommitSignature, verify_certificate};
pub use config::{Config, Identity, Network, Timeouts};
pub use control::{Control, Peer, PeerError};
pub use engine::settings::check_address;
pub use error::{ConsensusFault, LedgerFault, StartError};
pub use guard::{GuardError, LastSigned, last_signed};
pub use metrics::{Counters, Missed, engine_metrics};
pub use node_side::Ports;
pub use ports::{
    Archive, Candidate, Clock, Decided, Direction, Encoded, Equivocation, Ledger, Origin, Pace,
    Proposed, Seen, SignedChoice, SignedKind, Tip, Undecided, Verdict,
};
pub use punctuality::{Fit, Punctuality};
pub use start::{Handle, peer_id, start, start_following};
pub use validators::{POWER_MAX, VALIDATORS_MAX, Validator, ValidatorSet, ValidatorSetError};
pub use wal_archive::{archive_last_signed, archive_log};
