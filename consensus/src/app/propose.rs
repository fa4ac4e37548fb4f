//! Our own proposals, and sending bodies to the others.

use std::sync::Arc;

use bytes::Bytes;
use malachitebft_app::types::LocallyProposedValue;
use malachitebft_app::types::streaming::StreamId;
use malachitebft_app_channel::NetworkMsg;
use malachitebft_core_types::Round;
use tokio::sync::oneshot;
use types::Hash;

use super::{App, number, send};
use crate::engine::context::{Ctx, Height, Value};
use crate::parts::{self, Head};
use crate::{Fault, Undecided};

impl App {
    /// Builds a block, answers with its hash, and sends its body. A request for a height that is
    /// not open is dropped; the engine asks for none.
    pub(super) async fn on_get_value(
        &self,
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
            self.publish(at, kept, &block.bytes).await;
        }
        Ok(())
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

    /// Sends a body. Without a seal it must be ours, and is sealed here.
    async fn publish(&self, height: u64, block: Undecided, bytes: &Bytes) {
        let Undecided { round, proposer, seal, hash } = block;
        if !self.publishes {
            return;
        }
        let Some(fields) = parts::describe(height, round, proposer, hash, bytes) else {
            tracing::error!(height, size = bytes.len(), "a body is too large to be sent");
            return;
        };
        let own = self.signer.as_ref().filter(|signer| signer.address() == proposer);
        let Some(seal) = seal.or_else(|| own.map(|signer| signer.seal(&fields))) else {
            tracing::warn!(height, %hash, "a body was kept without its proposer's seal");
            return;
        };
        let head = Head::new(&fields, &seal);
        let stream = stream_id(&fields.digest, round);
        for message in parts::cut(&stream, head, bytes) {
            if self.network.send(NetworkMsg::PublishProposalPart(message)).await.is_err() {
                tracing::debug!("the engine's network is gone");
                return;
            }
        }
    }
}

/// The same body of the same round is the same stream, however often it is sent: a receiver that
/// missed a part of it takes that from the next time.
fn stream_id(digest: &Hash, round: u32) -> StreamId {
    let prefix = digest.as_bytes().iter().take(12);
    StreamId::new(prefix.chain(&round.to_be_bytes()).copied().collect())
}
