//! Moving money away that no request needs.

use std::sync::Arc;

use miner::outbox::{Halt, Turn, Verdict, patiently};
use tokio::sync::oneshot;
use types::tx::Transfer;
use types::{Address, Amount, Body, Hash};

use super::RequestService;
use super::service::PAUSE_MS;
use crate::question::FEE_MARGIN;
use crate::record::Record;
use crate::store::About;

/// More than the bytes that a transfer is charged for.
const TRANSFER_BYTES: u64 = 1_024;

/// Why nothing was moved.
#[derive(Debug, thiserror::Error)]
pub enum DrainFault {
    /// There is not so much that no request needs.
    #[error(
        "{left_micro} micro-OMBRA can be moved; the rest is reserved, or pays for the transfer"
    )]
    TooMuch {
        /// What can be moved.
        left_micro: u64,
    },
    /// The chain refused the transfer.
    #[error("the chain rejected the transfer: {0}")]
    Refused(String),
    /// The gateway stops, or its store cannot be used.
    #[error("the gateway is stopping")]
    Ended,
}

impl From<Halt> for DrainFault {
    fn from(halt: Halt) -> Self {
        if let Halt::Journal(error) = halt {
            tracing::error!(%error, "the store cannot be used");
        }
        Self::Ended
    }
}

impl RequestService {
    /// Moves money to an address: all that no request needs, or so much of it. Answers the transaction,
    /// which is in a block then, and how much it moved.
    ///
    /// Whoever stops waiting calls off what is not signed yet. What is signed is brought to its end: later
    /// transactions wait for its nonce.
    ///
    /// # Errors
    /// When there is not so much, or the chain refuses.
    pub async fn drain(
        self: &Arc<Self>,
        to: Address,
        micro: Option<u64>,
    ) -> Result<(Hash, u64), DrainFault> {
        let service = Arc::clone(self);
        let (mut give, taken) = oneshot::channel();
        self.tasks.spawn(async move {
            let moved = Box::pin(service.move_away((to, micro), &mut give)).await;
            // Whoever went away does not want to know.
            drop(give.send(moved));
        });
        taken.await.unwrap_or(Err(DrainFault::Ended))
    }

    /// Moves money while somebody waits for it; once it is signed, whoever waits.
    async fn move_away(
        &self,
        (to, micro): (Address, Option<u64>),
        asker: &mut oneshot::Sender<Result<(Hash, u64), DrainFault>>,
    ) -> Result<(Hash, u64), DrainFault> {
        let signing = async {
            let (turn, micro) = self.turn_to_drain(micro).await?;
            let body = Body::Transfer(Transfer::new(to, Amount::new(micro), Amount::ZERO));
            let slip = turn.sign(&body).await?;
            Ok::<_, DrainFault>((turn, slip, micro))
        };
        let (turn, slip, micro) = tokio::select! {
            biased;
            () = asker.closed() => return Err(DrainFault::Ended),
            signed = signing => signed?,
        };
        let sign = self.store.sign(&slip, About::Drain { to, micro }, None);
        sign.await.map_err(Halt::from)?;
        match turn.send(&slip).await? {
            Verdict::Included { .. } => Ok((slip.hash, micro)),
            Verdict::Refused(code) => Err(DrainFault::Refused(code)),
        }
    }

    /// The right to sign, and how much is to be moved.
    async fn turn_to_drain(&self, micro: Option<u64>) -> Result<(Turn<'_>, u64), DrainFault> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => return Err(DrainFault::Ended),
            () = self.recovered.cancelled() => (),
        }
        let turn = self.outbox.turn().await?;
        let left_micro = self.left_micro().await?;
        let micro = micro.unwrap_or(left_micro);
        if micro == 0 || micro > left_micro {
            return Err(DrainFault::TooMuch { left_micro });
        }
        Ok((turn, micro))
    }

    /// What no request needs, without what the transfer itself may cost.
    async fn left_micro(&self) -> Result<u64, Halt> {
        let wallet = self.wallet();
        let ask = &mut || self.node.balance_micro(&wallet);
        let balance_micro = patiently(PAUSE_MS, &self.stop, ask).await?;
        let (prices, _) = patiently(PAUSE_MS, &self.stop, &mut || self.prices()).await?;
        let open = self.store.open_requests()?;
        let outstanding = open.iter().map(Record::outstanding_micro);
        let outstanding_micro = outstanding.fold(0, u64::saturating_add);
        let place_micro = TRANSFER_BYTES
            .saturating_mul(prices.base_fee_micro)
            .div_ceil(1_024)
            .saturating_mul(FEE_MARGIN);
        Ok(balance_micro.saturating_sub(outstanding_micro).saturating_sub(place_micro))
    }
}
