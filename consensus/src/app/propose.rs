//! Our own proposals, and sending bodies to the others.
//!
//! In the first round of a height a body goes out as a compact block, if the ledger has made one, and
//! whole when somebody asks for it, once. In every later round, and when the engine asks for it
//! again, it goes out whole at once: what went wrong before does not go wrong twice.

use std::collections::VecDeque;

use bytes::Bytes;
use malachitebft_app::types::LocallyProposedValue;
use malachitebft_app::types::streaming::StreamMessage;
use malachitebft_app_channel::NetworkMsg;
use malachitebft_core_types::Round;
use tokio::sync::{mpsc, oneshot};
use types::{Hash, Signature};

use super::chain::AppChain;
use super::messages::{number, send};
use crate::engine::context::{Ctx, Height, Value};
use crate::engine::signing::Signer;
use crate::parts::{self, Form, Head, Part};
use crate::{ConsensusFault, Counters, Proposed, Undecided};
use types::sign_bytes::BodyFields;

/// Bodies that are kept because their compact blocks were sent: that of the open height, and that of the
/// height before, which others may still decide.
const SENT_COMPACT_BLOCKS_MAX: usize = 2;

/// A body of which a compact block was sent.
struct SentCompactBlock {
    /// Announces the whole body.
    head: Head,
    bytes: Bytes,
    /// Whether the whole body was sent too.
    is_sent: bool,
}

/// Builds own blocks, and sends bodies.
pub(super) struct Proposer {
    signer: Option<Signer>,
    /// Whether bodies are sent to others.
    publishes: bool,
    network: mpsc::Sender<NetworkMsg<Ctx>>,
    /// The bodies of the last compact blocks that were sent, oldest first; others may need them whole.
    sent_compact_blocks: VecDeque<SentCompactBlock>,
    counters: Counters,
}

impl Proposer {
    pub(super) const fn new(
        signer: Option<Signer>,
        publishes: bool,
        network: mpsc::Sender<NetworkMsg<Ctx>>,
        counters: Counters,
    ) -> Self {
        Self { signer, publishes, network, sent_compact_blocks: VecDeque::new(), counters }
    }

    /// Builds a block, answers with its hash, and sends its body. A request for a height that is
    /// not open is dropped; the engine asks for none.
    pub(super) async fn on_get_value(
        &mut self,
        height: Height,
        round: Round,
        reply: oneshot::Sender<LocallyProposedValue<Ctx>>,
        chain: &AppChain,
    ) -> Result<(), ConsensusFault> {
        if height.0 != chain.open_height() {
            tracing::error!(%height, open = chain.open_height(), "asked for another height's block");
            return Ok(());
        }
        let (at, turn) = (height.0, number(round));
        let block = chain.ledger(move |ledger| ledger.propose(at, turn)).await?;
        send(reply, LocallyProposedValue::new(height, round, Value::from(block.hash)));
        if let Some(signer) = &self.signer {
            let proposer = signer.address();
            let kept = Undecided { round: turn, proposer, seal: None, hash: block.hash };
            match self.compact_block(turn, &block, chain).await? {
                Some(compact_block) => {
                    self.publish_compact_block(at, kept, &block.bytes, &compact_block).await;
                }
                None => self.publish(at, kept, &block.bytes).await,
            }
        }
        Ok(())
    }

    /// The compact block of an own block, where it is to be sent in the block's place.
    async fn compact_block(
        &self,
        turn: u32,
        block: &Proposed,
        chain: &AppChain,
    ) -> Result<Option<Bytes>, ConsensusFault> {
        if turn > 0 || !self.publishes {
            return Ok(None);
        }
        let hash = block.hash;
        let compact_block = chain.archive(move |archive| archive.compact_block(&hash)).await?;
        Ok(compact_block.filter(|compact_block| is_shorter(compact_block, &block.bytes)))
    }

    /// Sends a kept body again, as its proposer announced it.
    pub(super) async fn on_restream(
        &self,
        height: Height,
        value: Value,
        chain: &AppChain,
    ) -> Result<(), ConsensusFault> {
        let (at, hash) = (height.0, value.hash());
        let kept = chain.archive(move |archive| archive.undecided(at)).await?;
        let Some(kept) = kept.into_iter().find(|block| block.hash == hash) else {
            tracing::warn!(%height, %hash, "asked to send a body that is not kept");
            return Ok(());
        };
        let Some(bytes) = chain.archive(move |archive| archive.body(at, &hash)).await? else {
            tracing::warn!(%height, %hash, "asked to send a body that is not kept");
            return Ok(());
        };
        self.publish(at, kept, &bytes).await;
        Ok(())
    }

    /// Sends a whole body.
    async fn publish(&self, height: u64, block: Undecided, bytes: &Bytes) {
        let Some((fields, seal)) = self.sealed(height, block, bytes) else { return };
        self.send_parts(&Head::new(&fields, Form::Whole, &seal), bytes).await;
    }

    /// Sends the compact block of an own body, and keeps the body for those who need it whole.
    async fn publish_compact_block(
        &mut self,
        height: u64,
        block: Undecided,
        bytes: &Bytes,
        compact_block: &Bytes,
    ) {
        let Some((fields, seal)) = self.sealed(height, block, bytes) else { return };
        let Ok(length) = u32::try_from(compact_block.len()) else { return };
        self.send_parts(&Head::new(&fields, Form::CompactBlock(length), &seal), compact_block)
            .await;
        while self.sent_compact_blocks.len() >= SENT_COMPACT_BLOCKS_MAX {
            self.sent_compact_blocks.pop_front();
        }
        let head = Head::new(&fields, Form::Whole, &seal);
        self.sent_compact_blocks.push_back(SentCompactBlock {
            head,
            bytes: bytes.clone(),
            is_sent: false,
        });
    }

    /// Sends a body whole of which we sent a compact block, unless that was done.
    pub(super) async fn on_want(&mut self, digest: &Hash) {
        let asked =
            self.sent_compact_blocks.iter_mut().find(|it| it.head.fields().digest == *digest);
        let Some(asked) = asked.filter(|it| !it.is_sent) else { return };
        asked.is_sent = true;
        let (head, bytes) = (asked.head.clone(), asked.bytes.clone());
        self.counters.bodies_resent.inc();
        self.send_parts(&head, &bytes).await;
    }

    /// Asks for a body whose compact block was not enough.
    pub(super) async fn want(&self, digest: &Hash) {
        if self.publishes {
            self.send_message(parts::want(digest)).await;
        }
    }

    /// A body with its seal, if it may be sent. Without a seal it must be ours, and is sealed here.
    fn sealed(
        &self,
        height: u64,
        block: Undecided,
        bytes: &[u8],
    ) -> Option<(BodyFields, Signature)> {
        let Undecided { round, proposer, seal, hash } = block;
        if !self.publishes {
            return None;
        }
        let Some(fields) = parts::describe(height, round, proposer, hash, bytes) else {
            tracing::error!(height, size = bytes.len(), "a body is too large to be sent");
            return None;
        };
        let own = self.signer.as_ref().filter(|signer| signer.address() == proposer);
        let Some(seal) = seal.or_else(|| own.map(|signer| signer.seal(&fields))) else {
            tracing::warn!(height, %hash, "a body was kept without its proposer's seal");
            return None;
        };
        Some((fields, seal))
    }

    /// Sends what a head announces.
    async fn send_parts(&self, head: &Head, bytes: &Bytes) {
        let BodyFields { digest, round, .. } = head.fields();
        let stream = parts::body_stream(&digest, head.form(), round);
        for message in parts::cut(&stream, head.clone(), bytes) {
            if !self.send_message(message).await {
                return;
            }
        }
    }

    /// Whether the engine's network took a message.
    async fn send_message(&self, message: StreamMessage<Part>) -> bool {
        let sent = self.network.send(NetworkMsg::PublishProposalPart(message)).await;
        if sent.is_err() {
            tracing::debug!("the engine's network is gone");
        }
        sent.is_ok()
    }
}

/// Whether a compact block saves enough to risk that somebody asks for the body.
fn is_shorter(compact_block: &Bytes, body: &Bytes) -> bool {
    compact_block.len() < body.len() / 4 * 3
}
