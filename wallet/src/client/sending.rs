//! Sending signed transactions and waiting for their blocks.

use std::time::Duration;

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use types::Hash;

use super::connection::Client;
use super::error::Rejection;
use super::records::{Status, TransactionStatus};
use super::{Answer, ClientError};
use crate::Signed;

/// The longest single waiting call; longer waits are made of several.
const WAIT_MAX: Duration = Duration::from_secs(55);
/// Between two waiting calls, for a node that answers before the time is over.
const PAUSE: Duration = Duration::from_millis(50);
/// The pauses between attempts while the node is away or busy: each is twice the one before.
const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(3);
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[derive(Deserialize)]
struct Accepted {
    hash: Hash,
}

/// One place of the answer to `ombra_sendTransactions`.
#[derive(Deserialize)]
struct Outcome {
    hash: Option<Hash>,
    error: Option<Value>,
}

impl Client {
    /// Sends a signed transaction. Sending it again is harmless: the node answers the same hash.
    ///
    /// # Errors
    /// When the node is not reachable or refuses it.
    pub async fn send(&self, signed: &Signed) -> Result<Hash, ClientError> {
        let text: &RawValue = signed.json();
        let accepted = self.call::<Accepted, _>("ombra_sendTransaction", [text]).await?;
        same_hash(signed, accepted.hash)
    }

    /// Sends a signed transaction, and sends the same bytes again while the node is away, not
    /// serving or busy, for at most `patience`. A chain takes the same transaction only once, so
    /// this cannot pay twice; signing another one could.
    ///
    /// # Errors
    /// The last error, when the node refuses or `patience` is over. Except for a rejection nothing is
    /// known then: the node may have accepted the transaction.
    pub fn send_again<'a>(
        &'a self,
        signed: &'a Signed,
        patience: Duration,
    ) -> BoxFuture<'a, Result<Hash, ClientError>> {
        Box::pin(async move {
            let mut attempts = Attempts::until(deadline(patience));
            loop {
                match self.send(signed).await {
                    Ok(hash) => return Ok(hash),
                    Err(error) => attempts.pause_after(error).await?,
                }
            }
        })
    }

    /// Sends a signed transaction as [`Client::send_again`] does, and waits until it is included or
    /// dropped; all of it takes at most `timeout`, and then its state is still `pending`. When the
    /// connection is lost, or the node is busy or has forgotten the transaction, it is asked or sent
    /// the same bytes again.
    ///
    /// # Errors
    /// As for [`Client::send_again`].
    pub fn send_and_wait<'a>(
        &'a self,
        signed: &'a Signed,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Answer<TransactionStatus>, ClientError>> {
        Box::pin(async move {
            let deadline = deadline(timeout);
            let left = || deadline.saturating_duration_since(Instant::now());
            let mut attempts = Attempts::until(deadline);
            loop {
                let hash = self.send_again(signed, left()).await?;
                match self.wait(&hash, left()).await {
                    Ok(answer) => return Ok(answer),
                    Err(error) => attempts.pause_after(error).await?,
                }
            }
        })
    }

    /// Sends up to 1,000 signed transactions at once; the answers are in the same order, and one
    /// rejection does not affect the others.
    ///
    /// # Errors
    /// When the node is not reachable or refuses the whole array.
    pub async fn send_many(
        &self,
        signed: &[Signed],
    ) -> Result<Vec<Result<Hash, ClientError>>, ClientError> {
        let texts: Vec<&RawValue> = signed.iter().map(Signed::json).collect();
        let answer: Answer<Vec<Outcome>> = self.call("ombra_sendTransactions", [texts]).await?;
        let outcomes = answer.into_value();
        let read = |(signed, outcome): (&Signed, Outcome)| match outcome {
            Outcome { hash: Some(hash), .. } => same_hash(signed, hash),
            Outcome { hash: None, error } => Err(rejection(error.unwrap_or(Value::Null))),
        };
        Ok(signed.iter().zip(outcomes).map(read).collect())
    }

    /// Waits until a transaction is included or dropped, at most `timeout`; then its state is still `pending`.
    ///
    /// # Errors
    /// When the node is not reachable or does not know the transaction.
    pub async fn wait(
        &self,
        hash: &Hash,
        timeout: Duration,
    ) -> Result<Answer<TransactionStatus>, ClientError> {
        let deadline = deadline(timeout);
        loop {
            let left = deadline.saturating_duration_since(Instant::now()).min(WAIT_MAX);
            let timeout_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
            let options = json!({ "timeoutMs": timeout_ms });
            let answer: Answer<TransactionStatus> =
                self.call("ombra_waitForTransaction", (hash, options)).await?;
            if answer.status != Status::Pending || Instant::now() >= deadline {
                return Ok(answer);
            }
            sleep(PAUSE).await;
        }
    }
}

/// The end of a time that begins now; a time beyond measure ends in a year.
fn deadline(time: Duration) -> Instant {
    Instant::now() + time.min(YEAR)
}

/// Attempts at something that may be done again, until a deadline.
struct Attempts {
    deadline: Instant,
    pause: Duration,
}

impl Attempts {
    const fn until(deadline: Instant) -> Self {
        Self { deadline, pause: BACKOFF_MIN }
    }

    /// Sleeps after an error that may pass; gives back one that will not, or that came too late.
    async fn pause_after(&mut self, error: ClientError) -> Result<(), ClientError> {
        let hint = match (&error, error.retry_after()) {
            (_, Some(hint)) => hint,
            // A node that came back without its journal: it is told again.
            (ClientError::NotFound { .. }, None) => Duration::ZERO,
            (_, None) => return Err(error),
        };
        let pause = self.pause.max(hint);
        self.pause = self.pause.saturating_mul(2).min(BACKOFF_MAX);
        // The node's hint may be beyond measure.
        if pause > self.deadline.saturating_duration_since(Instant::now()) {
            return Err(error);
        }
        sleep(pause).await;
        Ok(())
    }
}

/// The node must name the hash that was signed.
fn same_hash(signed: &Signed, answered: Hash) -> Result<Hash, ClientError> {
    if answered == signed.hash() {
        Ok(answered)
    } else {
        Err(ClientError::WrongHash { signed: signed.hash(), answered })
    }
}

/// A rejection inside an array of results: a JSON-RPC error object.
fn rejection(error: Value) -> ClientError {
    let text = error["message"].as_str().unwrap_or("rejected without a reason").to_owned();
    match serde_json::from_value(error) {
        Ok(object) => ClientError::from_object(&object),
        Err(_) => ClientError::Rejected(Rejection::new(text, Value::Null)),
    }
}
