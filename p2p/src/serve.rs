//! Answers what peers ask about the own pool.

use std::sync::Arc;

use libp2p::PeerId;
use libp2p::request_response::{InboundRequestId, ResponseChannel};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use types::Hash;

use crate::command::Command;
use crate::places::Bounds;
use crate::ports::{Listing, Pool};
use crate::wire::{self, ANSWER_BYTES_WANTED, LIST_MAX, LIST_WANTED, Question, Wish};
use crate::{Counters, NetworkFault, SignedTx};

/// Questions that may be under way. With the size of an answer, which is a mebibyte and one
/// transaction more, this bounds the memory for those who ask and do not read.
pub(crate) const PLACES: Bounds =
    Bounds { shared: 24, of_group: 6, named: 12, of_peer: 4, first: 2 };
/// Questions that may wait: all that have a place.
pub(crate) const QUESTIONS_MAX: usize = PLACES.shared + PLACES.named;

/// A question of a peer.
#[derive(Debug)]
pub(crate) struct PoolQuestion {
    pub(crate) peer: PeerId,
    pub(crate) id: InboundRequestId,
    pub(crate) question: Vec<u8>,
    pub(crate) channel: ResponseChannel<Vec<u8>>,
}

/// The task that answers.
pub(crate) struct Server {
    pub(crate) asked: mpsc::Receiver<PoolQuestion>,
    pub(crate) pool: Arc<dyn Pool>,
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) counters: Counters,
}

impl Server {
    /// Answers until asked to stop.
    pub(crate) async fn run(mut self, stop: CancellationToken) -> Result<(), NetworkFault> {
        stop.run_until_cancelled(self.work()).await;
        Ok(())
    }

    async fn work(&mut self) {
        while let Some(PoolQuestion { peer, id, question, channel }) = self.asked.recv().await {
            if !channel.is_open() {
                continue;
            }
            for command in self.reply(peer, &question, (id, channel)).await {
                if self.commands.send(command).await.is_err() {
                    return;
                }
            }
        }
    }

    async fn reply(
        &self,
        peer: PeerId,
        question: &[u8],
        (id, channel): (InboundRequestId, ResponseChannel<Vec<u8>>),
    ) -> Vec<Command> {
        let Question { height, wish } = match Question::read(question) {
            Ok(question) => question,
            Err(error) if error.is_cut_off() => return Vec::new(),
            Err(error) => {
                return vec![Command::Offence { peer, what: format!("a question: {error}") }];
            }
        };
        let answer = match wish {
            Wish::List { after } => {
                let mut listing = self.pool.list(after, LIST_WANTED).await;
                listing.hashes.truncate(LIST_MAX);
                wire::write_listing(self.pool.height(), &listing)
            }
            Wish::Fetch { hashes } => self.pack(hashes).await,
        };
        self.counters.answered.inc();
        vec![Command::Height { peer, height }, Command::Answer { id, channel, answer }]
    }

    /// The transactions, up to the first that goes over what is wanted.
    async fn pack(&self, hashes: Vec<Hash>) -> Vec<u8> {
        let txs = self.pool.fetch(hashes).await;
        let mut bytes = 0_usize;
        let fitting = txs.iter().take_while(|tx| {
            let has_room = bytes < ANSWER_BYTES_WANTED;
            bytes = bytes.saturating_add(SignedTx::packed_bytes(tx));
            has_room
        });
        wire::write_pack(fitting)
    }
}

/// A page of a list that a peer gave must go on where it began.
pub(crate) fn goes_on(listing: &Listing, after: Option<types::Address>) -> bool {
    listing.next.is_none_or(|next| after.is_none_or(|after| next > after))
}
