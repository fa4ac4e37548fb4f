//! The threads that compute.

use std::num::NonZeroUsize;
use std::sync::Arc;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

/// Threads that sessions share. How many there are changes how fast a model answers, and not what.
#[derive(Clone, Debug)]
pub struct Threads {
    count: NonZeroUsize,
    /// None: the caller's own thread computes.
    pool: Option<Arc<ThreadPool>>,
}

impl Threads {
    /// Starts `count` threads; none if it is 1, because then the caller's own computes.
    ///
    /// # Errors
    /// If the system does not give the threads.
    pub fn new(count: NonZeroUsize) -> Result<Self, ThreadPoolBuildError> {
        let pool = match count.get() {
            1 => None,
            threads => {
                let builder = ThreadPoolBuilder::new().num_threads(threads);
                Some(Arc::new(builder.thread_name(|at| format!("infer-{at}")).build()?))
            }
        };
        Ok(Self { count, pool })
    }

    /// How many.
    #[must_use]
    pub const fn count(&self) -> NonZeroUsize {
        self.count
    }

    /// Runs `work` where its parallel parts find the threads.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.pool {
            None => work(),
            Some(pool) => pool.install(work),
        }
    }
}

/// Calls `work` with the number and the contents of each part of `all`, `size` long but for the
/// last. The parts do not depend on each other.
pub(crate) fn for_each_chunk<T: Send>(
    threads: &Threads,
    all: &mut [T],
    size: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    if threads.pool.is_none() || all.len() <= size {
        all.chunks_mut(size).enumerate().for_each(|(at, chunk)| work(at, chunk));
    } else {
        all.par_chunks_mut(size).enumerate().for_each(|(at, chunk)| work(at, chunk));
    }
}
