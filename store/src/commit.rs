//! One block, one write.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use bytes::Bytes;
use state::draft::Changes;
use state::error::StorageError;
use state::forks::Tally;
use state::table::{Key, Table, TableId, decode_value, encode_value};
use state::tables::{CallsByStatus, RunsByStatus};
use types::{Address, Block, BlockEvents, CheckedTx, Hash, TxLocation, codec};

use super::cache::HotRows;
use super::floor::Floors;
use super::leading::LeadingChanges;
use super::offers::{LinkRow, make_link};
use super::open_rows::OpenChanges;
use super::rocks::{Batch, Rocks};
use super::tables::{
    AccountHistory, BODIES, BlockIds, COMMITS, EventRows, FeeTotals, HeaderRow, Headers, META,
    TREE_NODES, TREE_STALE, TxIndex, TxKey, ValidatorFigures, ValidatorLinks,
};
use super::{FORMAT, FORMAT_CELL, GENESIS_CELL, GenesisState, Store, TIP_CELL, Tip};
use super::{bodies, history, pin, undecided};
use crate::tree::{self, TreeUpdate};

/// How many heights' stale nodes one commit removes at most. One is added per commit, so anything
/// above one catches up.
const PRUNED_HEIGHTS_MAX: usize = 4;

/// A block with everything that it did.
#[derive(Clone, Copy, Debug)]
pub struct CommitBlock<'a> {
    /// The block.
    pub block: &'a Block,
    /// The rows that it changed, sweep and block reward included.
    pub changes: &'a Changes,
    /// What it did.
    pub events: &'a BlockEvents,
    /// The validators that were to propose in the rounds of this height that decided nothing.
    pub missed: &'a [Address],
}

/// When a commit is safe from a crash of the machine. From a crash of the process it always is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Durability {
    /// When the call returns.
    Synced,
    /// At some time, at the latest after [`Store::sync`]. Commits are kept or lost in their order,
    /// each of them whole, because they stand in one log.
    Buffered,
}

/// A block that is ready to be written.
pub struct Prepared {
    batch: Batch,
    tip: Tip,
    link: Option<LinkRow>,
    /// Whether the block was executed by the rules of v7.
    is_v7: bool,
    /// What may be a vote for a later fork.
    votes: Vec<CheckedTx>,
    memory: ForMemory,
}

/// What memory has to learn from a commit once it is written.
struct ForMemory {
    tree: TreeUpdate,
    hot: HotRows,
    /// The lowest keys that tables get which are read from their start.
    lowest: [Option<Vec<u8>>; 2],
    open_runs: OpenChanges,
    open_calls: OpenChanges,
    leading: LeadingChanges,
    /// What the rows were, if somebody wants to know.
    former: Option<Arc<Changes>>,
    /// The count of votes for later forks, if the commit changes it.
    tally: Option<Tally>,
}

impl ForMemory {
    fn of(
        tree: TreeUpdate,
        changes: &Changes,
        former: Option<Arc<Changes>>,
    ) -> Result<Self, StorageError> {
        let (hot, lowest) = (HotRows::of(changes), Floors::lowest(changes));
        let open_runs = OpenChanges::of::<RunsByStatus>(changes)?;
        let open_calls = OpenChanges::of::<CallsByStatus>(changes)?;
        let leading = LeadingChanges::of(changes);
        Ok(Self { tree, hot, lowest, open_runs, open_calls, leading, former, tally: None })
    }
}

impl Prepared {
    /// The root of the state after the block: what the next header carries.
    #[must_use]
    pub const fn state_root(&self) -> Hash {
        self.tip.state_root
    }

    /// The block's height.
    #[must_use]
    pub const fn height(&self) -> u64 {
        self.tip.height
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = self.batch.bytes();
        write!(f, "Prepared({:?}, {bytes} bytes)", self.tip)
    }
}

impl Store {
    /// Everything about a commit that does not need the decision: computes the next state root and
    /// encodes all rows. Writes nothing, so it can be done for a block that is only proposed.
    ///
    /// # Errors
    /// [`StorageError::Height`] if the block does not follow the tip, [`StorageError::UnknownFork`] if
    /// this program does not know its rules.
    pub fn prepare(&self, input: &CommitBlock<'_>) -> Result<Prepared, StorageError> {
        let CommitBlock { block, changes, events, .. } = *input;
        let header = &block.header;
        let expected = self.tip()?.height.saturating_add(1);
        if header.index != expected {
            return Err(StorageError::Height { found: header.index, expected });
        }
        let votes = self.votes_of(block)?;
        let payload = header.payload();
        let hash = Hash::digest(payload.as_bytes());
        let mut writer = Writer { rocks: &self.0.rocks, batch: room_for(block) };
        let link = make_link(writer.rocks, &*self.0, header, &payload)?;
        // The tree takes as long as all the rest, and neither needs the other.
        let (tree, former) = thread::scope(|scope| {
            let tree = scope.spawn(|| tree::update(&*self.0, header.index, changes));
            writer.rows(changes)?;
            writer.typed::<Headers>(&header.index, &HeaderRow { hash, payload })?;
            writer.typed::<BlockIds>(&hash, &header.index)?;
            writer.block(block, events)?;
            writer.typed::<EventRows>(&header.index, events)?;
            if let Some(fees) = events.fees() {
                writer.typed::<FeeTotals>(&header.index, &fees)?;
            }
            self.count_proposers(&mut writer, header.proposer, input.missed)?;
            let former = if self.0.pins.is_any() {
                Some(Arc::new(pin::former(&self.0, changes)?))
            } else {
                None
            };
            let tree = tree.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            Ok::<_, StorageError>((tree, former))
        })?;
        let tip =
            Tip { height: header.index, hash, timestamp: header.timestamp, state_root: tree.root };
        writer.tree(&tree, &tip)?;
        let is_v7 = self.is_v7(changes)?;
        let memory = ForMemory::of(tree, changes, former)?;
        Ok(Prepared { batch: writer.batch, tip, link, is_v7, votes, memory })
    }

    /// The root of the state that changes on top of the tip would give. [`Store::prepare`] finds it
    /// on its way; this is for those who need nothing else.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn root_after(&self, changes: &Changes) -> Result<Hash, StorageError> {
        let version = self.tip()?.height.saturating_add(1);
        Ok(tree::update(&*self.0, version, changes)?.root)
    }

    /// Writes a prepared block with its certificate, synced to the disk, and answers the new tip.
    /// After a crash all of it is there or nothing.
    ///
    /// # Errors
    /// [`StorageError::Height`] if another block of that height was committed since.
    pub fn commit(&self, prepared: Prepared, certificate: &[u8]) -> Result<Tip, StorageError> {
        self.commit_as(prepared, certificate, Durability::Synced)
    }

    /// Returns when every commit so far is on the disk.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn sync(&self) -> Result<(), StorageError> {
        self.0.rocks.sync()
    }

    /// [`Store::commit`] with a choice. Not for blocks that anybody is told of before
    /// [`Store::sync`].
    pub(super) fn commit_as(
        &self,
        prepared: Prepared,
        certificate: &[u8],
        durability: Durability,
    ) -> Result<Tip, StorageError> {
        let Prepared { batch, tip, link, is_v7, votes, mut memory } = prepared;
        let _writing = self.0.writer.lock();
        let expected = self.tip()?.height.saturating_add(1);
        if tip.height != expected {
            return Err(StorageError::Height { found: tip.height, expected });
        }
        self.require_rules(tip.height, is_v7)?;
        let mut writer = Writer { rocks: &self.0.rocks, batch };
        writer.raw(COMMITS, &tip.height.to_be_bytes(), certificate)?;
        if let Some(link) = link {
            writer.typed::<ValidatorLinks>(&tip.height, &link.certified(certificate))?;
        }
        undecided::delete(writer.rocks, &mut writer.batch, tip.height)?;
        let pruned = self.prune(&mut writer, tip.height)?;
        memory.tally = self.count_next(&mut writer.batch, tip.height, &votes)?;
        self.write(writer.batch, durability, tip, memory)?;
        self.0.oldest_stale.store(pruned, Ordering::Relaxed);
        Ok(tip)
    }

    /// [`Store::prepare`] and [`Store::commit`] in one.
    ///
    /// # Errors
    /// As both.
    pub fn commit_block(
        &self,
        input: &CommitBlock<'_>,
        certificate: &[u8],
    ) -> Result<Tip, StorageError> {
        self.commit(self.prepare(input)?, certificate)
    }

    pub(super) fn commit_genesis(&self, genesis: &GenesisState<'_>) -> Result<Tip, StorageError> {
        let GenesisState { hash, timestamp, changes } = *genesis;
        let _writing = self.0.writer.lock();
        let tree = tree::update(&*self.0, 0, changes)?;
        let tip = Tip { height: 0, hash, timestamp, state_root: tree.root };
        let mut writer = Writer { rocks: &self.0.rocks, batch: Batch::default() };
        writer.rows(changes)?;
        writer.tree(&tree, &tip)?;
        writer.raw(META, FORMAT_CELL, &FORMAT.to_le_bytes())?;
        writer.raw(META, GENESIS_CELL, &codec::encode(&hash))?;
        self.write(writer.batch, Durability::Synced, tip, ForMemory::of(tree, changes, None)?)?;
        Ok(tip)
    }

    /// The one write of a commit, and what memory has to learn from it.
    fn write(
        &self,
        batch: Batch,
        durability: Durability,
        tip: Tip,
        memory: ForMemory,
    ) -> Result<(), StorageError> {
        let ForMemory { tree, hot, lowest, open_runs, open_calls, leading, former, tally } = memory;
        let inner = &*self.0;
        inner.pins.keep(former.as_ref());
        inner.floors.before_write(lowest);
        inner.leading.before_write();
        inner.open_runs.before_write(tip.height, open_runs);
        inner.open_calls.before_write(tip.height, open_calls);
        inner.rocks.write(batch, durability).inspect_err(|_| {
            inner.open_runs.abandon();
            inner.open_calls.abandon();
        })?;
        inner.hot.update(hot);
        inner.floors.after_write();
        inner.leading.after_write(tip.height, leading);
        self.learn_count(tally);
        for (key, node) in tree.nodes {
            inner.nodes.insert(key.into_boxed_slice(), Bytes::from(node));
        }
        for key in &tree.stale {
            inner.nodes.remove(key);
        }
        *inner.tip.write() = Some(tip);
        Ok(())
    }

    /// Removes nodes that only heights before the provable ones need; answers the lowest height
    /// whose stale nodes are still there.
    fn prune(&self, writer: &mut Writer<'_>, height: u64) -> Result<u64, StorageError> {
        let mut oldest = self.0.oldest_stale.load(Ordering::Relaxed);
        // The nodes that this very commit makes stale are pruned by the next one at the earliest.
        let Some(end) = height.checked_sub(self.0.options.provable_heights.max(1)) else {
            return Ok(oldest);
        };
        let (nodes, lists) = (writer.rocks.table(TREE_NODES)?, writer.rocks.table(TREE_STALE)?);
        for _ in 0..PRUNED_HEIGHTS_MAX {
            if oldest > end {
                break;
            }
            let key = oldest.to_be_bytes();
            if let Some(list) = self.0.rocks.live().get(TREE_STALE, &key)? {
                for node in TreeUpdate::stale_keys(&list)? {
                    writer.batch.delete_once_written(&nodes, node);
                }
                writer.batch.delete(&lists, &key);
            }
            oldest = oldest.saturating_add(1);
        }
        Ok(oldest)
    }

    fn count_proposers(
        &self,
        writer: &mut Writer<'_>,
        proposer: Address,
        missed: &[Address],
    ) -> Result<(), StorageError> {
        let mut all = missed.to_vec();
        all.push(proposer);
        all.sort_unstable();
        all.dedup();
        for address in all {
            let key = address.to_bytes();
            let row = self.0.rocks.live().get(ValidatorFigures::ID, &key)?;
            let row = row.as_deref().map(decode_value::<ValidatorFigures>).transpose()?;
            let mut figures = row.unwrap_or_default();
            let rounds = missed.iter().filter(|missed| **missed == address).count();
            let rounds = u64::try_from(rounds).unwrap_or(u64::MAX);
            figures.missed = figures.missed.saturating_add(rounds);
            figures.proposed = figures.proposed.saturating_add(u64::from(address == proposer));
            writer.typed::<ValidatorFigures>(&address, &figures)?;
        }
        Ok(())
    }
}

/// A batch with room for what a block will put into it: growing it later means copying it.
fn room_for(block: &Block) -> Batch {
    let sizes = block.transactions.iter().map(|tx| tx.encoded_bytes());
    let bytes = sizes.fold(16 << 10, usize::saturating_add);
    Batch::with_capacity(bytes.saturating_mul(2))
}

/// A batch in the making.
struct Writer<'a> {
    rocks: &'a Rocks,
    batch: Batch,
}

impl Writer<'_> {
    fn raw(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        self.batch.put(&self.rocks.table(table)?, key, value);
        Ok(())
    }

    fn typed<T: Table>(&mut self, key: &T::Key, value: &T::Value) -> Result<(), StorageError> {
        self.raw(T::ID, &key.to_bytes(), &encode_value::<T>(value))
    }

    /// Rows of execution.
    fn rows(&mut self, changes: &Changes) -> Result<(), StorageError> {
        for (table, rows) in changes {
            let table = self.rocks.table(*table)?;
            for (key, value) in rows {
                match value {
                    Some(value) => self.batch.put(&table, key, value),
                    None => self.batch.delete(&table, key),
                }
            }
        }
        Ok(())
    }

    /// Nodes of the tree, and the tip.
    fn tree(&mut self, tree: &TreeUpdate, tip: &Tip) -> Result<(), StorageError> {
        let nodes = self.rocks.table(TREE_NODES)?;
        for (key, node) in &tree.nodes {
            self.batch.put(&nodes, key, node);
        }
        if !tree.stale.is_empty() {
            self.raw(TREE_STALE, &tip.height.to_be_bytes(), &tree.stale_value())?;
        }
        self.raw(META, TIP_CELL, &codec::encode(tip))
    }

    /// The block's transactions and their indexes, each table in the order of its keys: RocksDB
    /// finds the place of a row faster beside the one before.
    fn block(&mut self, block: &Block, events: &BlockEvents) -> Result<(), StorageError> {
        let height = block.header.index;
        let bodies = self.rocks.table(BODIES)?;
        for (first, bytes) in bodies::segments(block) {
            self.batch.put(&bodies, &(height, first).to_bytes(), &bytes);
        }
        let mut index: Vec<(TxKey, u32)> = block
            .transactions
            .iter()
            .zip(0_u32..)
            .map(|(tx, position)| (TxKey::of(&tx.hash()), position))
            .collect();
        index.sort_unstable();
        let table = self.rocks.table(TxIndex::ID)?;
        for (key, position) in index {
            let place = encode_value::<TxIndex>(&TxLocation { height, position });
            self.batch.put(&table, &key.to_bytes(), &place);
        }
        for (address, positions) in history::positions(block, events) {
            self.typed::<AccountHistory>(&(address, height), &positions)?;
        }
        Ok(())
    }
}
