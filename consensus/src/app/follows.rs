//! A validator that follows without signing: until when.

use std::future::pending;

use tokio_util::sync::CancellationToken;

/// What a validator follows for without signing.
#[derive(Clone, Debug)]
pub(crate) struct Follows {
    /// Until this height is decided; none if no height has to be.
    pub(crate) until: Option<u64>,
    /// And until the node allows it.
    pub(crate) may_sign: CancellationToken,
}

impl Follows {
    /// Whether the validator may sign what comes after a block of this height.
    pub(crate) fn is_over(&self, height: u64) -> bool {
        self.may_sign.is_cancelled() && self.until.is_none_or(|until| height >= until)
    }
}

/// Ends when the node allows a validator to sign that follows. Never if there is none, or if it was
/// allowed before.
pub(super) async fn allowed(follows: Option<&Follows>) {
    match follows {
        Some(Follows { may_sign, .. }) if !may_sign.is_cancelled() => may_sign.cancelled().await,
        Some(_) | None => pending().await,
    }
}
