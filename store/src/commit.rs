//! One block, one write.

mod link;
mod writer;

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use state::draft::Changes;
use state::error::StorageError;
use state::forks::Tally;
use state::table::{Key, Table, decode_value};
use types::{Address, Block, BlockEvents, CheckedTx, Hash, codec};

use self::link::{LinkRow, make_link};
use self::writer::{Writer, room_for};
use super::database::{Inner, Store};
use super::memory::MemoryUpdate;
use super::meta::{FORMAT, FORMAT_CELL, GENESIS_CELL, Tip};
use super::pin;
use super::rocks::{Batch, Durability};
use super::tables::{
    BlockIds, COMMITS, EventRows, FeeTotals, HeaderRow, Headers, META, TREE_NODES, TREE_STALE,
    ValidatorFigures, ValidatorLinks,
};
use super::tree::{self, TreeUpdate};
use super::undecided;

/// How many heights' stale nodes one commit removes at most. One is added per commit, so anything
/// above one catches up.
const PRUNED_HEIGHTS_MAX: usize = 4;

/// What the first commit of a chain says.
#[derive(Clone, Copy, Debug)]
pub struct GenesisState<'a> {
    /// The hash of the genesis file.
    pub hash: Hash,
    /// The genesis time, milliseconds since 1970.
    pub timestamp: u64,
    /// The rows of height 0.
    pub changes: &'a Changes,
}

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

/// A block that is ready to be written.
pub struct Prepared {
    batch: Batch,
    tip: Tip,
    link: Option<LinkRow>,
    /// Whether the block was executed by the rules of v7.
    is_v7: bool,
    /// What may be a vote for a later fork.
    votes: Vec<CheckedTx>,
    memory: MemoryUpdate,
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
    /// Writes height 0 into an empty database; a database that has it already must have the same.
    /// Answers the tip, which is beyond genesis if the chain was started earlier.
    ///
    /// # Errors
    /// [`StorageError::Genesis`] if the database belongs to another chain.
    pub fn init(&self, genesis: &GenesisState<'_>) -> Result<Tip, StorageError> {
        if let Some(found) = self.genesis_hash()? {
            if found != genesis.hash {
                return Err(StorageError::Genesis { found, expected: genesis.hash });
            }
            return self.tip();
        }
        self.commit_genesis(genesis)
    }

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
            writer.fee_floor(header.index, changes)?;
            self.count_proposers(&mut writer, header.proposer, input.missed)?;
            let former = if self.0.memory.pins.is_any() {
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
        let memory = MemoryUpdate::of(tree, changes, former)?;
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
        let Prepared { batch, tip, link, is_v7, votes, memory } = prepared;
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
        let tally = self.count_next(&mut writer.batch, tip.height, &votes)?;
        self.write(writer.batch, durability, tip, memory, tally)?;
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

    fn commit_genesis(&self, genesis: &GenesisState<'_>) -> Result<Tip, StorageError> {
        let GenesisState { hash, timestamp, changes } = *genesis;
        let _writing = self.0.writer.lock();
        let tree = tree::update(&*self.0, 0, changes)?;
        let tip = Tip { height: 0, hash, timestamp, state_root: tree.root };
        let mut writer = Writer { rocks: &self.0.rocks, batch: Batch::default() };
        writer.rows(changes)?;
        writer.fee_floor(0, changes)?;
        writer.tree(&tree, &tip)?;
        writer.raw(META, FORMAT_CELL, &FORMAT.to_le_bytes())?;
        writer.raw(META, GENESIS_CELL, &codec::encode(&hash))?;
        let memory = MemoryUpdate::of(tree, changes, None)?;
        self.write(writer.batch, Durability::Synced, tip, memory, None)?;
        Ok(tip)
    }

    /// The one write of a commit, and what memory has to learn from it.
    fn write(
        &self,
        batch: Batch,
        durability: Durability,
        tip: Tip,
        update: MemoryUpdate,
        tally: Option<Tally>,
    ) -> Result<(), StorageError> {
        let Inner { rocks, memory, .. } = &*self.0;
        let written = memory.before_write(tip.height, update);
        rocks.write(batch, durability).inspect_err(|_| memory.abandon())?;
        memory.after_write(tip.height, written);
        self.learn_count(tally);
        *self.0.tip.write() = Some(tip);
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
