//! Messages of the engine: how they are answered, and how their rounds count.

use malachitebft_core_types::Round;
use tokio::sync::oneshot;

/// Answers the engine. It is gone only while it stops, and then nobody needs the answer.
pub(super) fn send<T>(reply: oneshot::Sender<T>, answer: T) {
    if reply.send(answer).is_err() {
        tracing::debug!("the engine no longer waits for an answer");
    }
}

/// A round as the ledger counts it. Rounds of messages are always defined.
pub(super) fn number(round: Round) -> u32 {
    round.as_u32().unwrap_or(0)
}
