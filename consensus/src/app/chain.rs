//! The committed chain as the loop sees it: its tip, and calls of the ledger on a thread that may
//! block.

use std::sync::Arc;

use types::Address;

use crate::{Archive, Certificate, ConsensusFault, Ledger, LedgerFault, Tip};

/// The ledger said that it committed, and its tip says otherwise.
#[derive(Debug, thiserror::Error)]
#[error("the tip is at height {got} after height {expected} was committed")]
struct TipError {
    expected: u64,
    got: u64,
}

/// The chain, and who this node is on it.
pub(super) struct AppChain {
    ledger: Arc<dyn Ledger>,
    archive: Arc<dyn Archive>,
    /// Whose key signs here; none if none does.
    own: Option<Address>,
    /// The last commit; what comes next is judged against it.
    tip: Tip,
}

impl AppChain {
    pub(super) fn new(
        ledger: Arc<dyn Ledger>,
        archive: Arc<dyn Archive>,
        own: Option<Address>,
        tip: Tip,
    ) -> Self {
        Self { ledger, archive, own, tip }
    }

    /// The last commit.
    pub(super) const fn tip(&self) -> &Tip {
        &self.tip
    }

    /// The height that is being decided, or will be next.
    pub(super) const fn open_height(&self) -> u64 {
        self.tip.height.saturating_add(1)
    }

    /// Our address, if we may vote on the open height.
    pub(super) fn own_turn_address(&self) -> Option<Address> {
        let validator = self.tip.validators.by_address(&self.own?);
        validator.map(|validator| validator.address)
    }

    /// Asks the ledger.
    pub(super) async fn ledger<T: Send + 'static>(
        &self,
        call: impl FnOnce(&dyn Ledger) -> Result<T, LedgerFault> + Send + 'static,
    ) -> Result<T, ConsensusFault> {
        let ledger = Arc::clone(&self.ledger);
        self.blocking(move || call(&*ledger)).await
    }

    /// Asks the archive.
    pub(super) async fn archive<T: Send + 'static>(
        &self,
        call: impl FnOnce(&dyn Archive) -> Result<T, LedgerFault> + Send + 'static,
    ) -> Result<T, ConsensusFault> {
        let archive = Arc::clone(&self.archive);
        self.blocking(move || call(&*archive)).await
    }

    /// Runs a call on a blocking thread.
    async fn blocking<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> Result<T, LedgerFault> + Send + 'static,
    ) -> Result<T, ConsensusFault> {
        match tokio::task::spawn_blocking(call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(source)) => Err(ConsensusFault::Ledger { height: self.open_height(), source }),
            Err(panic) => Err(ConsensusFault::Panic(panic.to_string())),
        }
    }

    /// Makes a decided block final.
    pub(super) async fn commit(&mut self, certificate: Certificate) -> Result<(), ConsensusFault> {
        let height = certificate.height;
        let tip = self.ledger(move |ledger| {
            let bytes = certificate.encode().into();
            ledger.commit(height, certificate.block_hash, bytes)?;
            let tip = ledger.tip()?;
            if tip.height != height {
                let error = TipError { expected: height, got: tip.height };
                return Err(LedgerFault::new(error));
            }
            Ok(tip)
        });
        self.tip = tip.await?;
        Ok(())
    }
}
