//! The latest blocks with their events, and the calls that wait for a transaction.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use quick_cache::sync::{Cache, GuardResult};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;
use types::{CommittedBlock, Hash, TxLocation};

use super::block::{BlockEvents, Weights};
use super::escrows::Escrows;
use super::item::Item;
use super::tips::Tips;
use super::waiting::{CallWaiter, WaitFor, Waiting};
use crate::admission::{Held, Share};
use crate::error::RpcError;
use crate::ports::{DroppedTx, Feed, FeedError, IncludedTx, PoolEvent, PoolTx, PortFault, Ports};
use crate::wire::{EventKind, TipsView, TxView};

/// Blocks whose events are kept for subscribers that are close to the tip.
const BLOCKS_KEPT: usize = 32;
/// Memory for them, counted as that of replayed blocks. The newest is kept in any case.
const LATEST_BYTES_KEPT: u64 = 48 * 1024 * 1024;
/// Memory for blocks that are replayed, so that many who replay the same ones read them once. They
/// are counted as several times their texts, for what is derived of them.
const REPLAYED_BYTES_KEPT: u64 = 48 * 1024 * 1024;
/// The fewest replayed blocks that are kept. A larger number would have the library cut the memory into
/// parts that are too small for a large block.
const REPLAYED_MIN: usize = 32;
/// Events of a block that are looked through at once. More are a turn's work.
const ITEMS_AT_HAND_MAX: usize = 256;
/// After a longer jump of the tip, waiting calls are looked up one by one instead.
const BLOCKS_WALKED_MAX: u64 = 64;

/// The meeting point of what happens and who wants to know.
pub(crate) struct Hub {
    ports: Ports,
    latest: Mutex<VecDeque<(u64, Arc<BlockEvents>)>>,
    replayed: Cache<u64, Arc<BlockEvents>, Weights>,
    waiting: Mutex<BTreeMap<(Hash, u64), oneshot::Sender<TxView>>>,
    waiting_max: usize,
    /// Who waits for a call of an agent.
    calls: Arc<Waiting>,
    next_ticket: AtomicU64,
    /// What the latest blocks tipped.
    tips: Tips,
    /// What each account's runs hold.
    escrows: Escrows,
}

impl Hub {
    /// `waiting_max` calls may wait at the same time.
    pub(crate) fn new(ports: Ports, waiting_max: u32) -> Self {
        Self {
            ports,
            latest: Mutex::default(),
            replayed: Cache::with_weighter(REPLAYED_MIN, REPLAYED_BYTES_KEPT, Weights),
            waiting: Mutex::default(),
            waiting_max: usize::try_from(waiting_max).unwrap_or(usize::MAX),
            calls: Arc::default(),
            next_ticket: AtomicU64::new(0),
            tips: Tips::default(),
            escrows: Escrows::default(),
        }
    }

    /// What the latest blocks tipped.
    ///
    /// # Errors
    /// Where a block cannot be read.
    pub(crate) fn tips(&self) -> Result<TipsView, RpcError> {
        self.follow_tips()?;
        Ok(self.tips.summary())
    }

    /// What each account's runs hold.
    pub(crate) const fn escrows(&self) -> &Escrows {
        &self.escrows
    }

    fn follow_tips(&self) -> Result<(), PortFault> {
        self.tips.follow(self.ports.chain.tip(), |height| self.block(height))
    }

    /// The events of one kind in a committed block, in order, and how much was read for them.
    ///
    /// # Errors
    /// Where the block cannot be read, or is not here any more.
    pub(super) fn items(
        &self,
        height: u64,
        kind: EventKind,
    ) -> Result<(Arc<[Item]>, u64), RpcError> {
        let events = self.committed_block(height)?;
        Ok((events.items(kind, &self.ports)?, events.bytes()))
    }

    /// The events if nothing has to be read for them, and they are soon looked through.
    pub(crate) fn items_at_hand(&self, height: u64, kind: EventKind) -> Option<Arc<[Item]>> {
        let events = self.kept(height)?;
        let items = events.cell(kind).get()?;
        (items.len() <= ITEMS_AT_HAND_MAX).then(|| Arc::clone(items))
    }

    /// A block that is known to be committed, with its events.
    ///
    /// # Errors
    /// Where it cannot be read, or is not here any more.
    pub(crate) fn committed_block(&self, height: u64) -> Result<Arc<BlockEvents>, RpcError> {
        self.block(height)?.ok_or_else(|| {
            tracing::error!(height, "a committed block cannot be read");
            RpcError::Internal
        })
    }

    fn kept(&self, height: u64) -> Option<Arc<BlockEvents>> {
        let latest = self.latest.lock();
        latest.iter().rev().find(|(at, _)| *at == height).map(|(_, events)| Arc::clone(events))
    }

    /// The block at `height` with its events; none if it is not committed. It is read once for all
    /// who want it at about the same time.
    pub(crate) fn block(&self, height: u64) -> Result<Option<Arc<BlockEvents>>, PortFault> {
        if let Some(events) = self.kept(height) {
            return Ok(Some(events));
        }
        // Who comes second waits for the first, who has a place among the readers, as it has itself.
        let place = match self.replayed.get_value_or_guard(&height, None) {
            GuardResult::Value(events) => return Ok(Some(events)),
            GuardResult::Guard(place) => Some(place),
            GuardResult::Timeout => None,
        };
        if let Some(events) = self.kept(height) {
            return Ok(Some(events));
        }
        let Some(committed) = self.ports.chain.block(height)? else { return Ok(None) };
        let events = Arc::new(BlockEvents::new(committed));
        let newest = self.latest.lock().back().map_or(0, |(at, _)| *at);
        if height > newest {
            let mut latest = self.latest.lock();
            latest.push_back((height, Arc::clone(&events)));
            while is_too_much(&latest) {
                latest.pop_front();
            }
        } else if let Some(place) = place {
            // Nothing is lost if it was thrown out meanwhile.
            drop(place.insert(Arc::clone(&events)));
        }
        Ok(Some(events))
    }

    /// A transaction and what became of it, wherever it is.
    pub(crate) fn find(&self, hash: &Hash) -> Result<Option<TxView>, RpcError> {
        if let Some(included) = self.ports.transactions.by_hash(hash)? {
            return self.view(&included).map(Some);
        }
        let pooled = self.ports.pool.find(hash);
        if let Some(waiting @ (PoolTx::Pending(_) | PoolTx::Waiting { .. })) = &pooled {
            return Ok(Some(TxView::from(waiting)));
        }
        // It may have left the pool for a block between the two looks.
        if let Some(included) = self.ports.transactions.by_hash(hash)? {
            return self.view(&included).map(Some);
        }
        Ok(pooled.as_ref().map(TxView::from))
    }

    /// An included transaction with what it paid for its place.
    fn view(&self, included: &IncludedTx) -> Result<TxView, RpcError> {
        let inclusion_fee = self.ports.rules.paid(included)?;
        Ok(TxView { inclusion_fee, ..TxView::from(included) })
    }

    /// Waits for the transaction to be included or dropped from now on. Look it up after this, so
    /// that nothing falls between.
    pub(crate) fn wait(
        self: &Arc<Self>,
        hash: Hash,
        share: &Arc<Share>,
    ) -> Result<Waiter, RpcError> {
        let place = self.place(share)?;
        let (sender, answer) = oneshot::channel();
        let key = (hash, self.next_ticket.fetch_add(1, Ordering::Relaxed));
        self.waiting.lock().insert(key, sender);
        Ok(Waiter { hub: Arc::clone(self), key, answer, _place: place })
    }

    /// Waits for a call of an agent to come so far from now on. Look it up after this.
    pub(crate) fn wait_for_call(
        self: &Arc<Self>,
        wait_for: WaitFor,
        share: &Arc<Share>,
    ) -> Result<CallWaiter, RpcError> {
        let place = self.place(share)?;
        Ok(self.calls.add(wait_for, place))
    }

    /// A place among those that wait for anything.
    fn place(&self, share: &Arc<Share>) -> Result<Held, RpcError> {
        let place = share.waiting_call()?;
        let count = self.waiting.lock().len().saturating_add(self.calls.len());
        if count >= self.waiting_max {
            let message = format!("{count} calls are already waiting");
            return Err(RpcError::busy("TOO_MANY_WAITING", message, 1_000));
        }
        Ok(place)
    }

    /// Answers waiting calls until `shutdown`.
    pub(crate) async fn run(self: Arc<Self>, shutdown: CancellationToken) {
        let mut committed = self.ports.events.committed();
        let mut dropped = self.ports.events.dropped();
        let mut last = *committed.borrow_and_update();
        loop {
            let outcome = tokio::select! {
                () = shutdown.cancelled() => return,
                change = next_height(&mut committed) => match change {
                    None => return,
                    Some(height) => {
                        let from = std::mem::replace(&mut last, height);
                        let told = move |hub: &Self| {
                            hub.committed(from, height)?;
                            hub.escrows.follow(&hub.ports)
                        };
                        self.blocking(told).await
                    }
                },
                drop = dropped.next() => match drop {
                    Ok(dropped) => {
                        self.dropped(&dropped);
                        Ok(())
                    }
                    Err(FeedError::Lagged(_)) => self.blocking(Self::look_up_all).await,
                    Err(FeedError::Closed) => return,
                },
            };
            if let Err(error) = outcome {
                tracing::error!(%error, "waiting calls were not told of a change");
            }
        }
    }

    /// Reads off the runtime's own threads.
    async fn blocking(
        self: &Arc<Self>,
        read: impl FnOnce(&Self) -> Result<(), RpcError> + Send + 'static,
    ) -> Result<(), RpcError> {
        let hub = Arc::clone(self);
        let read = tokio::task::spawn_blocking(move || read(&hub));
        read.await.unwrap_or(Err(RpcError::ShuttingDown))
    }

    fn committed(&self, last: u64, height: u64) -> Result<(), RpcError> {
        self.follow_tips()?;
        if self.waiting.lock().is_empty() && self.calls.len() == 0 {
            return Ok(());
        }
        if height.saturating_sub(last) > BLOCKS_WALKED_MAX {
            self.calls.tell_all();
            return self.look_up_all();
        }
        for height in last.saturating_add(1)..=height {
            if let Some(events) = self.block(height)? {
                self.calls.tell(&events.committed);
                self.included(&events.committed)?;
            }
        }
        Ok(())
    }

    fn included(&self, committed: &CommittedBlock) -> Result<(), RpcError> {
        if self.waiting.lock().is_empty() {
            return Ok(());
        }
        let header = &committed.block.header;
        for (position, tx) in (0..).zip(&committed.block.transactions) {
            let senders = self.take(&tx.hash());
            if senders.is_empty() {
                continue;
            }
            let view = self.view(&IncludedTx {
                tx: tx.clone(),
                location: TxLocation { height: header.index, position },
                block_hash: committed.hash,
                timestamp: header.timestamp,
            })?;
            answer(senders, &view);
        }
        Ok(())
    }

    fn dropped(&self, dropped: &Arc<DroppedTx>) {
        let senders = self.take(&dropped.tx.hash());
        if !senders.is_empty() {
            answer(senders, &TxView::from(&PoolTx::Dropped(Arc::clone(dropped))));
        }
    }

    /// For when events were lost: asks for every transaction that is waited for.
    fn look_up_all(&self) -> Result<(), RpcError> {
        let hashes: Vec<Hash> = self.waiting.lock().keys().map(|(hash, _)| *hash).collect();
        for hash in hashes {
            if let Some(view) = self.find(&hash)?
                && (view.block_index.is_some() || view.dropped.is_some())
            {
                answer(self.take(&hash), &view);
            }
        }
        Ok(())
    }

    /// Who waits for the transaction; they wait no longer.
    fn take(&self, hash: &Hash) -> Vec<oneshot::Sender<TxView>> {
        let mut waiting = self.waiting.lock();
        let keys: Vec<_> =
            waiting.range((*hash, 0)..=(*hash, u64::MAX)).map(|(key, _)| *key).collect();
        keys.iter().filter_map(|key| waiting.remove(key)).collect()
    }

    /// Heights of committed blocks.
    pub(crate) fn heights(&self) -> watch::Receiver<u64> {
        self.ports.events.committed()
    }

    /// Events of the pool from now on.
    pub(crate) fn pool_events(&self) -> Feed<PoolEvent> {
        self.ports.events.pool()
    }
}

/// Whether the oldest of these blocks has to go.
fn is_too_much(latest: &VecDeque<(u64, Arc<BlockEvents>)>) -> bool {
    let weights = latest.iter().map(|(_, events)| events.weight());
    let is_heavy = weights.fold(0, u64::saturating_add) > LATEST_BYTES_KEPT;
    latest.len() > 1 && (is_heavy || latest.len() > BLOCKS_KEPT)
}

fn answer(senders: Vec<oneshot::Sender<TxView>>, view: &TxView) {
    for sender in senders {
        // Fails only if the caller has gone.
        drop(sender.send(view.clone()));
    }
}

/// The next height, or none when there will be no more.
pub(crate) async fn next_height(committed: &mut watch::Receiver<u64>) -> Option<u64> {
    committed.changed().await.ok()?;
    Some(*committed.borrow_and_update())
}

/// A call that waits for a transaction.
pub(crate) struct Waiter {
    hub: Arc<Hub>,
    key: (Hash, u64),
    answer: oneshot::Receiver<TxView>,
    _place: Held,
}

impl Waiter {
    /// The transaction, once it is included or dropped; none if the hub stops.
    pub(crate) async fn decided(mut self) -> Option<TxView> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.hub.waiting.lock().remove(&self.key);
    }
}
