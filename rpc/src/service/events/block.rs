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
/// And for itself.
const BYTES_PER_BLOCK: u64 = 2 * 1024;

/// A committed block with its events, derived when first asked for.
pub(crate) struct BlockEvents {
    pub(crate) committed: Arc<CommittedBlock>,
    /// The length of its transactions' texts together.
    pub(crate) text_bytes: u64,
    derived: [OnceLock<Arc<[Item]>>; 7],
}

impl BlockEvents {
    pub(super) fn new(committed: Arc<CommittedBlock>) -> Self {
        let texts = committed.block.transactions.iter().map(|tx| tx.signed_bytes());
        let text_bytes = u64::try_from(texts.sum::<usize>()).unwrap_or(u64::MAX);
        Self { committed, text_bytes, derived: std::array::from_fn(|_| OnceLock::new()) }
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

    /// How much of the memory for replayed blocks it takes.
    fn weight(&self) -> u64 {
        self.text_bytes.saturating_mul(BYTES_PER_TEXT_BYTE).saturating_add(BYTES_PER_BLOCK)
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
