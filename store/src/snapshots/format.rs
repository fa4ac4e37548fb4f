//! The form of snapshots, and its limits.

/// The form of manifests and offers, which a question names. The first one cut the state at one depth
/// everywhere, so that many rows under one prefix made a chunk that was too long to be made.
pub const FORMAT: u32 = 2;

/// The most bytes of a chunk: more than any row has, so that a range can be cut until each of its
/// chunks is shorter. Chunks of more than a megabyte are made only of states of more than 64 GiB, and
/// of single rows.
pub const CHUNK_BYTES_MAX: u64 = 16 << 20;

/// A subtree with fewer bytes is not cut, so a manifest cannot ask for many chunks of nothing. What it
/// says of the bytes is compared with each chunk that comes.
pub const CUT_BYTES_MIN: u64 = 64 << 10;

/// The most bytes of an encoded offer: what [`types::codec`] reads.
pub const OFFER_BYTES_MAX: u64 = 16 << 20;
