//! A client: what it has left of its rate, and its share of what all clients share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::rate::{Bucket, RateStanding};
use super::share::{Share, Shares};
use crate::error::RpcError;

/// A client, for as long as a request or a WebSocket lasts. Without a bucket it may ask as fast as
/// it likes.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    bucket: Option<Arc<Bucket>>,
    share: Arc<Share>,
}

impl Client {
    pub(crate) const fn new(bucket: Option<Arc<Bucket>>, share: Arc<Share>) -> Self {
        Self { bucket, share }
    }

    /// Whoever asks as nobody's client: the operator, or this process.
    pub(crate) fn nobody(shares: &Shares) -> Self {
        Self { bucket: None, share: shares.of_nobody() }
    }

    /// What it may have of what all share.
    pub(crate) const fn share(&self) -> &Arc<Share> {
        &self.share
    }

    /// Counts a request as soon as it does not come too fast.
    pub(crate) async fn pay(&self) {
        while let Err(early) = self.try_take() {
            // Others with the same address may be faster: then it is the next turn, or the one after.
            tokio::time::sleep(early).await;
        }
    }

    /// Counts a request; answers how many more may come at once, where there is a limit.
    ///
    /// # Errors
    /// That it came too fast, and when to come back.
    pub(crate) fn take(&self) -> Result<Option<u32>, RpcError> {
        self.try_take().map_err(|early| {
            let ms = u64::try_from(early.as_millis()).unwrap_or(u64::MAX);
            RpcError::busy("RATE_LIMITED", "too many requests", ms)
        })
    }

    /// The error is how long to wait.
    fn try_take(&self) -> Result<Option<u32>, Duration> {
        self.bucket.as_ref().map(|bucket| bucket.take()).transpose()
    }

    /// How it stands with so many requests left; none where there is no limit.
    pub(crate) fn standing(&self, remaining: u32) -> Option<RateStanding> {
        self.bucket.as_ref().map(|bucket| bucket.standing(remaining))
    }
}

/// The calls of one request or WebSocket, as they are counted for their client.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    client: Client,
    has_any: Arc<AtomicBool>,
}

impl Calls {
    pub(crate) fn of(client: Client) -> Self {
        Self { client, has_any: Arc::default() }
    }

    /// Whose calls they are.
    pub(crate) const fn client(&self) -> &Client {
        &self.client
    }

    /// Counts a call, whatever it calls.
    ///
    /// # Errors
    /// That it came too fast, and when to come back.
    pub(crate) fn take(&self) -> Result<(), RpcError> {
        self.has_any.store(true, Ordering::Relaxed);
        self.client.take().map(drop)
    }

    /// Counts a request that turned out to have no call in it: rubbish is not free.
    ///
    /// # Errors
    /// As for a call.
    pub(crate) fn end(&self) -> Result<(), RpcError> {
        if self.has_any.load(Ordering::Relaxed) { Ok(()) } else { self.take() }
    }
}
