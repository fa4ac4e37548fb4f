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
//! After each height, the engine sends the message `Finalized`, and begins the next height when the
//! loop answers it. The loop waits with the answer until [`Pace`] says that a block is due. If
//! another validator's proposal or vote for the next height arrives first, the loop answers as soon
//! as the minimum interval is over. Followers answer at once. So an idle chain makes only heartbeat
//! blocks.
//!
//! # Invariants
//! 1. A body is durable before the engine hears of its hash; a vote for it leaves only after the
//!    ledger executed it ([`Ledger::propose`], [`Ledger::validate`]).
//! 2. A commit is on disk before the next height starts. Otherwise the engine could reset its log
//!    for a height that is not committed, and this node might sign twice.
//! 3. The engine is never asked to restart a height: that wipes its log.
//! 4. A key signs at most one message for each height, round and kind, also when the log is lost
//!    (`guard.rs`, [`GuardError`]).
//! 5. A validator whose log of a height that it has signed is lost signs nothing until that height is
//!    decided, however often it starts again meanwhile (`amnesia.rs`). The same holds for what a validator
//!    without a record of its signatures may have signed.
//! 6. Rules about clocks decide only how this node votes on a live proposal; they never reject a
//!    commit or a block that is synced from peers ([`Origin`]). A proposal that such a rule
//!    rejected is not written to disk, and counts as valid only after a quorum has voted for it.
//!
//! # Not here
//! What a valid block is, how it is stored, and clocks: the node gives these through the ports.
//! The engine reads the time for its timeouts only.

mod admission;
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
mod validator_nodes;
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
