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

use crate::chain::NodeChain;
use crate::clock::now_ms;
use crate::fault::NodeFault;
use crate::ingest::{IngestError, IngestHandle, Origin};
use crate::supervisor::answer_of;

/// So often what is not in a block yet is sent again. It may have been dropped for another one's, which
/// then does not come either.
const AGAIN: Duration = Duration::from_secs(5);
/// So often it is looked whether a validator has come back of which something was kept while it was away.
const LOOK: Duration = Duration::from_secs(60);

/// The task that sends evidence.
pub(crate) struct EvidenceSender {
    pub(crate) chain: Arc<NodeChain>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) ingest: IngestHandle,
    /// The key that signs; the account of its address is the sender, and needs no money.
    pub(crate) key: Keypair,
    /// Of this height it sends nothing.
    pub(crate) pardoned_height: u64,
    /// Told whenever the node has kept something new.
    pub(crate) seen: Arc<Notify>,
}

impl EvidenceSender {
    /// Sends what there is, and what comes, until asked to stop.
    ///
    /// # Errors
    /// [`NodeFault`] if the database fails.
    pub(crate) async fn run(self, stop: CancellationToken) -> Result<(), NodeFault> {
        stop.run_until_cancelled(self.watch()).await.unwrap_or(Ok(()))
    }

    async fn watch(&self) -> Result<(), NodeFault> {
        loop {
            let (chain, own) = (Arc::clone(&self.chain), self.key.public_key());
            let pardoned = self.pardoned_height;
            let found =
                tokio::task::spawn_blocking(move || unpunished(&chain, &own, pardoned)).await;
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
                tracing::error!(%fault, "the evidence cannot be sent yet");
                return;
            }
        };
        let chain_id = self.chain.spec().rules.chain_id.clone();
        let envelope = Envelope::new(nonce, now_ms(), Some(chain_id));
        let text = build_tx(&self.key, &Body::Evidence(evidence), &envelope);
        let answers = self.ingest.submit(vec![text.into_bytes().into()], Origin::Client).await;
        match answers.into_iter().next() {
            Some(Ok(accepted)) => {
                tracing::warn!(%accused, height, hash = %accepted.hash, "sent evidence");
            }
            // Mostly another one's evidence waits already.
            Some(Err(IngestError::Rejected(rejection))) => {
                tracing::debug!(%accused, height, %rejection, "the pool did not take the evidence");
            }
            Some(Err(error)) => {
                tracing::info!(%accused, height, %error, "the evidence cannot be sent yet");
            }
            None => {}
        }
    }
}

/// The newest evidence against each other validator that has not been punished, but none of the height
/// that is pardoned.
fn unpunished(
    chain: &NodeChain,
    own: &PublicKey,
    pardoned: u64,
) -> Result<Vec<Evidence>, StorageError> {
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
        let counts = |pair: &&Equivocation| pair.height >= first && pair.height != pardoned;
        let mut newest = pairs.iter().rev().filter(counts);
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

#[cfg(test)]
mod tests {
    //! Which of what a node has seen it sends, and as what.

    use genesis::Genesis;
    use state::tables::ConsensusKeys;
    use state::{Changes, Draft, Forks, Memory};
    use store::{Options, Store};
    use tempfile::TempDir;
    use types::{Hash, KeyStanding, SetMember, Signature};

    use super::*;
    use crate::chain_spec::ChainSpec;

    const OWN: u8 = 1;

    fn key(number: u8) -> Keypair {
        Keypair::from_seed(&[number; 32])
    }

    /// A signed choice of a block, or of none.
    fn choice(block: Option<u8>, valid_round: i64) -> SignedChoice {
        let block_hash = block.map(|byte| Hash::new([byte; 32]));
        SignedChoice { block_hash, valid_round, signature: Signature::new([7; 64]) }
    }

    fn pair(height: u64, second: SignedChoice) -> Equivocation {
        let (kind, first) = (Equivocation::PROPOSAL, choice(Some(1), -1));
        Equivocation { height, round: 3, kind, first, second }
    }

    /// A chain of these validators at height 0, some of whom were punished.
    fn chain(validators: &[u8], punished: &[u8], v7: Option<u64>) -> (TempDir, NodeChain) {
        let folder = tempfile::tempdir().unwrap();
        let first = key(OWN).public_key();
        let forks = Forks { validator_vote: Some(0), v7, ..Forks::default() };
        let genesis = Genesis::dev("test", 1, first, Vec::new(), &[], forks).unwrap();
        let mut draft = Draft::new(Arc::new(Memory::default()));
        let member = |number: &u8| SetMember { public_key: key(*number).public_key(), power: 1 };
        validators::put_first(&mut draft, validators.iter().map(member));
        for number in punished {
            let standing = KeyStanding { alone_until: None, punished_at: Some(1) };
            draft.put::<ConsensusKeys>(&key(*number).public_key(), &standing);
        }
        let mut changes: Changes = genesis.state();
        changes.extend(draft.into_changes());
        let store = Store::open(&folder.path().join("data"), Options::default()).unwrap();
        let chain = NodeChain::open(store, ChainSpec::of(&genesis).unwrap(), &changes).unwrap();
        (folder, chain)
    }

    /// Who is accused, at which height.
    fn accused(chain: &NodeChain) -> Vec<(PublicKey, u64)> {
        accused_except(chain, 0)
    }

    /// The same of a node that pardons a height.
    fn accused_except(chain: &NodeChain, pardoned: u64) -> Vec<(PublicKey, u64)> {
        let found = unpunished(chain, &key(OWN).public_key(), pardoned).unwrap();
        found.iter().map(|evidence| (evidence.validator_key, evidence.height)).collect()
    }

    #[test]
    fn each_other_validator_that_is_not_punished_is_accused_of_its_last_contradiction() {
        let (_folder, chain) = chain(&[OWN, 2, 3, 4], &[3], Some(0));
        let pairs = |number: u8, heights: &[u64]| {
            let address = key(number).address();
            let pairs = heights.iter().map(|height| (address, pair(*height, choice(Some(2), -1))));
            chain.store().add_equivocations(&pairs.collect::<Vec<_>>()).unwrap();
        };
        for number in [OWN, 3, 9] {
            pairs(number, &[1]);
        }
        assert_eq!(accused(&chain), [], "itself, who was punished, and who is no validator");
        pairs(2, &[4, 5]);
        assert_eq!(accused(&chain), [(key(2).public_key(), 5)]);
        pairs(4, &[6]);
        assert_eq!(accused(&chain).len(), 2);
        // The last one proves nothing, because both are for the same block.
        let empty = pair(7, choice(Some(1), 0));
        chain.store().add_equivocations(&[(key(2).address(), empty)]).unwrap();
        assert!(accused(&chain).contains(&(key(2).public_key(), 5)));
    }

    #[test]
    fn nobody_is_accused_of_a_height_that_the_node_pardons() {
        let (_folder, chain) = chain(&[OWN, 2, 3], &[], Some(0));
        let pairs = [(2, 4), (2, 5), (3, 5)];
        let pairs =
            pairs.map(|(number, height)| (key(number).address(), pair(height, choice(None, -1))));
        chain.store().add_equivocations(&pairs).unwrap();
        assert_eq!(accused(&chain).len(), 2);
        assert_eq!(accused_except(&chain, 5), [(key(2).public_key(), 4)]);
        assert_eq!(accused_except(&chain, 6).len(), 2);
    }

    #[test]
    fn nobody_is_accused_before_v7_or_of_what_was_before_it() {
        let seen = |chain: &NodeChain, height| {
            let pairs = [(key(2).address(), pair(height, choice(None, -1)))];
            chain.store().add_equivocations(&pairs).unwrap();
            accused(chain).len()
        };
        let (_folder, before) = chain(&[OWN, 2], &[], None);
        assert_eq!(seen(&before, 1), 0);
        let (_folder, later) = chain(&[OWN, 2], &[], Some(1));
        assert_eq!(seen(&later, 0), 0, "block 0 is not of v7");
        assert_eq!(seen(&later, 1), 1);
    }

    #[test]
    fn a_pair_is_sent_as_it_was_signed() {
        let accused = key(2).public_key();
        let sent = evidence(accused, &pair(5, choice(None, 2))).unwrap();
        let hash = Hash::new([1; 32]).to_string();
        assert_eq!((sent.validator_key, sent.height, sent.round), (accused, 5, 3));
        assert_eq!(sent.kind, "proposal");
        assert_eq!((sent.first_value, sent.second_value), (hash, NIL.to_owned()));
        assert_eq!((sent.first_valid_round, sent.second_valid_round), (None, Some(2)));
        assert_eq!(evidence(accused, &pair(5, choice(Some(1), 2))), None);
    }
}
