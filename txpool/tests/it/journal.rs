//! What survives a restart.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use txpool::verifier::{Rules, Verifier};
use txpool::{Config, RestoreError, Restored};
use types::params::BLOB_CHUNK_BYTES;
use types::{CheckedTx, Code, Forks, Hash, Params};

use crate::support::world::NOW;
use crate::support::{Wallet, World};

pub(crate) fn restore(world: &World) -> Result<Restored, RestoreError> {
    let rules = Rules {
        chain_id: "test".to_owned(),
        params: Params::default(),
        forks: Forks::default(),
        genesis_hash: Hash::ZERO,
    };
    let verifier = Verifier::new(rules, NonZeroUsize::MIN).unwrap();
    world.pool.restore(&verifier, 1, NOW)
}

/// A world whose pool has a journal in a directory that is gone at the end.
fn journalled() -> (TempDir, World, [Wallet; 3]) {
    let directory = TempDir::new().unwrap();
    let (without, wallets) = World::of_three();
    let world = without.restarted(Config::default(), directory.path());
    assert_eq!(Restored::default(), restore(&world).unwrap());
    (directory, world, wallets)
}

fn segments(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).collect();
    paths.sort();
    paths
}

fn five(wallet: &Wallet, to: &Wallet) -> Vec<CheckedTx> {
    wallet.each(0..5, |it| it.transfer(to, 10))
}

/// The same with five transactions of the first wallet, of which the pool has so many.
fn journalled_with(count: usize) -> (TempDir, World, [Wallet; 3], Vec<CheckedTx>) {
    let (directory, world, wallets) = journalled();
    let txs = five(&wallets[0], &wallets[1]);
    world.pending(&txs[..count]);
    (directory, world, wallets, txs)
}

#[test]
fn accepted_transactions_survive_a_restart_in_order() {
    let (directory, world, [a, b, _]) = journalled();
    let txs = five(&a, &b);
    world.queued(&[&txs[4]]);
    world.pending(&[&txs[0], &b.at(0).transfer(&a, 1), &txs[1]]);
    let order = world.order();
    assert_eq!(4, world.pool.flush_journal().unwrap().written);
    assert_eq!(0, world.pool.flush_journal().unwrap().written);

    let again = world.restarted(Config::default(), directory.path());
    assert_eq!(Restored { records: 4, accepted: 4, damaged_bytes: 0 }, restore(&again).unwrap());
    assert_eq!(order, again.order());
    assert!(again.is_queued(&txs[4]));
    assert_eq!(1, segments(directory.path()).len());

    let third = again.restarted(Config::default(), directory.path());
    assert_eq!(4, restore(&third).unwrap().accepted);
    assert_eq!(order, third.order());
}

#[test]
fn what_was_written_survives_a_process_that_never_flushed() {
    let (directory, world, _, txs) = journalled_with(2);
    assert_eq!(2, world.pool.write_journal().unwrap());
    world.pending(&[&txs[2]]);
    assert_eq!(1, world.pool.write_journal().unwrap());
    assert_eq!(0, world.pool.flush_journal().unwrap().written);
    let order = world.order();

    let again = world.restarted(Config::default(), directory.path());
    assert_eq!(Restored { records: 3, accepted: 3, damaged_bytes: 0 }, restore(&again).unwrap());
    assert_eq!(order, again.order());
}

#[test]
fn what_is_in_a_block_does_not_come_back() {
    let (directory, world, _, txs) = journalled_with(3);
    world.pool.flush_journal().unwrap();
    world.commit(&[&txs[0], &txs[1]]);
    let again = world.restarted(Config::default(), directory.path());
    assert_eq!(1, restore(&again).unwrap().accepted);
    assert_eq!(vec![txs[2].hash()], again.order());
}

#[test]
fn what_was_dropped_does_not_come_back_in_place_of_what_was_accepted_since() {
    let (directory, world, [a, b, _]) = journalled();
    let (dropped, accepted) = (a.at(0).transfer(&b, 10), a.at(0).transfer(&b, 11));
    world.pending(&[&dropped]);
    world.pool.flush_journal().unwrap();
    world.pool.clear(NOW).unwrap();
    world.pending(&[&accepted]);
    world.pool.write_journal().unwrap();
    let again = world.restarted(Config::default(), directory.path());
    assert_eq!(Restored { records: 1, accepted: 1, damaged_bytes: 0 }, restore(&again).unwrap());
    assert_eq!(vec![accepted.hash()], again.order());
}

#[test]
fn what_the_operator_dropped_stays_dropped_unless_it_was_sent_again() {
    let (directory, world, _, txs) = journalled_with(2);
    world.pool.flush_journal().unwrap();
    world.pool.clear(NOW).unwrap();
    world.pending(&[&txs[0]]);
    world.pool.flush_journal().unwrap();
    let again = world.restarted(Config::default(), directory.path());
    assert_eq!(1, restore(&again).unwrap().accepted);
    assert_eq!(vec![txs[0].hash()], again.order());
    again.pool.clear(NOW).unwrap();
    again.pool.flush_journal().unwrap();
    let third = again.restarted(Config::default(), directory.path());
    assert_eq!(Restored::default(), restore(&third).unwrap());
}

#[test]
fn a_tombstone_lives_as_long_as_older_records() {
    let config = Config { count_max: 39, ..Config::default() };
    let directory = TempDir::new().unwrap();
    let (without, [a, b, c]) = World::of_three_with(config.clone());
    let world = without.restarted(config.clone(), directory.path());
    restore(&world).unwrap();
    let (survivor, short, long) =
        (c.at(5).transfer(&a, 1), b.at(5).transfer(&a, 1), b.at(9).transfer(&a, 1));
    world.queued(&[&survivor, &short, &long]);
    let blob = a.at(0).blob("x", 40 * BLOB_CHUNK_BYTES);
    world.pending(&[&blob]);
    // More than one segment.
    let chunk = |nonce| a.at(nonce).chunk("x", nonce - 1, BLOB_CHUNK_BYTES);
    let chunks: Vec<CheckedTx> = (1..=40).map(chunk).collect();
    world.pending(&chunks[..35]);
    world.pool.flush_journal().unwrap();
    // Makes room for itself.
    world.pending(&[&chunks[35]]);
    assert_eq!(Some(Code::PoolFull), world.drop_code(&long));
    world.commit(&[&blob, &chunks[0], &chunks[1], &chunks[2], &chunks[3]]);
    world.pending(&chunks[36..]);
    world.pool.flush_journal().unwrap();
    world.commit(&chunks[4..]);
    // Nothing of the second segment is in the pool any more, but the first has the survivor.
    world.pool.flush_journal().unwrap();
    let again = world.restarted(config, directory.path());
    restore(&again).unwrap();
    assert!(again.is_queued(&survivor) && again.is_queued(&short) && !again.is_queued(&long));
}

#[test]
fn a_journal_of_the_version_before_is_read() {
    let (directory, world, ..) = journalled_with(2);
    world.pool.flush_journal().unwrap();
    let path = segments(directory.path()).remove(0);
    let mut bytes = fs::read(&path).unwrap();
    bytes[..16].copy_from_slice(b"ombra-pool-log-1");
    fs::write(&path, &bytes).unwrap();
    let again = world.restarted(Config::default(), directory.path());
    assert_eq!(2, restore(&again).unwrap().accepted);
}

#[test]
fn what_leaves_before_a_flush_is_never_written() {
    let (directory, world, _, txs) = journalled_with(2);
    world.commit(&[&txs[0]]);
    assert_eq!(1, world.pool.flush_journal().unwrap().written);
    assert_eq!(1, segments(directory.path()).len());
}

#[test]
fn a_cut_off_tail_costs_only_the_last_record() {
    let (directory, world, _, txs) = journalled_with(3);
    world.pool.flush_journal().unwrap();
    let path = segments(directory.path()).remove(0);
    let whole = fs::read(&path).unwrap();
    for cut in [1, 40, 300] {
        fs::write(&path, &whole[..whole.len() - cut]).unwrap();
        let copy = TempDir::new().unwrap();
        fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
        let again = world.restarted(Config::default(), copy.path());
        let restored = restore(&again).unwrap();
        assert_eq!(2, restored.accepted);
        assert!(restored.damaged_bytes > 0);
        assert_eq!(vec![txs[0].hash(), txs[1].hash()], again.order());
    }
}

#[test]
fn a_flipped_byte_anywhere_costs_at_most_one_record() {
    let (directory, world, [a, b, _], _) = journalled_with(5);
    // A sender of its own, so that no lost nonce keeps it back.
    let last = b.at(0).transfer(&a, 1);
    world.pending(&[&last]);
    world.pool.flush_journal().unwrap();
    let path = segments(directory.path()).remove(0);
    let whole = fs::read(&path).unwrap();
    let last_record = whole.len() - last.encoded_bytes() - 24;
    for at in (16..whole.len()).step_by(37) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        let copy = TempDir::new().unwrap();
        fs::write(copy.path().join("00000000000000000001.journal"), &damaged).unwrap();
        let again = world.restarted(Config::default(), copy.path());
        let restored = restore(&again).unwrap();
        assert_eq!(5, restored.records, "flipped at {at}");
        assert_eq!(at < last_record, again.is_pending(&last), "flipped at {at}");
    }
}

#[test]
fn rubbish_in_a_segment_is_passed_over() {
    let (directory, world, _) = journalled();
    fs::write(directory.path().join("00000000000000000007.journal"), b"rubbish").unwrap();
    fs::write(directory.path().join("00000000000000000008.journal"), b"").unwrap();
    fs::write(directory.path().join("notes.txt"), b"not ours").unwrap();
    let again = world.restarted(Config::default(), directory.path());
    assert_eq!(0, restore(&again).unwrap().records);
    assert_eq!(vec![directory.path().join("notes.txt")], segments(directory.path()));
}

#[test]
fn a_journal_of_another_format_is_an_error_and_stays() {
    let (directory, world, _) = journalled();
    let path = directory.path().join("00000000000000000007.journal");
    fs::write(&path, b"ombra-pool-log-9 and more").unwrap();
    let again = world.restarted(Config::default(), directory.path());
    let error = restore(&again).unwrap_err().to_string();
    assert!(error.ends_with("is of a format that this version does not know"), "{error}");
    assert!(path.exists());
}

#[test]
fn a_changed_signature_does_not_come_back() {
    let (directory, world, [a, b, _]) = journalled();
    let forged = a.at(0).transfer(&b, 10);
    let text = forged.to_json();
    let signature = forged.signature().to_string();
    let other = a.at(0).transfer(&b, 11).signature().to_string();
    let tx = crate::support::trusted(&text.replace(&signature, &other));
    world.pending(&[&tx]);
    world.pool.flush_journal().unwrap();
    let again = world.restarted(Config::default(), directory.path());
    let restored = restore(&again).unwrap();
    assert_eq!((1, 0), (restored.records, restored.accepted));
}

#[test]
fn dead_segments_are_deleted() {
    let (directory, world, [a, b, _]) = journalled();
    let init = a.at(0).blob("x", 60 * BLOB_CHUNK_BYTES);
    world.pending(&[&init]);
    world.commit(&[&init]);
    // 60 chunks of half a megabyte of text: more than one segment.
    let chunk = |nonce| a.at(nonce).chunk("x", nonce - 1, BLOB_CHUNK_BYTES);
    let chunks: Vec<_> = (1..=60).map(chunk).collect();
    world.pending(&chunks);
    world.pool.flush_journal().unwrap();
    assert!(segments(directory.path()).len() > 1);
    for chunk in &chunks {
        world.commit(&[chunk]);
    }
    let keep = b.at(0).transfer(&a, 1);
    world.pending(&[&keep]);
    let flushed = world.pool.flush_journal().unwrap();
    assert!(flushed.segments_removed >= 1, "{flushed:?}");
    assert_eq!(1, segments(directory.path()).len());
}

#[test]
fn a_journal_that_is_mostly_dead_is_compacted() {
    let (directory, world, [a, b, _]) = journalled();
    let survivor = b.at(0).transfer(&a, 1);
    world.pending(&[&survivor]);
    let init = a.at(0).blob("x", 200 * BLOB_CHUNK_BYTES);
    world.pending(&[&init]);
    world.commit(&[&init]);
    let mut rewritten = 0;
    for nonce in 1..=200 {
        let chunk = a.at(nonce).chunk("x", nonce - 1, BLOB_CHUNK_BYTES);
        world.pending(&[&chunk]);
        let flushed = world.pool.flush_journal().unwrap();
        rewritten += flushed.rewritten;
        // A small survivor keeps every segment alive.
        if nonce % 20 == 0 {
            world.pending(&[&b.at(nonce / 20).transfer(&a, 1)]);
        }
        world.commit(&[&chunk]);
    }
    world.pool.flush_journal().unwrap();
    let size: u64 = segments(directory.path()).iter().map(|p| fs::metadata(p).unwrap().len()).sum();
    assert!(size <= 84 * 1024 * 1024 && rewritten > 0, "{size} bytes, {rewritten} rewritten");
    let again = world.restarted(Config::default(), directory.path());
    assert_eq!(11, restore(&again).unwrap().accepted);
    assert_eq!(world.order(), again.order());
}
