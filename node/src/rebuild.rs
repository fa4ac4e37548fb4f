//! The task that goes on with building the pool's draft anew, between blocks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use txpool::Pool;

use crate::adapters::pool::Pending;
use crate::clock::now_ms;
use crate::fault::Fault;

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
) -> Result<(), Fault> {
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
        drop(tokio::task::spawn_blocking(move || work(&pool, &pending)).await);
    }
}

fn work(pool: &Pool, pending: &Pending) {
    pending.take_down();
    let begun = Instant::now();
    while begun.elapsed() < WORK_MAX {
        match pool.settle(now_ms()) {
            Ok(true) => {}
            Ok(false) => return,
            Err(fault) => {
                tracing::error!(%fault, "a pooled transaction could not be executed again");
                return;
            }
        }
    }
}
