//! The bodies of requests that are read at once, by key: a client that sends its bodies slowly can neither
//! fill the memory with them nor keep those of other keys waiting.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::keys::KeyId;

/// So many bodies of one key are read at once: each takes up to `request_bytes_max` of memory. The others
/// wait, and take none.
const BODIES_AT_ONCE: usize = 16;

/// Has the bodies of each key read a few at a time.
#[derive(Debug, Default)]
pub(crate) struct BodyTurns(Mutex<BTreeMap<KeyId, Arc<Semaphore>>>);

impl BodyTurns {
    /// Waits for the turn of a body. The turn ends when this is dropped.
    pub(crate) async fn turn(&self, key: KeyId) -> Option<OwnedSemaphorePermit> {
        let turns = {
            let mut keys = self.0.lock();
            let turns = keys.entry(key).or_insert_with(|| Arc::new(Semaphore::new(BODIES_AT_ONCE)));
            Arc::clone(turns)
        };
        turns.acquire_owned().await.ok()
    }
}

#[cfg(test)]
mod tests {
    //! How many are read at once.

    use futures::FutureExt as _;

    use super::{BODIES_AT_ONCE, BodyTurns};
    use crate::keys::KeyId;

    #[tokio::test]
    async fn a_few_bodies_of_a_key_are_read_at_once_and_other_keys_do_not_wait() {
        let (turns, key, other) = (BodyTurns::default(), KeyId(1), KeyId(2));
        let mut held = Vec::new();
        for _ in 0..BODIES_AT_ONCE {
            held.push(turns.turn(key).now_or_never().expect("its turn has come"));
        }
        let mut next = Box::pin(turns.turn(key));
        assert!(next.as_mut().now_or_never().is_none(), "too many are read at once");
        assert!(turns.turn(other).now_or_never().is_some());
        drop(held.pop());
        assert!(next.now_or_never().is_some());
    }
}
