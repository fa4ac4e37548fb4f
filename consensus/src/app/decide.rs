//! Commits.

use std::sync::Arc;

use malachitebft_core_types::CommitCertificate;

use super::{App, number};
use crate::certificate::{Certificate, CommitSignature};
use crate::engine::context::Ctx;
use crate::{Fault, LedgerFault};

/// The ledger said that it committed, and its tip says otherwise.
#[derive(Debug, thiserror::Error)]
#[error("the tip is at height {got} after height {expected} was committed")]
struct TipError {
    expected: u64,
    got: u64,
}

impl App {
    /// Makes a decided block final, unless it is already.
    pub(super) async fn commit(
        &mut self,
        certificate: CommitCertificate<Ctx>,
    ) -> Result<(), Fault> {
        let certificate = from_engine(&certificate);
        let height = certificate.height;
        if height <= self.tip.height {
            return Ok(());
        }
        self.presence.decided(&self.tip.validators, height, certificate.round);
        let ledger = Arc::clone(&self.ports.ledger);
        let tip = self
            .blocking(move || {
                let bytes = certificate.encode().into();
                ledger.commit(height, certificate.block_hash, bytes)?;
                let tip = ledger.tip()?;
                if tip.height != height {
                    let error = TipError { expected: height, got: tip.height };
                    return Err(LedgerFault::new(error));
                }
                Ok(tip)
            })
            .await?;
        self.tip = tip;
        self.round = 0;
        self.bodies.prune(height);
        self.counters.commits.inc();
        Ok(())
    }
}

fn from_engine(certificate: &CommitCertificate<Ctx>) -> Certificate {
    let mut signatures: Vec<CommitSignature> = certificate
        .commit_signatures
        .iter()
        .map(|entry| CommitSignature {
            address: entry.address.get(),
            signature: entry.signature.get(),
        })
        .collect();
    signatures.sort_by_key(|entry| entry.address);
    Certificate {
        height: certificate.height.0,
        round: number(certificate.round),
        block_hash: certificate.value_id.hash(),
        signatures,
    }
}
