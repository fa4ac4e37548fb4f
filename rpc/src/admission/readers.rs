//! Reading for clients, off the runtime's own threads: so many at the same time for each client, and
//! so many for all. Whoever reads has a place until the reading has ended, also if the client has gone
//! meanwhile: who asks and goes away cannot fill the threads.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::share::Share;
use crate::error::RpcError;

/// Calls of all clients that read at the same time. They wait for each other rather than be refused:
/// most take milliseconds, a page of 4 MiB tens of them, and more calls than this only wait for
/// processors and disk.
pub(crate) const READERS_MAX: usize = 32;
/// Slices of replays that are read at the same time, for all clients together: a second one, so that
/// the disk is used while one computes. A client has one.
const REPLAYS_MAX: usize = 2;

/// The places of all clients. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Readers {
    calls: Arc<Semaphore>,
    replays: Arc<Semaphore>,
}

/// A place among the readers. Clones are the same place; it is free when the last one is dropped.
#[derive(Clone, Debug)]
pub(crate) struct ReaderPlace {
    _held: Arc<(OwnedSemaphorePermit, OwnedSemaphorePermit, Arc<Share>)>,
}

impl Readers {
    pub(crate) fn new() -> Self {
        Self {
            calls: Arc::new(Semaphore::new(READERS_MAX)),
            replays: Arc::new(Semaphore::new(REPLAYS_MAX)),
        }
    }

    /// A place for a call, as soon as its client has one and all have one.
    ///
    /// # Errors
    /// Only while the node stops.
    pub(crate) async fn place(&self, share: &Arc<Share>) -> Result<ReaderPlace, RpcError> {
        place(&share.readers, &self.calls, share).await
    }

    /// Reads for a call.
    ///
    /// # Errors
    /// Those of the reading.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        share: &Arc<Share>,
        work: impl FnOnce() -> Result<T, RpcError> + Send + 'static,
    ) -> Result<T, RpcError> {
        read(self.place(share).await?, work).await
    }

    /// Reads a slice of a replay.
    ///
    /// # Errors
    /// Those of the reading.
    pub(crate) async fn replay<T: Send + 'static>(
        &self,
        share: &Arc<Share>,
        work: impl FnOnce() -> Result<T, RpcError> + Send + 'static,
    ) -> Result<T, RpcError> {
        read(place(&share.replay, &self.replays, share).await?, work).await
    }
}

/// The client's own place first: who waits there stands in nobody else's way.
async fn place(
    own: &Arc<Semaphore>,
    of_all: &Arc<Semaphore>,
    share: &Arc<Share>,
) -> Result<ReaderPlace, RpcError> {
    let gone = |_closed| RpcError::ShuttingDown;
    let own = Arc::clone(own).acquire_owned().await.map_err(gone)?;
    let of_all = Arc::clone(of_all).acquire_owned().await.map_err(gone)?;
    Ok(ReaderPlace { _held: Arc::new((own, of_all, Arc::clone(share))) })
}

async fn read<T: Send + 'static>(
    place: ReaderPlace,
    work: impl FnOnce() -> Result<T, RpcError> + Send + 'static,
) -> Result<T, RpcError> {
    let worked = tokio::task::spawn_blocking(move || {
        let _place = place;
        work()
    });
    worked.await.unwrap_or(Err(RpcError::Internal))
}

#[cfg(test)]
mod tests {
    //! Who waits for whom.

    use std::net::Ipv4Addr;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::admission::{AnswerMemory, Party, Shares};
    use crate::config::Limits;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn share(shares: &Shares, last: u8) -> Arc<Share> {
        shares.of(Party::Network(Ipv4Addr::new(10, 0, 0, last).into()))
    }

    #[tokio::test]
    async fn a_client_that_reads_all_it_may_leaves_places_to_others() {
        let shares = Shares::new(&Limits::default(), AnswerMemory::new(1 << 20), READERS_MAX);
        let (readers, greedy) = (Readers::new(), share(&shares, 1));
        let (end, ended) = mpsc::channel::<()>();
        let ended = Arc::new(parking_lot::Mutex::new(ended));
        for _ in 0..4 * READERS_MAX {
            let (readers, share, ended) =
                (readers.clone(), Arc::clone(&greedy), Arc::clone(&ended));
            tokio::spawn(async move {
                let wait = move || {
                    assert!(ended.lock().recv().is_err(), "nothing is sent");
                    Ok(())
                };
                readers.read(&share, wait).await
            });
        }
        let honest = share(&shares, 2);
        for _ in 0..10 {
            let read = readers.read(&honest, || Ok(7));
            assert_eq!(Ok(7), tokio::time::timeout(PATIENCE, read).await.expect("no place"));
        }
        assert!(readers.calls.available_permits() >= READERS_MAX / 2);
        drop(end);
    }

    #[tokio::test]
    async fn a_place_is_occupied_until_the_reading_has_ended_though_nobody_waits_for_it() {
        let shares = Shares::new(&Limits::default(), AnswerMemory::new(1 << 20), READERS_MAX);
        let (readers, share) = (Readers::new(), share(&shares, 1));
        let (end, ended) = mpsc::channel::<()>();
        let (begin, begun) = mpsc::channel::<()>();
        let reading = readers.replay(&share, move || {
            drop(begin);
            assert!(ended.recv().is_err(), "nothing is sent");
            Ok(())
        });
        assert!(tokio::time::timeout(Duration::ZERO, reading).await.is_err(), "given up");
        let begun = tokio::task::spawn_blocking(move || begun.recv_timeout(PATIENCE));
        assert_eq!(Err(mpsc::RecvTimeoutError::Disconnected), begun.await.unwrap());
        assert_eq!(0, share.replay.available_permits());
        drop(end);
        readers.replay(&share, || Ok(())).await.unwrap();
    }
}
