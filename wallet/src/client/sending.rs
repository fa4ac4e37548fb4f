//! Sending signed transactions and waiting for their blocks.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use types::Hash;

use super::error::Refusal;
use super::records::{Status, TransactionStatus};
use super::{Answer, Client, ClientError};
use crate::Signed;

/// The longest single waiting call; longer waits are made of several.
const WAIT_MAX: Duration = Duration::from_secs(55);
/// Between two waiting calls, for a node that answers before the time is over.
const PAUSE: Duration = Duration::from_millis(50);

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

    /// Sends up to 1,000 signed transactions at once; the answers are in the same order, and one
    /// refusal does not affect the others.
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
            Outcome { hash: None, error } => Err(refusal(error.unwrap_or(Value::Null))),
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
        let deadline = Instant::now() + timeout;
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

/// The node must name the hash that was signed.
fn same_hash(signed: &Signed, answered: Hash) -> Result<Hash, ClientError> {
    if answered == signed.hash() {
        Ok(answered)
    } else {
        Err(ClientError::WrongHash { signed: signed.hash(), answered })
    }
}

/// A refusal inside an array of results: a JSON-RPC error object.
fn refusal(error: Value) -> ClientError {
    let text = error["message"].as_str().unwrap_or("refused without a reason").to_owned();
    match serde_json::from_value(error) {
        Ok(object) => ClientError::from_object(&object),
        Err(_) => ClientError::Refused(Refusal::new(text, Value::Null)),
    }
}
