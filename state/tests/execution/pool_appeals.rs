//! Appeals that wait in the pool: what is read for them, and what they take.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use state::table::{Table, TableId};
use state::tables::OffersByExecutor;
use state::view::{Range, RawRow, Read, Still};
use state::{Base, Memory, SharedPending, StorageError};
use types::Hash;

use crate::calls::decided;
use crate::market_world::{Market, appeal, offer};
use crate::world::{ALICE, BOB, answer};

/// All but so many miners that could be drawn take their offers back.
fn leave(market: &mut Market, id: Hash, left: usize) {
    let members = market.members(id, 0);
    let others = market.miners.clone().into_iter().filter(|miner| !members.contains(miner));
    for miner in others.skip(left) {
        market.world.must(miner, &offer(0));
    }
}

#[test]
fn a_pool_begins_anew_when_an_appeal_took_other_stakes_in_its_block() {
    for (left, is_right) in [(7, true), (5, false)] {
        let (mut market, id) = decided(10);
        let mut pool = market.world.pool();
        let tx = market.world.pool_tx(&pool, BOB, &appeal(id));
        pool.admit(&tx).unwrap();
        leave(&mut market, id, left);
        market.world.push(&tx).unwrap();
        assert_eq!(usize::from(market.call(id).appeal.unwrap().size), left);
        let executed = market.world.next_block();
        assert_eq!(market.world.tell(&mut pool, &[tx], &executed), is_right, "{left} are left");
    }
}

#[test]
fn a_pool_knows_who_is_eligible_after_the_last_block() {
    let (mut market, id) = decided(10);
    let mut pool = market.world.pool();
    let tx = market.world.pool_tx(&pool, BOB, &appeal(id));
    pool.check(&tx).unwrap();
    leave(&mut market, id, 2);
    let executed = market.world.next_block();
    assert!(market.world.tell(&mut pool, &[], &executed));
    assert_eq!(answer(pool.check(&tx)), "APPEAL_CLOSED");
    let miners = market.miners.clone();
    market.world.all(&miners, &offer(2));
    let executed = market.world.next_block();
    assert!(market.world.tell(&mut pool, &[], &executed));
    pool.admit(&tx).unwrap();
}

/// A state that counts how often the order of offers is read.
struct Counting {
    below: Arc<Memory>,
    scans: Arc<AtomicUsize>,
}

impl Read for Counting {
    fn get_raw(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        self.below.get_raw(table, key)
    }

    fn scan_raw(&self, table: TableId, range: Range<'_>) -> Result<Vec<RawRow>, StorageError> {
        if table == OffersByExecutor::ID {
            self.scans.fetch_add(1, Ordering::SeqCst);
        }
        self.below.scan_raw(table, range)
    }
}

#[test]
fn the_order_of_offers_is_read_once_and_before_the_pool_is_locked() {
    let (market, id) = decided(10);
    let scans = Arc::<AtomicUsize>::default();
    let (below, counter) = (Arc::clone(&market.world.memory), Arc::clone(&scans));
    let state = Still::vouched(Arc::new(Counting { below, scans: counter }));
    let base = Base { state, height: market.world.parent.height };
    let pool = SharedPending::new(base, Arc::clone(&market.world.chain)).unwrap();
    for (who, call) in [(BOB, Hash::ZERO), (ALICE, id), (BOB, id)] {
        let tx = market.world.pool_tx(&pool.lock(), who, &appeal(call));
        pool.prepare(&tx);
        let before = scans.load(Ordering::SeqCst);
        let taken = pool.lock().check(&tx);
        assert_eq!(taken.is_ok(), call == id);
        assert_eq!(scans.load(Ordering::SeqCst), before, "it is known");
    }
    assert_eq!(scans.load(Ordering::SeqCst), 1);
}
