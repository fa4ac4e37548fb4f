//! How the pool refuses nonces.

use types::{Code, Rejection};

/// It is used up.
pub(super) fn stale(nonce: u64, committed: u64) -> Rejection {
    Rejection::new(Code::NonceStale, "nonce", nonce, committed)
        .with("tx", nonce)
        .with("state", committed)
}

/// Too many before it are missing.
pub(super) fn too_high(nonce: u64, next: u64, window: u64) -> Rejection {
    Rejection::new(Code::NonceTooHigh, "nonce", nonce, next)
        .with("tx", nonce)
        .with("state", next)
        .with("window", window)
}

/// Another transaction of the pool has it.
pub(super) fn taken(nonce: u64, next: u64) -> Rejection {
    let expected = format_args!("a nonce that no pending transaction has, such as {next}");
    Rejection::new(Code::NonceTaken, "nonce", nonce, expected).with("tx", nonce).with("next", next)
}
