//! The latest blocks in memory, for those who ask for what has just happened: bounded by number and by the
//! memory that they take.

use std::collections::VecDeque;
use std::sync::Arc;

use types::CommittedBlock;

/// The most blocks.
const BLOCKS_MAX: usize = 64;
/// What they may take together, in bytes. The newest is kept in any case: the pool follows it.
const BYTES_MAX: usize = 32 * 1024 * 1024;
/// How much memory a block takes for each byte of its texts, about: they are kept as they are, and parsed.
const BYTES_PER_TEXT_BYTE: usize = 2;
/// How much it takes for itself, for each of its transactions, and for each event.
const BYTES_PER_ITEM: usize = 1024;

/// The latest blocks, each with the memory that it takes.
#[derive(Debug, Default)]
pub(crate) struct RecentBlocks {
    blocks: VecDeque<(Arc<CommittedBlock>, usize)>,
    bytes: usize,
}

impl RecentBlocks {
    /// Adds the newest block; answers those that have to go for it.
    #[must_use]
    pub(crate) fn push(&mut self, block: Arc<CommittedBlock>) -> Vec<Arc<CommittedBlock>> {
        let bytes = memory_bytes(&block);
        self.blocks.push_back((block, bytes));
        self.bytes = self.bytes.saturating_add(bytes);
        let mut gone = Vec::new();
        while self.is_too_much()
            && let Some((block, bytes)) = self.blocks.pop_front()
        {
            self.bytes = self.bytes.saturating_sub(bytes);
            gone.push(block);
        }
        gone
    }

    fn is_too_much(&self) -> bool {
        let count = self.blocks.len();
        count > 1 && (count > BLOCKS_MAX || self.bytes > BYTES_MAX)
    }

    /// The block at this height, if it is here.
    pub(crate) fn find(&self, height: u64) -> Option<Arc<CommittedBlock>> {
        let mut newest_first = self.blocks.iter().rev().map(|(block, _)| block);
        newest_first.find(|block| block.block.header.index == height).cloned()
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

fn memory_bytes(committed: &CommittedBlock) -> usize {
    let transactions = &committed.block.transactions;
    let texts: usize = transactions.iter().map(|tx| tx.signed_bytes()).sum();
    let events = committed.events.as_ref().map_or(0, |events| events.iter().count());
    let items = events.saturating_add(transactions.len()).saturating_add(1);
    let texts = texts.saturating_mul(BYTES_PER_TEXT_BYTE);
    texts.saturating_add(items.saturating_mul(BYTES_PER_ITEM))
}

#[cfg(test)]
mod tests {
    //! How many blocks are kept.

    use types::{Address, Amount, Block, BlockEvents, Event, Hash, Header};

    use super::*;

    /// A block with so many events.
    fn block(index: u64, events: usize) -> Arc<CommittedBlock> {
        let paid = Event::UnbondingPaid { miner: Address::default(), amount: Amount::new(1) };
        let events = Some(BlockEvents { end: vec![paid; events], ..BlockEvents::default() });
        let header = Header {
            chain_id: "c".to_owned(),
            index,
            previous_hash: Hash::ZERO,
            timestamp: 1,
            proposer: Address::default(),
            tx_root: Hash::ZERO,
            state_root: Hash::ZERO,
            tokens_burned: Amount::ZERO,
            tx_count: 0,
            randomness: None,
        };
        let block = Block { header, transactions: Vec::new() };
        Arc::new(CommittedBlock { block, hash: Hash::ZERO, events })
    }

    /// The heights that are kept of this and the blocks before it.
    fn kept(recent: &RecentBlocks, to: u64) -> Vec<u64> {
        (1..=to).filter(|height| recent.find(*height).is_some()).collect()
    }

    #[test]
    fn so_many_small_blocks_are_kept() {
        let mut recent = RecentBlocks::default();
        let gone: usize = (1..=70).map(|index| recent.push(block(index, 0)).len()).sum();
        assert_eq!((6, (7..=70).collect::<Vec<_>>()), (gone, kept(&recent, 70)));
        recent.clear();
        assert!(kept(&recent, 70).is_empty());
    }

    #[test]
    fn fewer_large_blocks_are_kept_and_the_newest_however_large() {
        let mut recent = RecentBlocks::default();
        let third = BYTES_MAX / BYTES_PER_ITEM / 3;
        (1..=6).for_each(|index| drop(recent.push(block(index, third - 2))));
        assert_eq!(vec![4, 5, 6], kept(&recent, 6));
        drop(recent.push(block(7, 4 * third)));
        assert_eq!(vec![7], kept(&recent, 7));
        drop(recent.push(block(8, 0)));
        assert_eq!(vec![8], kept(&recent, 8));
    }
}
