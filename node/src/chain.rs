//! The chain as this node has it: the store, what is fixed by genesis, the tip, and the blocks that
//! are executed but not decided.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use state::Changes;
use state::block::Executed;
use state::table::Table;
use state::{StorageError, rules, sweep, tables};
use store::snapshots::SnapshotStore;
use store::{CommitBlock, ForkCount, GenesisState, Store, Tip};
use types::{CommittedBlock, Hash};

use crate::chain_spec::ChainSpec;
use crate::clock::now_ms;
use crate::fault::NodeFault;
use crate::recent_blocks::RecentBlocks;
use crate::snapshots::Pinner;
use crate::tip_age::TipAge;
use crate::validator_sets::{NextValidators, missed, next_validators};

/// Executed proposals kept in memory: those of the last few rounds. A block that is decided after
/// it has gone from here is executed once more.
const OPEN_MAX: usize = 4;

/// The chain of this node. One thread executes and commits; anybody may read.
pub(crate) struct NodeChain {
    store: Store,
    spec: ChainSpec,
    tip: RwLock<(Tip, TipAge)>,
    /// The last executed blocks of the height that is being decided, with their hashes.
    open: Mutex<VecDeque<(Hash, Arc<Executed>)>>,
    recent: Mutex<RecentBlocks>,
    next_deadline: RwLock<Option<u64>>,
    validators: RwLock<NextValidators>,
    snapshot_store: Option<Arc<SnapshotStore>>,
    pinner: Option<Pinner>,
}

impl NodeChain {
    /// Opens the chain in `store`, which is given height 0 if it is empty.
    ///
    /// # Errors
    /// [`NodeFault`] if the store fails or belongs to another chain.
    pub(crate) fn open(
        store: Store,
        spec: ChainSpec,
        genesis: &Changes,
    ) -> Result<Self, NodeFault> {
        let first = GenesisState {
            hash: spec.genesis_hash,
            timestamp: spec.genesis_time,
            changes: genesis,
        };
        let tip = store.init(&first)?;
        store.count_forks(&spec.rules)?;
        let next_deadline = sweep::next_deadline(&*store.latest())?;
        let validators = next_validators(&store, &spec)?;
        let chain = Self {
            store,
            spec,
            tip: RwLock::new((tip, TipAge::new(tip.timestamp, now_ms()))),
            open: Mutex::new(VecDeque::with_capacity(OPEN_MAX)),
            recent: Mutex::default(),
            next_deadline: RwLock::new(next_deadline),
            validators: RwLock::new(validators),
            snapshot_store: None,
            pinner: None,
        };
        chain.learn_v7()?;
        Ok(chain)
    }

    /// Learns the height of v7 once genesis, votes or the state have fixed it. Whoever signs or checks
    /// signatures knows it from then on; what was executed without it is executed again.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails, or contradicts what it said before.
    pub(crate) fn learn_v7(&self) -> Result<(), StorageError> {
        if self.spec.domain.v7_from().is_some() {
            return Ok(());
        }
        let Some(height) = rules::v7_from(&self.spec.rules, &*self.store.latest())? else {
            return Ok(());
        };
        self.fix_v7(height)?;
        self.open.lock().clear();
        tracing::info!(height, "the validators have fixed the fork v7, which this program knows");
        Ok(())
    }

    /// Signs and checks signatures of v7 from a height on, and of no other.
    fn fix_v7(&self, height: u64) -> Result<(), StorageError> {
        const OTHER: StorageError =
            StorageError::Inconsistent { what: "the height of fork v7 has changed" };
        if self.spec.domain.fix_v7(height) == height { Ok(()) } else { Err(OTHER) }
    }

    /// Offers snapshots of the state from now on; they are made of the heights that `pinner` picks,
    /// if there is one.
    pub(crate) fn offer(mut self, snapshot_store: Arc<SnapshotStore>, pinner: Pinner) -> Self {
        (self.snapshot_store, self.pinner) = (Some(snapshot_store), Some(pinner));
        self
    }

    /// The snapshots that this node offers.
    pub(crate) const fn snapshot_store(&self) -> Option<&Arc<SnapshotStore>> {
        self.snapshot_store.as_ref()
    }

    pub(crate) const fn store(&self) -> &Store {
        &self.store
    }

    /// The votes for later forks.
    pub(crate) fn forks(&self) -> ForkCount {
        self.store.forks()
    }

    pub(crate) const fn spec(&self) -> &ChainSpec {
        &self.spec
    }

    pub(crate) fn tip(&self) -> Tip {
        self.tip.read().0
    }

    /// The tip, and how long ago it was made.
    pub(crate) fn tip_and_age(&self) -> (Tip, TipAge) {
        *self.tip.read()
    }

    /// When the sweep next has something to do, by block time.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        *self.next_deadline.read()
    }

    /// Who decides the two heights after the tip.
    pub(crate) fn validators(&self) -> NextValidators {
        self.validators.read().clone()
    }

    /// A block of the last few, from memory.
    pub(crate) fn recent(&self, height: u64) -> Option<Arc<CommittedBlock>> {
        self.recent.lock().find(height)
    }

    /// The database has moved to this tip. To be followed by [`NodeChain::settle`] before anything is
    /// executed over it.
    pub(crate) fn moved(&self, tip: Tip) {
        *self.tip.write() = (tip, TipAge::new(tip.timestamp, now_ms()));
    }

    /// Learns what the blocks did over which the database has moved.
    ///
    /// # Errors
    /// [`NodeFault`] if the store fails.
    pub(crate) fn settle(&self) -> Result<(), NodeFault> {
        self.learn_v7()?;
        let deadline = sweep::next_deadline(&*self.store.latest())?;
        *self.validators.write() = next_validators(&self.store, &self.spec)?;
        self.recent.lock().clear();
        self.open.lock().clear();
        *self.next_deadline.write() = deadline;
        self.moved(self.store.tip()?);
        Ok(())
    }

    /// Keeps an executed block until its height is decided or others have taken its place.
    pub(crate) fn keep_open(&self, hash: Hash, executed: Arc<Executed>) {
        let mut open = self.open.lock();
        open.retain(|(other, _)| *other != hash);
        if open.len() >= OPEN_MAX {
            open.pop_front();
        }
        open.push_back((hash, executed));
    }

    pub(crate) fn open_block(&self, hash: &Hash) -> Option<Arc<Executed>> {
        let open = self.open.lock();
        open.iter().find(|(other, _)| other == hash).map(|(_, executed)| Arc::clone(executed))
    }

    /// Makes an executed block the tip: one synced write, then the memory of it.
    ///
    /// # Errors
    /// [`NodeFault`] if the write failed; the tip is what it was.
    pub(crate) fn commit(
        &self,
        hash: Hash,
        executed: &Executed,
        certificate: &[u8],
    ) -> Result<(), NodeFault> {
        let Executed { block, changes, events } = executed;
        let missed = consensus::Certificate::decode(certificate)
            .map(|certificate| missed(&self.validators.read().next, &certificate))
            .unwrap_or_default();
        let input = CommitBlock { block, changes, events, missed: &missed };
        let tip = self.store.commit_block(&input, certificate)?;
        self.learn_v7()?;
        if let Some(pinner) = &self.pinner {
            pinner.committed(tip.height);
        }
        let (block, events) = (block.clone(), Some(events.clone()));
        let committed = Arc::new(CommittedBlock { block, hash, events });
        let deadline = sweep::next_deadline(&*self.store.latest())?;
        if changes.contains_key(&tables::Validators::ID) {
            *self.validators.write() = next_validators(&self.store, &self.spec)?;
        }
        // They are taken down when nobody waits for the lock.
        let gone = self.recent.lock().push(committed);
        drop(gone);
        self.open.lock().clear();
        *self.next_deadline.write() = deadline;
        *self.tip.write() = (tip, TipAge::new(tip.timestamp, now_ms()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use genesis::Genesis;
    use store::Options;
    use types::Keypair;

    use super::*;

    #[test]
    fn the_height_of_v7_is_learned_once_and_no_other_is_taken_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let first = Keypair::from_seed(&[1; 32]).public_key();
        let forks = state::Forks { validator_vote: Some(0), ..state::Forks::default() };
        let genesis = Genesis::dev("test", 1, first, Vec::new(), &[], forks).unwrap();
        let store = Store::open(folder.path(), Options::default()).unwrap();
        let spec = ChainSpec::of(&genesis).unwrap();
        let chain = NodeChain::open(store, spec, &genesis.state()).unwrap();
        assert_eq!(chain.spec().domain.v7_from(), None);
        for _ in 0..2 {
            chain.fix_v7(9).unwrap();
            assert_eq!(chain.spec().domain.v7_from(), Some(9));
        }
        let other = chain.fix_v7(10).unwrap_err();
        assert!(other.to_string().contains("has changed"), "{other}");
        assert_eq!(chain.spec().domain.v7_from(), Some(9));
    }
}
