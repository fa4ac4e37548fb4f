//! What an honest peer offers.

use std::path::Path;

use proptest::prelude::*;
use state::StorageError;
use state::table::Table;
use state::tables::{self, Steps};
use store::Options;
use store::snapshots::{ImportError, MakeError, SnapshotStore};
use store::tools::{self, ToolError};
use tempfile::TempDir;
use types::Hash;

use super::busy::{Busy, commit, follow, rows};
use crate::fixture::{data, open, proposing};
use crate::peers::{fill, imported, newest};
use crate::tools::{quiet, tamper, verify};

/// Blocks in which everything happens, whatever else random bytes add.
const STORY: [&[u8]; 9] = [
    &[0x10, 0xcd, 0x08, 0x19, 0x0a],
    &[0x32, 0x13, 0x0b, 0x09],
    &[0x34, 0x34, 0x6b],
    &[0x20, 0x02, 0x7d],
    &[0x0e],
    &[0x0c, 0x2a, 0x2b, 0x32],
    &[0x36, 0x30, 0x0a, 0x0b, 0x98],
    &[0x30, 0x02],
    &[0x29, 0x62],
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    #[test]
    fn a_node_that_began_with_a_snapshot_has_the_same_rows_then_and_later(
        random in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..24), 1..12),
        later in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..12), 1..8),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut busy = Busy::new(&dir.path().join("data"));
        let (before, after) = STORY.split_at(random.len().min(STORY.len()));
        before.iter().for_each(|acts| busy.block(acts));
        random.iter().for_each(|acts| busy.block(acts));
        let kept: Vec<_> = tables::ALL.iter().map(|table| rows(&busy.store, *table)).collect();
        let offer = busy.offered(&dir.path().join("snapshot_store"));
        let (new, report) = imported(&offer, &busy.replay(), dir.path()).unwrap();
        let height = report.tip.height;
        prop_assert_eq!(height + 1, busy.store.tip().unwrap().height);
        prop_assert_eq!(new.tip().unwrap(), report.tip);
        prop_assert_eq!(new.earliest(), height + 1);
        for (table, kept) in tables::ALL.iter().zip(kept) {
            if *table == Steps::ID {
                prop_assert!(rows(&new, *table).is_empty());
            } else {
                prop_assert_eq!(rows(&new, *table), kept, "{}", table.name);
            }
        }
        after.iter().chain(&[[0x0f].as_slice()]).for_each(|acts| busy.block(acts));
        later.iter().for_each(|acts| busy.block(acts));
        busy.block(&[0x0f]);
        let at = usize::try_from(height).unwrap();
        follow(&new, &busy.blocks[at..]);
        prop_assert_eq!(new.tip().unwrap(), busy.store.tip().unwrap());
        for table in tables::ALL.into_iter().filter(|table| *table != Steps::ID) {
            prop_assert_eq!(rows(&new, table), rows(&busy.store, table), "{}", table.name);
        }
        // It can be offered on, with the same way from genesis.
        let again = SnapshotStore::open(&dir.path().join("again"), 1, &new).unwrap();
        again.make(&new, |_| (), &mut |_| true).unwrap();
        busy.block(&[]);
        follow(&new, &busy.blocks[busy.blocks.len() - 1..]);
        again.settle(&new).unwrap().expect("an offer");
        let verified = busy.verified(&newest(&again)).unwrap();
        prop_assert_eq!(verified.tip.height + 1, new.tip().unwrap().height);
    }
}

fn story() -> (TempDir, Busy) {
    let dir = tempfile::tempdir().unwrap();
    let mut busy = Busy::new(&data(&dir));
    STORY.iter().for_each(|acts| busy.block(acts));
    (dir, busy)
}

#[test]
fn what_happened_before_the_snapshot_is_refused_by_the_earliest_block() {
    let (dir, mut busy) = story();
    let offer = busy.offered(&dir.path().join("snapshot_store"));
    let (new, _) = imported(&offer, &busy.replay(), dir.path()).unwrap();
    let last = offer.1.manifest.height;
    {
        let snapshot = new.snapshot();
        let run = rows(&new, tables::Runs::ID)
            .into_iter()
            .find_map(|(key, _)| {
                let id = Hash::new(key.try_into().unwrap());
                snapshot.run(&id).unwrap().filter(|run| run.step_count > 0)
            })
            .expect("a run with steps");
        let refused = [
            snapshot.block(1).map(|_| ()),
            snapshot.block(last).map(|_| ()),
            snapshot.block_bytes(last).map(|_| ()),
            snapshot.header(1).map(|_| ()),
            snapshot.run_detail(&run.agent_run_id).map(|_| ()),
            snapshot.step_records(&run.agent_run_id, None, 1).map(|_| ()),
            snapshot.conversation(&Hash::ZERO, None, 10).map(|_| ()),
        ];
        for (at, answer) in refused.into_iter().enumerate() {
            let error = answer.expect_err("refused");
            let earliest = last + 1;
            assert!(
                matches!(error, StorageError::History { earliest: found } if found == earliest),
                "{at}: {error}"
            );
        }
        assert_eq!(snapshot.header(last).unwrap().unwrap().hash, new.tip().unwrap().hash);
        assert_eq!(snapshot.block(0).unwrap(), None);
        assert_eq!(snapshot.block(last + 1).unwrap(), None);
    }
    // Nor can it be executed again from genesis.
    let file = dir.path().join("blocks");
    for range in [(1, None), (last, None)] {
        let error = tools::export(&new, &file, range, &mut quiet).unwrap_err();
        assert!(matches!(error, ToolError::Storage(StorageError::History { .. })), "{error}");
    }
    follow(&new, &busy.blocks[usize::try_from(last).unwrap()..]);
    assert_eq!(tools::export(&new, &file, (last + 1, None), &mut quiet).unwrap(), 1);
    let verified = verify(&new, dir.path(), &busy.replay()).unwrap();
    assert_eq!((verified.earliest, verified.tip), (last + 1, busy.store.tip().unwrap()));
    drop(new);
    let path = dir.path().join("new");
    let back = tools::rollback(&path, Options::default(), &busy.replay(), &mut quiet);
    let error = back.unwrap_err();
    assert!(matches!(error, ToolError::Storage(StorageError::History { .. })), "{error}");
}

#[test]
fn a_snapshot_outlives_a_restart_of_its_server_and_gives_way_to_newer_ones() {
    let (dir, mut busy) = story();
    let folder = dir.path().join("snapshot_store");
    let (snapshot_store, offer) = busy.offered(&folder);
    let (_, intake) = busy.intake(&offer, dir.path());
    let all = fill(&intake, &snapshot_store);
    let head = snapshot_store.offers();
    drop(snapshot_store);
    let snapshot_store = SnapshotStore::open(&folder, 2, &busy.store).unwrap();
    assert_eq!(snapshot_store.offers(), head);
    for _ in 0..3 {
        snapshot_store.make(&busy.store, |_| (), &mut |_| true).unwrap();
        busy.block(&[0x05]);
        snapshot_store.settle(&busy.store).unwrap();
    }
    let heights: Vec<u64> = snapshot_store.offers().iter().map(|head| head.height).collect();
    let tip = busy.store.tip().unwrap().height;
    assert_eq!(heights, [tip - 1, tip - 2]);
    assert_eq!(snapshot_store.piece(&head[0].hash, 0, 10).unwrap(), None);
    // What did not change since has the same name, and is not fetched again.
    let (_, intake) = busy.intake(&newest(&snapshot_store), dir.path());
    let missing = intake.missing().len();
    assert!(missing < all, "{missing} of {all}");
}

#[test]
fn writing_can_be_stopped_and_leaves_nothing() {
    let (dir, busy) = story();
    let folder = dir.path().join("snapshot_store");
    let snapshot_store = SnapshotStore::open(&folder, 2, &busy.store).unwrap();
    for last in [0, 3, 70] {
        let mut calls = 0;
        let error = snapshot_store
            .make(&busy.store, |_| (), &mut |_| {
                calls += 1;
                calls <= last
            })
            .unwrap_err();
        assert!(matches!(error, MakeError::Stopped), "{error}");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    }
}

/// Takes a proof of a change of validators away.
fn without_a_link(dir: &TempDir, busy: Busy) -> Busy {
    let links = rows(&busy.store, validator_links());
    assert!(!links.is_empty(), "the story changes the validators");
    drop(busy);
    tamper(&data(dir), "validator_links", &links[0].0, None);
    let mut busy = Busy::new(&dir.path().join("other"));
    busy.store = open(&data(dir));
    busy
}

/// Commits a block without transactions.
fn next_block(busy: &Busy) {
    let parent = busy.store.parent().unwrap();
    let builder = state::BlockBuilder::new(
        busy.replay().chain,
        busy.store.latest(),
        parent,
        &proposing(),
        parent.timestamp + 1,
    );
    commit(&busy.store, &builder.unwrap().finish().unwrap());
}

#[test]
fn a_database_without_the_links_makes_no_snapshot_and_removes_those_that_it_has() {
    let (dir, busy) = story();
    let folder = dir.path().join("snapshot_store");
    let snapshot_store = SnapshotStore::open(&folder, 2, &busy.store).unwrap();
    let height = snapshot_store.make(&busy.store, |_| (), &mut |_| true).unwrap();
    let busy = without_a_link(&dir, busy);
    let snapshot_store = SnapshotStore::open(&folder, 2, &busy.store).unwrap();
    assert_eq!(snapshot_store.waiting(), Some(height), "the next block is missing");
    next_block(&busy);
    let error = snapshot_store.settle(&busy.store).unwrap_err();
    assert!(matches!(error, MakeError::NoLinks), "{error}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    let error = snapshot_store.make(&busy.store, |_| (), &mut |_| true).unwrap_err();
    assert!(matches!(error, MakeError::NoLinks), "{error}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    assert_eq!(snapshot_store.settle(&busy.store).unwrap(), None);
}

#[test]
fn a_snapshot_that_cannot_be_offered_is_removed_and_one_that_cannot_be_read_hides_no_other() {
    let (dir, mut busy) = story();
    let folder = dir.path().join("snapshot_store");
    let snapshot_store = SnapshotStore::open(&folder, 1, &busy.store).unwrap();
    let make = |busy: &mut Busy| {
        let height = snapshot_store.make(&busy.store, |_| (), &mut |_| true).unwrap();
        busy.block(&[0x05]);
        (height, folder.join(height.to_string()))
    };
    let (malformed, made) = make(&mut busy);
    std::fs::write(made.join("manifest"), b"no manifest").unwrap();
    let (_, unreadable) = make(&mut busy);
    std::fs::remove_file(unreadable.join("rows")).unwrap();
    let (height, whole) = make(&mut busy);
    let error = snapshot_store.settle(&busy.store).unwrap_err();
    assert!(matches!(error, MakeError::File { .. }), "the first of two faults: {error}");
    let offers = || snapshot_store.offers().iter().map(|head| head.height).collect::<Vec<_>>();
    assert_eq!((vec![height], false), (offers(), made.exists()), "{malformed} is removed");
    assert!(unreadable.exists() && whole.exists(), "it may be read the next time");
    // One beside those that are offered is kept, and no more.
    let (other, also_unreadable) = make(&mut busy);
    std::fs::remove_file(also_unreadable.join("rows")).unwrap();
    let error = snapshot_store.settle(&busy.store).unwrap_err();
    assert!(matches!(error, MakeError::File { .. }), "{error}");
    assert_eq!((vec![height], false), (offers(), unreadable.exists()), "{other} is newer");
    // At the next start it is removed, too.
    drop(snapshot_store);
    let snapshot_store = SnapshotStore::open(&folder, 1, &busy.store).unwrap();
    assert_eq!(1, std::fs::read_dir(&folder).unwrap().count());
    assert_eq!(height, snapshot_store.offers()[0].height);
}

fn validator_links() -> state::table::TableId {
    store::tables::all().find(|table| table.name == "validator_links").unwrap()
}

#[test]
fn an_import_that_is_stopped_leaves_no_database_and_begins_anew_with_the_same_chunks() {
    let (dir, mut busy) = story();
    let (snapshot_store, offer) = busy.offered(&dir.path().join("snapshot_store"));
    let verified = busy.intake(&offer, dir.path());
    assert!(fill(&verified.1, &snapshot_store) > 1, "one chunk more than it is told of");
    let (to, mut told) = (dir.path().join("new"), 0);
    let mut stop = |_, _| {
        told += 1;
        false
    };
    let error = busy.import(&verified, dir.path(), &mut stop).unwrap_err();
    assert!(matches!(error, ImportError::Stopped), "{error}");
    assert_eq!((1, false), (told, to.exists()));
    assert_eq!(verified.1.missing(), []);
    busy.import(&verified, dir.path(), &mut |_, _| true).unwrap();
}

#[test]
fn an_import_does_not_take_the_place_of_a_database_that_an_interrupted_rollback_left() {
    let (dir, mut busy) = story();
    let (snapshot_store, offer) = busy.offered(&dir.path().join("snapshot_store"));
    let verified = busy.intake(&offer, dir.path());
    fill(&verified.1, &snapshot_store);
    let kept = dir.path().join("new.before-rollback");
    std::fs::create_dir(&kept).unwrap();
    let error = busy.import(&verified, dir.path(), &mut |_, _| true).unwrap_err();
    let interrupted = matches!(&error, ImportError::Storage(StorageError::Interrupted { left, .. }) if *left == kept);
    assert!(interrupted && !dir.path().join("new").exists(), "{error}");
    std::fs::remove_dir(kept).unwrap();
    busy.import(&verified, dir.path(), &mut |_, _| true).unwrap();
}

/// What a crash of the machine may leave, if the disk does not keep its promises.
#[test]
fn a_snapshot_with_a_file_that_is_missing_or_cut_off_is_removed_at_the_next_start() {
    let (dir, mut busy) = story();
    let folder = dir.path().join("snapshot_store");
    let harms: [fn(&Path); 4] = [
        |made| std::fs::remove_file(made.join("rows")).unwrap(),
        |made| std::fs::remove_file(made.join("extras")).unwrap(),
        |made| cut_off(&made.join("rows")),
        |made| cut_off(&made.join("extras")),
    ];
    for (at, harm) in harms.into_iter().enumerate() {
        let (_, offer) = busy.offered(&folder);
        let made = folder.join(offer.manifest.height.to_string());
        let snapshot_store = SnapshotStore::open(&folder, 2, &busy.store).unwrap();
        assert_eq!((1, true), (snapshot_store.offers().len(), made.exists()), "harm {at}");
        harm(&made);
        let snapshot_store = SnapshotStore::open(&folder, 2, &busy.store).unwrap();
        assert_eq!((0, false), (snapshot_store.offers().len(), made.exists()), "harm {at}");
    }
}

/// A manifest of the first format had a depth in the place of ranges.
#[test]
fn a_snapshot_of_the_first_format_is_removed_at_the_next_start() {
    let (dir, mut busy) = story();
    let folder = dir.path().join("snapshot_store");
    let (_, offer) = busy.offered(&folder);
    let manifest = offer.manifest;
    let made = folder.join(manifest.height.to_string());
    let part = manifest.parts[0];
    let extras: Vec<(Hash, u64)> = manifest.extras.iter().map(|it| (it.hash, it.bytes)).collect();
    let first = (manifest.height, 0_u32, vec![(part.hash, part.leaves, part.bytes)], extras);
    std::fs::write(made.join("manifest"), types::codec::encode(&first)).unwrap();
    std::fs::remove_file(made.join("offer")).unwrap();
    let snapshot_store = SnapshotStore::open(&folder, 2, &busy.store).unwrap();
    assert_eq!((0, false), (snapshot_store.offers().len(), made.exists()));
}

fn cut_off(path: &Path) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let bytes = file.metadata().unwrap().len();
    file.set_len(bytes - 1).unwrap();
}
