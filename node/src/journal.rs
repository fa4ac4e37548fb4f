//! The task that writes the pool's journal to the disk.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use txpool::{JournalError, Pool};

use crate::fault::NodeFault;
use crate::supervisor::answer_of;

/// How often the pool's journal is synced. A crash of the process loses nothing that was answered
/// as accepted; a crash of the machine may lose what came in since the last sync.
const INTERVAL: Duration = Duration::from_millis(200);

/// So long the pool's journal may fail before the node stops: a disk that recovers by then was
/// only slow or full.
pub(crate) const FAILING_MAX: Duration = Duration::from_secs(10);

/// After so long without a failure, the next one counts as the first.
const FORGIVEN_AFTER: Duration = Duration::from_secs(30);

/// Since when the journal fails. That there was nothing to write is no success: what waited may have
/// been included meanwhile.
#[derive(Debug, Default)]
pub(crate) struct JournalPatience(Option<Failing>);

#[derive(Clone, Copy, Debug)]
struct Failing {
    first: Instant,
    last: Instant,
}

impl JournalPatience {
    /// So many transactions were written.
    pub(crate) const fn written(&mut self, count: usize) {
        if count > 0 {
            self.0 = None;
        }
    }

    /// It fails; whether it has for too long.
    pub(crate) fn has_ended(&mut self, error: &JournalError) -> bool {
        tracing::error!(%error, "the pool's journal cannot be written");
        self.fails_at(Instant::now())
    }

    /// It fails at this moment; whether it has for too long.
    pub(crate) fn fails_at(&mut self, now: Instant) -> bool {
        let since = |then: Instant| now.saturating_duration_since(then);
        let failing = self.0.filter(|failing| since(failing.last) < FORGIVEN_AFTER);
        let first = failing.map_or(now, |failing| failing.first);
        self.0 = Some(Failing { first, last: now });
        since(first) >= FAILING_MAX
    }
}

/// Writes the pool's journal to the disk again and again, and once more at the end.
///
/// # Errors
/// [`NodeFault::Journal`] when that fails for [`FAILING_MAX`].
pub(crate) async fn keep(pool: Arc<Pool>, stop: CancellationToken) -> Result<(), NodeFault> {
    let (mut go_on, mut patience) = (true, JournalPatience::default());
    while go_on {
        go_on = tokio::select! {
            biased;
            () = stop.cancelled() => false,
            () = tokio::time::sleep(INTERVAL) => true,
        };
        let pool = Arc::clone(&pool);
        let flushed = tokio::task::spawn_blocking(move || pool.flush_journal()).await;
        match answer_of(flushed) {
            // The pool keeps what it could not write and tries again at the next turn.
            Some(Err(error)) if patience.has_ended(&error) => {
                return Err(NodeFault::Journal(error));
            }
            Some(Ok(flushed)) => patience.written(flushed.written),
            Some(Err(_)) | None => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_with_failures_that_only_a_write_interrupts() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut patience = JournalPatience::default();
        assert!(!patience.fails_at(at(0)));
        patience.written(0);
        assert!(!patience.fails_at(at(9)));
        patience.written(1);
        assert!(!patience.fails_at(at(10)), "it worked meanwhile");
        assert!(!patience.fails_at(at(19)));
        assert!(patience.fails_at(at(20)));
        assert!(!patience.fails_at(at(50)), "long ago");
        assert!(patience.fails_at(at(60)));
    }
}
