//! The task that goes on with building the pool's draft anew, between blocks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use state::StorageError;
use tokio_util::sync::CancellationToken;
use txpool::Pool;

use crate::adapters::pool::Pending;
use crate::clock::now_ms;
use crate::fault::NodeFault;

/// How often is looked whether there is something to do.
const INTERVAL: Duration = Duration::from_millis(20);

/// How long is worked at a time: at most half of the time goes into it, so that submissions and blocks
/// find the pool's lock free in between.
const WORK_MAX: Duration = INTERVAL;

/// Executes again what is to be executed again, and takes down what the pool has done with, until
/// asked to stop.
pub(crate) async fn keep(
    pool: Arc<Pool>,
    pending: Arc<Pending>,
    stop: CancellationToken,
) -> Result<(), NodeFault> {
    let mut is_failing = false;
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(INTERVAL) => {}
        }
        if !pool.has_unsettled() && !pending.has_spent() {
            continue;
        }
        let (pool, pending) = (Arc::clone(&pool), Arc::clone(&pending));
        // It fails only at the end of the runtime, and then the loop ends, too.
        let Ok(worked) = tokio::task::spawn_blocking(move || work(&pool, &pending)).await else {
            continue;
        };
        // Said once, however often it is tried again.
        if let (Err(fault), false) = (&worked, is_failing) {
            tracing::error!(%fault, "a pooled transaction could not be executed again");
        }
        is_failing = worked.is_err();
    }
}

fn work(pool: &Pool, pending: &Pending) -> Result<(), txpool::PoolFault> {
    pending.take_down();
    let begun = Instant::now();
    while begun.elapsed() < WORK_MAX {
        match pool.settle(now_ms()) {
            Ok(true) => {}
            Ok(false) => break,
            Err(fault) if has_moved(&fault) => break,
            Err(fault) => return Err(fault),
        }
    }
    Ok(())
}

/// Whether the database is ahead of the pool, as it is while the node catches up. The pool
/// begins again with the state that comes of it.
fn has_moved(fault: &txpool::PoolFault) -> bool {
    matches!(fault.cause().downcast_ref(), Some(StorageError::Moved { .. }))
}

#[cfg(test)]
mod tests {
    //! What is no fault.

    use super::*;

    #[test]
    fn a_database_that_has_moved_on_is_no_fault_and_a_broken_one_is() {
        assert!(has_moved(&txpool::PoolFault::new(StorageError::Moved { height: 7 })));
        assert!(!has_moved(&txpool::PoolFault::new(StorageError::Empty)));
        assert!(!has_moved(&txpool::PoolFault::new("another one")));
    }
}
