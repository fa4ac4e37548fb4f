//! The thread that writes the journal: whoever waits for a write waits without holding up a thread of
//! the runtime, and changes that come while one is synced are written together.

use std::sync::Arc;
use std::thread::JoinHandle;

use redb::{Database, Durability, WriteTransaction};
use tokio::sync::{mpsc, oneshot};

use super::JournalError;

/// Changes that wait. Every worker waits for the one that it made, so there are never more than
/// slots, and a few.
const WAITING_MAX: usize = 1_024;
/// Changes of one write: more would only make the first of them wait.
const TOGETHER_MAX: usize = 64;

/// A change of the tables.
type Change = Box<dyn FnOnce(&WriteTransaction) -> Result<(), JournalError> + Send>;

/// A change and who waits for it.
struct Order {
    change: Change,
    durability: Durability,
    done: oneshot::Sender<Result<(), JournalError>>,
}

/// The thread. Dropping it ends it, once everything that was ordered is written.
#[derive(Debug)]
pub struct JournalWriter {
    orders: Option<mpsc::Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

impl JournalWriter {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(database: Arc<Database>) -> Result<Self, JournalError> {
        let (orders, waiting) = mpsc::channel(WAITING_MAX);
        let thread = std::thread::Builder::new().name("journal".into());
        let thread =
            thread.spawn(move || work(&database, waiting)).map_err(JournalError::Thread)?;
        Ok(Self { orders: Some(orders), thread: Some(thread) })
    }

    /// Makes a change. It is made even if the caller goes away meanwhile.
    ///
    /// # Errors
    /// When it cannot be written; then nothing of it is, nor of those that are written with it.
    pub async fn write(
        &self,
        durability: Durability,
        change: impl FnOnce(&WriteTransaction) -> Result<(), JournalError> + Send + 'static,
    ) -> Result<(), JournalError> {
        let (done, written) = oneshot::channel();
        let order = Order { change: Box::new(change), durability, done };
        let orders = self.orders.as_ref().ok_or(JournalError::Ended)?;
        orders.send(order).await.map_err(|_unsent| JournalError::Ended)?;
        written.await.map_err(|_unanswered| JournalError::Ended)?
    }

    /// Orders a change without waiting: whatever is ordered after this is written after it. What is given
    /// back tells when it is written; there is none if too many wait, and nothing is ordered then.
    pub fn order(
        &self,
        durability: Durability,
        change: impl FnOnce(&WriteTransaction) -> Result<(), JournalError> + Send + 'static,
    ) -> Option<oneshot::Receiver<Result<(), JournalError>>> {
        let (done, written) = oneshot::channel();
        let order = Order { change: Box::new(change), durability, done };
        self.orders.as_ref()?.try_send(order).ok()?;
        Some(written)
    }
}

impl Drop for JournalWriter {
    fn drop(&mut self) {
        drop(self.orders.take());
        // The file is free for others once the thread has ended.
        let ended = self.thread.take().map(JoinHandle::join);
        if matches!(ended, Some(Err(_))) {
            tracing::error!("the thread that writes the journal panicked");
        }
    }
}

fn work(database: &Database, mut waiting: mpsc::Receiver<Order>) {
    while let Some(first) = waiting.blocking_recv() {
        let mut together = vec![first];
        while together.len() < TOGETHER_MAX
            && let Ok(next) = waiting.try_recv()
        {
            together.push(next);
        }
        write(database, together);
    }
}

/// Writes changes as one, and tells who waits for them.
fn write(database: &Database, together: Vec<Order>) {
    #[cfg(test)]
    crate::testing::crash_point();
    let (changes, waiting): (Vec<_>, Vec<_>) =
        together.into_iter().map(|order| ((order.change, order.durability), order.done)).unzip();
    let failure = change(database, changes).err().map(|error| error.to_string());
    #[cfg(test)]
    crate::testing::crash_point();
    for done in waiting {
        let outcome = failure.clone().map_or(Ok(()), |why| Err(JournalError::Unwritten { why }));
        // Whoever went away does not want to know.
        drop(done.send(outcome));
    }
}

/// One transaction; nothing is written if one of the changes fails.
fn change(database: &Database, changes: Vec<(Change, Durability)>) -> Result<(), JournalError> {
    let mut write = database.begin_write()?;
    let is_synced =
        changes.iter().any(|(_, durability)| matches!(durability, Durability::Immediate));
    if !is_synced {
        write.set_durability(Durability::None).map_err(redb::Error::from)?;
    }
    for (change, _) in changes {
        change(&write)?;
    }
    write.commit()?;
    Ok(())
}
