//! Pages neither skip nor repeat, also when blocks come between them.

use store::RunFilter;
use types::{Address, Hash, RunStatus, TxLocation};

use crate::fixture::{TestChain, whole_run};

/// Adds a block with a run and a turn.
fn grow(chain: &mut TestChain, number: u64) {
    let (user, miner) = chain.pair(0, 1);
    let (_, mut txs) = whole_run(number, user, miner);
    txs.push(user.turn(Hash::ZERO, "a turn"));
    chain.block(&txs);
}

fn grown(blocks: u64) -> (tempfile::TempDir, TestChain) {
    let dir = tempfile::tempdir().unwrap();
    let mut chain = TestChain::new(dir.path(), 2);
    for number in 0..blocks {
        grow(&mut chain, number);
    }
    (dir, chain)
}

#[test]
fn newest_first_pages_show_what_was_there_at_the_first_page() {
    let (_dir, mut chain) = grown(6);
    let user = chain.wallets[0].address();
    let whole = chain.store.snapshot().account_transactions(&user, None, 1_000).unwrap();
    let mut paged = Vec::new();
    let mut mark: Option<TxLocation> = None;
    for number in 6.. {
        let page = chain.store.snapshot().account_transactions(&user, mark, 4).unwrap();
        let Some(last) = page.last() else { break };
        mark = Some(last.location);
        paged.extend(page);
        grow(&mut chain, number);
    }
    assert_eq!(paged, whole);
}

#[test]
fn run_pages_of_any_size_give_every_run_once() {
    let (_dir, mut chain) = grown(7);
    let filters = [
        RunFilter::default(),
        RunFilter { status: Some(RunStatus::Completed), ..RunFilter::default() },
        RunFilter { submitter: Some(chain.wallets[0].address()), ..RunFilter::default() },
        RunFilter {
            miner: Some(chain.wallets[1].address()),
            status: Some(RunStatus::Completed),
            ..RunFilter::default()
        },
    ];
    let mut number = 100;
    for filter in filters {
        let whole = chain.store.snapshot().runs(&filter, None, 1_000).unwrap();
        assert_eq!(whole.next, None);
        for limit in [1, 2, 3, 7, 50] {
            let mut paged = Vec::new();
            let mut mark = None;
            loop {
                let before = mark.or(Some(TxLocation {
                    height: whole.runs[0].request.height,
                    position: u32::MAX,
                }));
                let page = chain.store.snapshot().runs(&filter, before, limit).unwrap();
                assert!(page.runs.len() <= limit);
                paged.extend(page.runs);
                mark = page.next;
                if mark.is_none() {
                    break;
                }
                if number < 110 {
                    grow(&mut chain, number);
                    number += 1;
                }
            }
            assert_eq!(paged, whole.runs, "pages of {limit}");
        }
    }
}

#[test]
fn ascending_pages_go_on_into_new_blocks() {
    let (_dir, mut chain) = grown(3);
    let mut paged = Vec::new();
    let mut mark = None;
    for number in 3..8 {
        let page = chain.store.snapshot().conversation(&Hash::ZERO, mark, 2).unwrap();
        mark = page.last().map(|turn| turn.location).or(mark);
        paged.extend(page);
        if number < 5 {
            grow(&mut chain, number);
        }
    }
    let whole = chain.store.snapshot().conversation(&Hash::ZERO, None, 1_000).unwrap();
    assert_eq!(paged, whole);
    assert_eq!(whole.len(), 5);
}

#[test]
fn a_miner_page_ends_with_its_mark() {
    let dir = tempfile::tempdir().unwrap();
    let mut chain = TestChain::new(dir.path(), 9);
    let txs: Vec<_> = chain.wallets.iter_mut().map(|wallet| wallet.register("a miner")).collect();
    chain.block(&txs);
    let snapshot = chain.store.snapshot();
    let mut seen: Vec<Address> = Vec::new();
    loop {
        let page = snapshot.miners(seen.last(), 4).unwrap();
        if page.is_empty() {
            break;
        }
        seen.extend(page.iter().map(|one| one.miner.address));
    }
    let mut expected: Vec<Address> = chain.wallets.iter().map(|wallet| wallet.address()).collect();
    expected.sort_unstable();
    assert_eq!(seen, expected);
}
