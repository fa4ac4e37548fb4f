//! Our own proposals, and sending bodies to the others.
//!
//! In the first round of a height a body goes out as an outline, if the ledger has made one, and
//! whole when somebody asks for it, once. In every later round, and when the engine asks for it
//! again, it goes out whole at once: what went wrong before does not go wrong twice.

use std::sync::Arc;

use bytes::Bytes;
use malachitebft_app::types::LocallyProposedValue;
use malachitebft_app::types::streaming::StreamMessage;
use malachitebft_app_channel::NetworkMsg;
use malachitebft_core_types::Round;
use tokio::sync::oneshot;
use types::{Hash, Signature};

use super::{App, number, send};
use crate::engine::context::{Ctx, Height, Value};
use crate::parts::{self, Form, Head, Part};
use crate::{Fault, Proposed, Undecided};
use types::sign_bytes::BodyFields;

/// Bodies that are kept because their outlines were sent: that of the open height, and that of the
/// height before, which others may still decide.
const OUTLINED_MAX: usize = 2;

/// A body of which an outline was sent.
pub(super) struct Outlined {
    /// Announces the whole body.
    head: Head,
    bytes: Bytes,
    /// Whether the whole body was sent too.
    is_sent: bool,
}

impl App {
    /// Builds a block, answers with its hash, and sends its body. A request for a height that is
    /// not open is dropped; the engine asks for none.
    pub(super) async fn on_get_value(
        &mut self,
        height: Height,
        round: Round,
        reply: oneshot::Sender<LocallyProposedValue<Ctx>>,
    ) -> Result<(), Fault> {
        if height.0 != self.open_height() {
            tracing::error!(%height, open = self.open_height(), "asked for another height's block");
            return Ok(());
        }
        let ledger = Arc::clone(&self.ports.ledger);
        let (at, turn) = (height.0, number(round));
        let block = self.blocking(move || ledger.propose(at, turn)).await?;
        send(reply, LocallyProposedValue::new(height, round, Value::from(block.hash)));
        if let Some(signer) = &self.signer {
            let proposer = signer.address();
            let kept = Undecided { round: turn, proposer, seal: None, hash: block.hash };
            match self.outline(turn, &block).await? {
                Some(outline) => self.publish_outline(at, kept, &block.bytes, &outline).await,
                None => self.publish(at, kept, &block.bytes).await,
            }
        }
        Ok(())
    }

    /// The outline of an own block, where it is to be sent in the block's place.
    async fn outline(&self, turn: u32, block: &Proposed) -> Result<Option<Bytes>, Fault> {
        if turn > 0 || !self.publishes {
            return Ok(None);
        }
        let (archive, hash) = (Arc::clone(&self.ports.archive), block.hash);
        let outline = self.blocking(move || archive.outline(&hash)).await?;
        Ok(outline.filter(|outline| is_shorter(outline, &block.bytes)))
    }

    /// Sends a kept body again, as its proposer announced it.
    pub(super) async fn on_restream(&self, height: Height, value: Value) -> Result<(), Fault> {
        let archive = Arc::clone(&self.ports.archive);
        let (at, hash) = (height.0, value.hash());
        let kept = self.blocking(move || archive.undecided(at)).await?;
        let Some(kept) = kept.into_iter().find(|block| block.hash == hash) else {
            tracing::warn!(%height, %hash, "asked to send a body that is not kept");
            return Ok(());
        };
        let archive = Arc::clone(&self.ports.archive);
        let Some(bytes) = self.blocking(move || archive.body(at, &hash)).await? else {
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

    /// Sends the outline of an own body, and keeps the body for those who need it whole.
    async fn publish_outline(
        &mut self,
        height: u64,
        block: Undecided,
        bytes: &Bytes,
        outline: &Bytes,
    ) {
        let Some((fields, seal)) = self.sealed(height, block, bytes) else { return };
        let Ok(length) = u32::try_from(outline.len()) else { return };
        self.send_parts(&Head::new(&fields, Form::Outline(length), &seal), outline).await;
        while self.outlined.len() >= OUTLINED_MAX {
            self.outlined.pop_front();
        }
        let head = Head::new(&fields, Form::Whole, &seal);
        self.outlined.push_back(Outlined { head, bytes: bytes.clone(), is_sent: false });
    }

    /// Sends a body whole of which we sent an outline, unless that was done.
    pub(super) async fn on_want(&mut self, digest: &Hash) {
        let asked = self.outlined.iter_mut().find(|it| it.head.fields().digest == *digest);
        let Some(asked) = asked.filter(|it| !it.is_sent) else { return };
        asked.is_sent = true;
        let (head, bytes) = (asked.head.clone(), asked.bytes.clone());
        self.counters.bodies_resent.inc();
        self.send_parts(&head, &bytes).await;
    }

    /// Asks for a body whose outline was not enough.
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

/// Whether an outline saves enough to risk that somebody asks for the body.
fn is_shorter(outline: &Bytes, body: &Bytes) -> bool {
    outline.len() < body.len() / 4 * 3
}
