//! Checking blocks ahead of their execution.
//!
//! ```text
//! source ──batches──▶ precheck ──▶ ┐
//!    └───────────────▶ precheck ──▶ ┴─ in order ──▶ execute, commit
//!            a few threads                          the caller's thread
//! ```
//!
//! A transaction's own checks cost more than all the rest and need no state, so they are made on
//! other threads, for several blocks at once. What the caller sees is what it would see if it took
//! one block after the other: the same blocks, and the first fault in the order of heights.
//!
//! A source that has to wait for its next block says so, and what was gathered is checked at once:
//! else the last blocks before the tip of a slow chain would wait for a batch to fill.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use parking_lot::Mutex;

use super::error::ToolError;
use super::execution::{EncodedBlock, PrecheckedBlock, Replay};

/// Blocks are checked together until they have this many bytes: enough transactions for large
/// batches of signatures, few enough that the first batch is soon there.
const BATCH_BYTES: usize = 512 << 10;

/// The most blocks in one batch, however small they are.
const BATCH_BLOCKS_MAX: usize = 128;

/// Batches that wait for execution, for each thread. With those that are being checked this bounds
/// the memory: three batches a thread, each of [`BATCH_BYTES`] and one block more.
const BATCHES_WAITING: usize = 2;

/// What a source gives when it is asked for the next block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Supply {
    /// The next block.
    Block(EncodedBlock),
    /// There is none at the moment; asked again, the source waits for one.
    Pause,
}

/// Where blocks come from: in the order of heights, without a gap.
pub(super) trait Source: Iterator<Item = Result<Supply, ToolError>> + Send {}

impl<S: Iterator<Item = Result<Supply, ToolError>> + Send> Source for S {}

/// What became of a batch, block by block.
type Answers = Vec<Result<PrecheckedBlock, ToolError>>;

/// Calls `execute` with each block of `blocks`, none of which has to be waited for.
pub(super) fn run(
    replay: &Replay<'_>,
    blocks: impl Iterator<Item = Result<EncodedBlock, ToolError>> + Send,
    execute: impl FnMut(PrecheckedBlock) -> Result<(), ToolError>,
) -> Result<(), ToolError> {
    run_as_they_come(replay, blocks.map(|block| block.map(Supply::Block)), execute)
}

/// Calls `execute` with each block of `source` in order, checked. Ends with the first fault, be it
/// the source's, a check's or `execute`'s.
pub(super) fn run_as_they_come(
    replay: &Replay<'_>,
    source: impl Source,
    mut execute: impl FnMut(PrecheckedBlock) -> Result<(), ToolError>,
) -> Result<(), ToolError> {
    let threads = replay.threads.get();
    let (order, arriving) = sync_channel(threads.saturating_mul(BATCHES_WAITING));
    // The threads alone hold the queue's sending end: it closes when the last of them ends.
    let queue = Arc::new(Mutex::new(Queue { source: source.fuse(), order }));
    thread::scope(move |scope| {
        for queue in vec![queue; threads] {
            scope.spawn(move || {
                while let Some((batch, answer)) = Queue::take(&queue) {
                    // Fails only if the caller has met a fault and wants no more.
                    drop(answer.send(batch.check(replay)));
                }
            });
        }
        for answers in arriving {
            // Nothing comes if the thread panicked; the panic goes on when the scope ends.
            let Ok(answers) = answers.recv() else { break };
            answers.into_iter().try_for_each(|block| execute(block?))?;
        }
        Ok(())
    })
}

/// Hands out batches in the order of the source.
struct Queue<S> {
    source: S,
    /// Where the caller waits for the answers of each batch.
    order: SyncSender<Receiver<Answers>>,
}

impl<S: Source> Queue<S> {
    /// The next batch, and where its answers go. None if there is no more, or nobody wants more.
    /// Waits, with the queue locked, while too much waits for execution.
    fn take(queue: &Mutex<Self>) -> Option<(Batch, SyncSender<Answers>)> {
        let mut queue = queue.lock();
        let batch = Batch::read(&mut queue.source);
        if batch.blocks.is_empty() && batch.fault.is_none() {
            return None;
        }
        let (answer, answers) = sync_channel(1);
        queue.order.send(answers).ok()?;
        Some((batch, answer))
    }
}

/// Blocks that are checked together.
struct Batch {
    blocks: Vec<EncodedBlock>,
    /// Why there is no block after them.
    fault: Option<ToolError>,
}

impl Batch {
    fn read(source: &mut impl Source) -> Self {
        let mut batch = Self { blocks: Vec::new(), fault: None };
        let mut bytes = 0_usize;
        while bytes < BATCH_BYTES && batch.blocks.len() < BATCH_BLOCKS_MAX {
            match source.next() {
                Some(Ok(Supply::Block(block))) => {
                    bytes = bytes.saturating_add(block.bytes.len());
                    batch.blocks.push(block);
                }
                Some(Ok(Supply::Pause)) if batch.blocks.is_empty() => {}
                Some(Ok(Supply::Pause)) => break,
                Some(Err(fault)) => {
                    batch.fault = Some(fault);
                    break;
                }
                None => break,
            }
        }
        batch
    }

    fn check(self, replay: &Replay<'_>) -> Answers {
        let Self { blocks, fault } = self;
        let mut answers = replay.precheck(blocks);
        answers.extend(fault.map(Err));
        answers
    }
}
