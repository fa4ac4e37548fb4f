//! A chain's database, which is closed and opened again every few blocks, as by a node that restarts.

use std::sync::Arc;

use state::view::{Range, Read};
use state::{BlockBuilder, ChainRules, Changes, Executed, Memory, Parent, StorageError, tables};
use store::{CommitBlock, GenesisState, Options, Store};
use tempfile::TempDir;
use types::Keypair;

/// So many blocks are between two restarts.
const BLOCKS_BETWEEN: u64 = 29;
/// The database does not read certificates.
const CERTIFICATE: &[u8] = b"a certificate";

pub struct Database {
    folder: TempDir,
    /// There but while it is opened again.
    store: Option<Store>,
}

impl Database {
    /// With these rows of height 0.
    pub fn new(changes: &Changes, genesis: &Parent) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), Options::default()).unwrap();
        let Parent { hash, timestamp, .. } = *genesis;
        store.init(&GenesisState { hash, timestamp, changes }).unwrap();
        Self { folder, store: Some(store) }
    }

    fn store(&self) -> &Store {
        self.store.as_ref().expect("it is open")
    }

    pub fn begin(
        &self,
        chain: &Arc<ChainRules>,
        proposer: &Keypair,
        now: u64,
    ) -> Result<BlockBuilder, StorageError> {
        let (parent, rows) = (self.parent(), self.store().latest());
        BlockBuilder::new(Arc::clone(chain), rows, parent, proposer, now)
    }

    /// Commits a block, and restarts if it is time. Answers on which block the next one stands; none if
    /// validators have voted for rules that no program knows, which no database goes past.
    pub fn append(&mut self, executed: &Executed, memory: &Memory) -> Option<Parent> {
        let Executed { block, changes, events } = executed;
        let input = CommitBlock { block, changes, events, missed: &[] };
        match self.store().commit_block(&input, CERTIFICATE) {
            Ok(_) => {}
            Err(StorageError::UnknownFork { .. }) => return None,
            Err(fault) => panic!("{fault}"),
        }
        if block.header.index.is_multiple_of(BLOCKS_BETWEEN) {
            self.store = None;
            self.store = Some(Store::open(self.folder.path(), Options::default()).unwrap());
            self.assert_rows(memory);
        }
        Some(self.parent())
    }

    /// The last block, with the root of the state after it.
    pub fn parent(&self) -> Parent {
        self.store().parent().unwrap()
    }

    /// The database has every row of the state in memory, and no other.
    fn assert_rows(&self, memory: &Memory) {
        let (rows, all) = (self.store().latest(), Range { from: &[], to: None, limit: usize::MAX });
        for table in tables::ALL {
            let (stored, known) = (rows.scan_raw(table, all), memory.scan_raw(table, all));
            assert_eq!(stored.unwrap(), known.unwrap(), "{}", table.name);
        }
    }
}
