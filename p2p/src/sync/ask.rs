//! Asking a peer about its chain.

use std::time::Duration;

use tokio::sync::oneshot;
use types::Hash;

use super::wire::{self, BLOCKS_MAX, Question};
use crate::command::Command;
use crate::ports::{EncodedBlock, SnapshotHead};
use crate::wire::WireError;
use crate::{Handle, PeerKey};

/// Why a peer gave no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AskError {
    /// It did not answer in time or not to the end, or is gone.
    #[error("the peer does not answer")]
    Silent,
    /// It has no time at the moment.
    #[error("the peer is busy")]
    Busy,
    /// It answered what no node answers; it is being kept out for it.
    #[error("the peer broke the protocol: {what}")]
    Offence {
        /// What it did.
        what: String,
    },
}

impl Handle {
    /// Asks a peer for the blocks from `first` on, at most `count`. It may answer fewer, when they
    /// are large or when it has no more. Nothing about them is checked.
    ///
    /// # Errors
    /// [`AskError`] if there is no answer within `time`.
    pub async fn blocks(
        &self,
        peer: PeerKey,
        (first, count): (u64, u32),
        time: Duration,
    ) -> Result<Vec<EncodedBlock>, AskError> {
        let count = count.min(BLOCKS_MAX);
        let read = |answer: &[u8]| wire::read_blocks(answer, count);
        self.ask(peer, Question::Blocks { first, count }, time, read).await
    }

    /// Asks a peer which snapshots of the state it offers in a format. A peer of an earlier build,
    /// which does not know the question, is [`AskError::Silent`]. Nothing about them is checked.
    ///
    /// # Errors
    /// [`AskError`] if there is no answer within `time`.
    pub async fn snapshots(
        &self,
        peer: PeerKey,
        format: u32,
        time: Duration,
    ) -> Result<Vec<SnapshotHead>, AskError> {
        self.ask(peer, Question::Snapshots { format }, time, wire::read_snapshots).await
    }

    /// Asks a peer for the bytes from `offset` on of an offer or a chunk of a snapshot, as many as
    /// fit into an answer; none if it has no such thing. Nothing about them is checked.
    ///
    /// # Errors
    /// [`AskError`] if there is no answer within `time`.
    pub async fn piece(
        &self,
        peer: PeerKey,
        (hash, offset): (Hash, u64),
        time: Duration,
    ) -> Result<Vec<u8>, AskError> {
        self.ask(peer, Question::Piece { hash, offset }, time, wire::read_piece).await
    }

    /// Keeps a peer out for a while, because what it sent is provably wrong.
    pub async fn blame(&self, peer: PeerKey, what: String) {
        // Without the network there is no peer any more.
        drop(self.commands.send(Command::Offence { peer: peer.0, what }).await);
    }

    /// Asks, and reads the answer. An answer that cannot be read is the peer's fault.
    async fn ask<T>(
        &self,
        peer: PeerKey,
        question: Question,
        time: Duration,
        read: impl FnOnce(&[u8]) -> Result<Option<T>, WireError>,
    ) -> Result<T, AskError> {
        let (answer, answered) = oneshot::channel();
        let command = Command::AskSync { peer: peer.0, question: question.write(), answer };
        self.commands.send(command).await.map_err(|_closed| AskError::Silent)?;
        let answer = tokio::time::timeout(time, answered).await;
        let answer = answer.ok().and_then(Result::ok).flatten().ok_or(AskError::Silent)?;
        match read(&answer) {
            Ok(Some(content)) => Ok(content),
            Ok(None) => Err(AskError::Busy),
            Err(error) if error.is_cut_off() => Err(AskError::Silent),
            Err(error) => {
                let what = format!("an answer about its chain: {error}");
                self.blame(peer, what.clone()).await;
                Err(AskError::Offence { what })
            }
        }
    }
}
