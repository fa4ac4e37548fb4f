//! The task that reads blocks for peers.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::requests::SyncQuestion;
use super::wire::{self, BLOCKS_BYTES_WANTED, BLOCKS_MAX, PIECE_BYTES_MAX, Question};
use crate::command::Command;
use crate::ports::ChainSource;
use crate::{Counters, NetworkFault};

/// Answers that are read at the same time: a second one, so that a slow disk is used, and no more,
/// so that peers do not take the node's threads.
const PARALLEL_MAX: usize = 2;

/// Reads what peers ask for, a little at a time.
pub(crate) struct Reader {
    pub(crate) asked: mpsc::Receiver<SyncQuestion>,
    pub(crate) chain: Arc<dyn ChainSource>,
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) counters: Counters,
}

impl Reader {
    /// Reads until asked to stop.
    pub(crate) async fn run(mut self, stop: CancellationToken) -> Result<(), NetworkFault> {
        stop.run_until_cancelled(self.work()).await;
        Ok(())
    }

    async fn work(&mut self) {
        let mut reading = JoinSet::new();
        loop {
            tokio::select! {
                asked = self.asked.recv(), if reading.len() < PARALLEL_MAX => {
                    let Some(SyncQuestion { id, question, channel }) = asked else { return };
                    if channel.is_open() {
                        let chain = Arc::clone(&self.chain);
                        reading.spawn_blocking(move || (id, channel, answer(&*chain, question)));
                    }
                }
                Some(read) = reading.join_next() => {
                    // An answer that could not be made is the closing of the stream.
                    let Ok((id, channel, Some(answer))) = read else { continue };
                    self.counters.sync_answered.inc();
                    let bytes = u64::try_from(answer.len()).unwrap_or(u64::MAX);
                    self.counters.sync_bytes.inc_by(bytes);
                    let answered = Command::AnswerSync { id, channel, answer };
                    if self.commands.send(answered).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}

/// Reads an answer, on a thread that may block.
fn answer(chain: &dyn ChainSource, question: Question) -> Option<Vec<u8>> {
    match question {
        Question::Status(_) => Some(wire::write_status(&chain.status())),
        Question::Blocks { first, count } => {
            let blocks = chain.blocks(first, count.min(BLOCKS_MAX), BLOCKS_BYTES_WANTED);
            let read = blocks.inspect_err(|error| tracing::warn!("no blocks for a peer: {error}"));
            Some(wire::write_blocks(&read.ok()?))
        }
        Question::Snapshots { format } => Some(wire::write_snapshots(&chain.snapshots(format))),
        Question::Piece { hash, offset } => {
            let piece = chain.piece(&hash, offset, PIECE_BYTES_MAX);
            let read = piece.inspect_err(|error| tracing::warn!("no piece for a peer: {error}"));
            Some(wire::write_piece(&read.ok()?))
        }
    }
}
