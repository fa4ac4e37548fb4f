//! What becomes of signed transactions, where the node cannot tell.
//!
//! A node that began with a snapshot does not know whether an earlier block has a transaction, so one that
//! was included is stale to it, like one whose nonce another took. But it has the run or the call that the
//! transaction made: whether there is one decides.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use miner::journal::JournalError;
use miner::outbox::{Halt, Rows, Slip, Verdict, patiently};
use tokio_util::sync::CancellationToken;
use types::Hash;

use super::service::PAUSE_MS;
use crate::chain::Node;
use crate::record::{Phase, Purpose, Record};
use crate::store::{About, Store};

/// The rows of the store, with fates that the chain has confirmed.
#[derive(Debug)]
pub(super) struct Fates {
    pub(super) store: Arc<Store>,
    pub(super) node: Node,
    pub(super) stop: CancellationToken,
}

impl Fates {
    /// What became of a transaction; none if the gateway is stopped before that is known.
    async fn confirmed(
        &self,
        slip: &Slip,
        verdict: &Verdict,
    ) -> Result<Option<Verdict>, JournalError> {
        let known = Ok(Some(verdict.clone()));
        let Verdict::Refused(code) = verdict else { return known };
        if !code.starts_with("NONCE_") {
            return known;
        }
        let Some((record, made)) = self.to_be_made(slip)? else { return known };
        let ask = &mut || self.node.has(&record, &made);
        match patiently(PAUSE_MS, &self.stop, ask).await {
            Ok(false) => known,
            Ok(true) => {
                let request = record.id.0;
                tracing::info!(request, tx = %slip.hash, "the chain has what the transaction made");
                Ok(Some(Verdict::Included { inclusion_micro: 0 }))
            }
            Err(Halt::Stopped) => Ok(None),
            Err(Halt::Journal(error)) => Err(error),
        }
    }

    /// The request for which a transaction was to make a run or a call, and that.
    fn to_be_made(&self, slip: &Slip) -> Result<Option<(Record, Hash)>, JournalError> {
        let about = self.store.outbox()?.into_iter().find(|(it, _)| it.hash == slip.hash);
        let Some((_, About::Request { id, purpose: Purpose::Request })) = about else {
            return Ok(None);
        };
        let record = self.store.request(id)?;
        Ok(record.and_then(|record| match record.phase {
            Phase::Signed { run } => Some((record, run)),
            Phase::Reserved
            | Phase::Refused { .. }
            | Phase::Sent { .. }
            | Phase::Running { .. }
            | Phase::Settled(_)
            | Phase::Unpaid { .. } => None,
        }))
    }
}

#[async_trait]
impl Rows for Fates {
    fn nonces(&self) -> Result<BTreeSet<u64>, JournalError> {
        self.store.nonces()
    }

    async fn fill(&self, filler: &Slip) -> Result<(), JournalError> {
        self.store.fill(filler).await
    }

    async fn resolve(&self, slip: &Slip, verdict: &Verdict) -> Result<(), JournalError> {
        match self.confirmed(slip, verdict).await? {
            Some(verdict) => self.store.resolve(slip, &verdict).await,
            // It stays in the outbox, and is sent again at the next start.
            None => Ok(()),
        }
    }
}
