//! A committed block with its events.

use std::sync::{Arc, OnceLock};

use quick_cache::Weighter;
use types::CommittedBlock;

use super::derive::derive;
use super::item::Item;
use crate::ports::{PortFault, Ports};
use crate::wire::EventKind;

/// How much memory a block takes for each byte of its texts: parsed, and written as events of two kinds.
const BYTES_PER_TEXT_BYTE: u64 = 4;
/// And for itself, with the few events that every block has at its end.
const BYTES_PER_BLOCK: u64 = 2 * 1024;
/// What each further event at the end of a block counts as: no text of the block pays for the event, for the
/// record that is read for it, and for what subscribers see of it.
const BYTES_PER_END_EVENT: u64 = 1024;
/// So many events may stand at the end of any block: the fees, the reward, a change of the base fee.
const END_EVENTS_FREE: usize = 4;

/// A committed block with its events, derived when first asked for.
pub(crate) struct BlockEvents {
    pub(crate) committed: Arc<CommittedBlock>,
    /// The length of its transactions' texts together.
    text_bytes: u64,
    /// What its events without a transaction count as, beyond the first four.
    end_bytes: u64,
    derived: [OnceLock<Arc<[Item]>>; 7],
}

impl BlockEvents {
    pub(super) fn new(committed: Arc<CommittedBlock>) -> Self {
        let texts = committed.block.transactions.iter().map(|tx| tx.signed_bytes());
        let text_bytes = u64::try_from(texts.sum::<usize>()).unwrap_or(u64::MAX);
        let ended = committed.events.as_ref().map_or(0, |events| events.end.len());
        let ended = u64::try_from(ended.saturating_sub(END_EVENTS_FREE)).unwrap_or(u64::MAX);
        let end_bytes = ended.saturating_mul(BYTES_PER_END_EVENT);
        Self { committed, text_bytes, end_bytes, derived: std::array::from_fn(|_| OnceLock::new()) }
    }

    pub(super) fn cell(&self, kind: EventKind) -> &OnceLock<Arc<[Item]>> {
        let [blocks, transactions, pool, agent_runs, chat, calls, agents] = &self.derived;
        match kind {
            EventKind::Blocks => blocks,
            EventKind::Transactions => transactions,
            EventKind::Pool => pool,
            EventKind::AgentRuns => agent_runs,
            EventKind::Chat => chat,
            EventKind::Calls => calls,
            EventKind::Agents => agents,
        }
    }

    /// How much of the memory for blocks it takes.
    pub(super) fn weight(&self) -> u64 {
        let texts = self.text_bytes.saturating_mul(BYTES_PER_TEXT_BYTE);
        texts.saturating_add(self.end_bytes).saturating_add(BYTES_PER_BLOCK)
    }

    /// What a replay pays for: the texts of its transactions, and its events without a transaction.
    pub(crate) const fn bytes(&self) -> u64 {
        self.text_bytes.saturating_add(self.end_bytes)
    }

    /// The events of one kind, in order.
    pub(crate) fn items(&self, kind: EventKind, ports: &Ports) -> Result<Arc<[Item]>, PortFault> {
        let cell = self.cell(kind);
        if let Some(items) = cell.get() {
            return Ok(Arc::clone(items));
        }
        let items = derive(kind, &self.committed, ports)?.into();
        Ok(Arc::clone(cell.get_or_init(|| items)))
    }
}

/// Weighs blocks by the memory that they take.
#[derive(Clone)]
pub(super) struct Weights;

impl Weighter<u64, Arc<BlockEvents>> for Weights {
    fn weight(&self, _height: &u64, events: &Arc<BlockEvents>) -> u64 {
        events.weight()
    }
}

#[cfg(test)]
mod tests {
    //! What a block counts as when it is replayed.

    use types::{Address, Amount, Block, BlockEvents as Events, Event, Hash, Header};

    use super::*;

    /// A block without transactions, with so many events at its end.
    fn block(events: usize) -> BlockEvents {
        let paid = Event::UnbondingPaid { miner: Address::new([1; 20]), amount: Amount::new(1) };
        let events = Events { end: vec![paid; events], ..Events::default() };
        let header = Header {
            chain_id: "c".to_owned(),
            index: 1,
            previous_hash: Hash::ZERO,
            timestamp: 1,
            proposer: Address::new([1; 20]),
            tx_root: Hash::ZERO,
            state_root: Hash::ZERO,
            tokens_burned: Amount::ZERO,
            tx_count: 0,
            randomness: None,
        };
        let block = Block { header, transactions: Vec::new() };
        BlockEvents::new(Arc::new(CommittedBlock { block, hash: Hash::ZERO, events: Some(events) }))
    }

    #[test]
    fn what_happens_without_a_transaction_counts_too() {
        assert_eq!(block(0).weight(), BYTES_PER_BLOCK);
        assert_eq!(block(END_EVENTS_FREE).weight(), BYTES_PER_BLOCK);
        assert_eq!(block(END_EVENTS_FREE).bytes(), 0);
        let full = block(END_EVENTS_FREE + 1_000);
        assert_eq!(full.weight(), BYTES_PER_BLOCK + 1_000 * 1_024);
        assert_eq!(full.bytes(), 1_000 * 1_024);
    }
}
