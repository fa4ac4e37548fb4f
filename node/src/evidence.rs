//! Evidence: what this node has seen of validators that contradicted themselves goes into a transaction,
//! signed with the node's own consensus key (docs/protocol.md section 5.17).
//!
//! Several nodes see the same, and each sends what it saw: of evidence against one key a pool takes one
//! and refuses the others, and so does the chain.

use std::sync::Arc;
use std::time::Duration;

use state::{Rules, StorageError, validators};
use store::{Equivocation, SignedChoice};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use txpool::Pool;
use types::build::{Envelope, build_tx};
use types::tx::{Evidence, NIL};
use types::{Body, Keypair, PublicKey};

use crate::chain::Chain;
use crate::clock::now_ms;
use crate::fault::Fault;
use crate::ingest::{IngestError, IngestHandle, Origin};
use crate::supervisor::answer_of;

/// So often what is not in a block yet is sent again. It may have been dropped for another one's, which
/// then does not come either.
const AGAIN: Duration = Duration::from_secs(5);
/// So often it is looked whether a validator has come back of which something was kept while it was away.
const LOOK: Duration = Duration::from_secs(60);

/// The task that sends evidence.
pub(crate) struct EvidenceSender {
    pub(crate) chain: Arc<Chain>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) ingest: IngestHandle,
    /// The key that signs; the account of its address is the sender, and needs no money.
    pub(crate) key: Keypair,
    /// Told whenever the node has kept something new.
    pub(crate) seen: Arc<Notify>,
}

impl EvidenceSender {
    /// Sends what there is, and what comes, until asked to stop.
    ///
    /// # Errors
    /// [`Fault`] if the database fails.
    pub(crate) async fn run(self, stop: CancellationToken) -> Result<(), Fault> {
        stop.run_until_cancelled(self.watch()).await.unwrap_or(Ok(()))
    }

    async fn watch(&self) -> Result<(), Fault> {
        loop {
            let (chain, own) = (Arc::clone(&self.chain), self.key.public_key());
            let found = tokio::task::spawn_blocking(move || unpunished(&chain, &own)).await;
            let found = answer_of(found).unwrap_or(Ok(Vec::new()))?;
            let pause = if found.is_empty() { LOOK } else { AGAIN };
            for evidence in found {
                self.send(evidence).await;
            }
            drop(timeout(pause, self.seen.notified()).await);
        }
    }

    async fn send(&self, evidence: Evidence) {
        let (accused, height) = (evidence.validator_key.address(), evidence.height);
        let nonce = match self.pool.account(self.key.address()) {
            Ok(account) => account.nonce,
            Err(fault) => {
                tracing::error!(%fault, "evidence waits");
                return;
            }
        };
        let chain_id = self.chain.spec().rules.chain_id.clone();
        let envelope = Envelope::new(nonce, now_ms(), Some(chain_id));
        let text = build_tx(&self.key, &Body::Evidence(evidence), &envelope);
        let answers = self.ingest.submit(vec![text.into_bytes().into()], Origin::Client).await;
        match answers.into_iter().next() {
            Some(Ok(accepted)) => {
                tracing::warn!(%accused, height, hash = %accepted.hash, "evidence is sent");
            }
            // Mostly another one's evidence waits already.
            Some(Err(IngestError::Rejected(refusal))) => {
                tracing::debug!(%accused, height, %refusal, "evidence is not taken");
            }
            Some(Err(error)) => tracing::info!(%accused, height, %error, "evidence waits"),
            None => {}
        }
    }
}

/// The newest evidence against each other validator that has not been punished.
fn unpunished(chain: &Chain, own: &PublicKey) -> Result<Vec<Evidence>, StorageError> {
    let snapshot = chain.store().snapshot();
    let next = snapshot.tip()?.height.saturating_add(1);
    let rules = Rules::at(&chain.spec().rules, &snapshot, next)?;
    let Some(sets) = validators::sets(&snapshot)?.filter(|_| rules.is_v7()) else {
        return Ok(Vec::new());
    };
    let oldest = next.saturating_sub(rules.params.evidence_age_blocks);
    let first = rules.forks.v7_from().max(oldest);
    let mut found: Vec<Evidence> = Vec::new();
    for key in validators::keys(&sets) {
        if key == *own || validators::is_punished(&snapshot, &key)? {
            continue;
        }
        let pairs = snapshot.equivocations(&key.address())?.last;
        let mut newest = pairs.iter().rev().filter(|pair| pair.height >= first);
        found.extend(newest.find_map(|pair| evidence(key, pair)));
    }
    Ok(found)
}

/// A pair as a transaction has it; none if it proves nothing, because both are for the same block.
fn evidence(validator_key: PublicKey, pair: &Equivocation) -> Option<Evidence> {
    let Equivocation { height, round, first, second, .. } = *pair;
    if first.block_hash == second.block_hash {
        return None;
    }
    let text = |choice: SignedChoice| {
        choice.block_hash.map_or_else(|| NIL.to_owned(), |hash| hash.to_string())
    };
    Some(Evidence {
        validator_key,
        height,
        round: round.into(),
        kind: pair.word().to_owned(),
        first_value: text(first),
        first_signature: first.signature,
        second_value: text(second),
        second_signature: second.signature,
        first_valid_round: u64::try_from(first.valid_round).ok(),
        second_valid_round: u64::try_from(second.valid_round).ok(),
    })
}
