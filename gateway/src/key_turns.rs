//! Turns by key: a client that sends its requests slowly, or reads its answers slowly, can neither fill the
//! memory nor keep the clients of other keys waiting.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::keys::KeyId;

/// So many turns a key has at once. A body of a request takes up to `request_bytes_max` of memory, an answer
/// up to twice the 4 MiB of its text. Who waits for a turn takes none.
const TURNS_AT_ONCE: usize = 16;

/// The turn of a key, which ends when this is dropped.
pub(crate) type Turn = OwnedSemaphorePermit;

/// Has each key do a few things at a time.
#[derive(Debug, Default)]
pub(crate) struct KeyTurns(Mutex<BTreeMap<KeyId, Arc<Semaphore>>>);

impl KeyTurns {
    /// Waits for a turn of the key.
    pub(crate) async fn turn(&self, key: KeyId) -> Option<Turn> {
        let turns = {
            let mut keys = self.0.lock();
            let turns = keys.entry(key).or_insert_with(|| Arc::new(Semaphore::new(TURNS_AT_ONCE)));
            Arc::clone(turns)
        };
        turns.acquire_owned().await.ok()
    }
}

#[cfg(test)]
mod tests {
    //! How many turns there are at once.

    use futures::FutureExt as _;

    use super::{KeyTurns, TURNS_AT_ONCE};
    use crate::keys::KeyId;

    #[tokio::test]
    async fn a_key_has_a_few_turns_at_once_and_other_keys_do_not_wait() {
        let (turns, key, other) = (KeyTurns::default(), KeyId(1), KeyId(2));
        let mut held = Vec::new();
        for _ in 0..TURNS_AT_ONCE {
            held.push(turns.turn(key).now_or_never().expect("its turn has come"));
        }
        let mut next = Box::pin(turns.turn(key));
        assert!(next.as_mut().now_or_never().is_none(), "there are too many at once");
        assert!(turns.turn(other).now_or_never().is_some());
        drop(held.pop());
        assert!(next.now_or_never().is_some());
    }
}
