//! Pages neither skip nor repeat, also when blocks come between them.

use std::sync::Arc;

use state::tables::ConsensusKeys;
use state::{Draft, Memory};
use store::{KEY_ROWS_MAX, RUN_ROWS_MAX, RunFilter, RunPage, Snapshot};
use types::{Address, Hash, KeyStanding, PublicKey, Run, RunStatus, TxLocation};

use crate::fixture::{TestChain, begun};
use crate::open_runs::chain_of_unsigned;

/// Adds a block with a run and a turn.
fn grow(chain: &mut TestChain, number: u64) {
    let mut txs = chain.whole_run(number);
    txs.push(chain.wallets[0].turn(Hash::ZERO, "a turn"));
    chain.block(&txs);
}

fn grown(blocks: u64) -> (tempfile::TempDir, TestChain) {
    let (dir, mut chain) = TestChain::fresh(2);
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
    let [submitter, miner] = [0, 1].map(|at: usize| Some(chain.wallets[at].address()));
    let (all, status) = (RunFilter::default(), Some(RunStatus::Completed));
    let filters = [
        all,
        RunFilter { status, ..all },
        RunFilter { submitter, ..all },
        RunFilter { miner, status, ..all },
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

/// How many runs [`mixed`] has: more than a page looks at, several times.
const MIXED: usize = 1_000;

/// The conversation of the first of the runs of [`mixed`].
const FIRST: Hash = Hash::new([7; 32]);

/// Runs of two users in three conversations, the first of all in one of its own; every other one is
/// claimed, by one of two miners.
fn mixed() -> (tempfile::TempDir, TestChain) {
    let (dir, mut chain) = chain_of_unsigned(4);
    for first in (0..MIXED).step_by(100) {
        let mut txs = Vec::new();
        for number in first..first + 100 {
            let conversation = match number {
                0 => FIRST,
                _ => Hash::new([u8::try_from(number % 3).unwrap(); 32]),
            };
            let (request, run) = chain.wallets[number % 2].request(conversation, "a question");
            txs.push(request);
            if number % 2 == 1 {
                txs.push(chain.wallets[2 + number / 2 % 2].claim(run));
            }
        }
        chain.block(&txs);
    }
    (dir, chain)
}

/// Every choice of conditions.
fn filters(chain: &TestChain) -> Vec<RunFilter> {
    let address = |at: usize| Some(chain.wallets[at].address());
    let mut filters = Vec::new();
    for status in [None, Some(RunStatus::Pending), Some(RunStatus::Claimed)] {
        for submitter in [None, address(0), address(1)] {
            for miner in [None, address(2), address(0)] {
                for conversation_id in [None, Some(Hash::new([1; 32])), Some(Hash::new([9; 32]))] {
                    filters.push(RunFilter { status, submitter, miner, conversation_id });
                }
            }
        }
    }
    filters
}

fn meets(run: &Run, filter: &RunFilter) -> bool {
    filter.status.is_none_or(|it| it == run.status)
        && filter.submitter.is_none_or(|it| it == run.submitter)
        && filter.miner.is_none_or(|it| Some(it) == run.miner)
        && filter.conversation_id.is_none_or(|it| it == run.conversation_id)
}

/// All pages of a list.
pub(crate) fn pages_of(snapshot: &Snapshot<'_>, filter: &RunFilter, limit: usize) -> Vec<RunPage> {
    let (mut pages, mut mark) = (Vec::new(), None);
    loop {
        let page = snapshot.runs(filter, mark, limit).unwrap();
        assert!(page.next.is_none() || mark.is_none() || page.next < mark, "{mark:?} stands still");
        mark = page.next;
        pages.push(page);
        if mark.is_none() {
            return pages;
        }
    }
}

#[test]
fn the_marks_of_short_pages_lead_to_every_run_of_any_filter_once_and_in_order() {
    let (_dir, chain) = mixed();
    let snapshot = chain.store.snapshot();
    let all: Vec<Run> = pages_of(&snapshot, &RunFilter::default(), MIXED)
        .into_iter()
        .flat_map(|page| page.runs)
        .collect();
    assert_eq!(all.len(), MIXED);
    assert!(all.is_sorted_by(|newer, older| newer.request > older.request));
    for filter in filters(&chain) {
        let expected: Vec<&Run> = all.iter().filter(|run| meets(run, &filter)).collect();
        for limit in [1, 7, MIXED] {
            let pages = pages_of(&snapshot, &filter, limit);
            assert!(pages.iter().all(|page| page.runs.len() <= limit));
            let paged: Vec<&Run> = pages.iter().flat_map(|page| &page.runs).collect();
            assert!(paged == expected, "{filter:?} in pages of {limit}");
        }
    }
}

#[test]
fn a_page_of_runs_looks_at_few_rows_whatever_is_asked_for() {
    let (_dir, chain) = mixed();
    let snapshot = chain.store.snapshot();
    let [user, _, miner, other] = [0, 1, 2, 3].map(|at| Some(chain.wallets[at].address()));
    // The one is about the runs between those of the other: nothing can be stepped over.
    let filter =
        RunFilter { submitter: user, status: Some(RunStatus::Claimed), ..RunFilter::default() };
    let pages = pages_of(&snapshot, &filter, 30);
    assert!(pages.len() >= MIXED / RUN_ROWS_MAX, "{} pages", pages.len());
    assert!(pages.iter().all(|page| page.runs.is_empty()));
    // Neither has a miner two runs in a row, but who never asked for any has no list to be walked.
    let filter = RunFilter { submitter: other, miner, ..RunFilter::default() };
    assert_eq!(1, pages_of(&snapshot, &filter, 30).len(), "the shorter list decides");
    // What is older than all of the one list is stepped over in the other.
    for status in [None, Some(RunStatus::Pending)] {
        let filter = RunFilter {
            submitter: user,
            conversation_id: Some(FIRST),
            status,
            ..RunFilter::default()
        };
        let pages = pages_of(&snapshot, &filter, 30);
        assert_eq!((1, 1), (pages.len(), pages[0].runs.len()), "{status:?}");
    }
    let first = pages_of(&snapshot, &RunFilter::default(), MIXED).remove(0);
    assert!(first.runs.len() <= RUN_ROWS_MAX && first.next.is_some());
}

#[test]
fn pages_of_punished_keys_look_at_few_keys_and_lead_to_all_that_are_punished() {
    let mut draft = Draft::new(Arc::new(Memory::default()));
    let many = 2 * u64::try_from(KEY_ROWS_MAX).unwrap() + 50;
    let mut expected = Vec::new();
    for number in 0..many {
        let key = PublicKey::new(*Hash::digest(&number.to_be_bytes()).as_bytes());
        let punished_at = number.is_multiple_of(90).then_some(number + 1);
        let standing = KeyStanding { alone_until: Some(number), punished_at };
        draft.put::<ConsensusKeys>(&key, &standing);
        expected.extend(punished_at.map(|at| (key, at)));
    }
    expected.sort_unstable();
    let dir = tempfile::tempdir().unwrap();
    let store = begun(dir.path(), &draft.into_changes());
    for limit in [1, 2, 500] {
        let (mut paged, mut pages, mut mark) = (Vec::new(), 0, None);
        loop {
            let page = store.snapshot().punished_keys(mark.as_ref(), limit).unwrap();
            assert!(page.keys.len() <= limit);
            paged.extend(page.keys);
            pages += 1;
            assert!(page.next.is_none() || page.next > mark, "{mark:?} stands still");
            let Some(next) = page.next else { break };
            mark = Some(next);
        }
        assert_eq!(paged, expected, "pages of {limit}");
        assert!(pages >= 3, "{pages} pages");
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
    let (_dir, mut chain) = TestChain::fresh(9);
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
