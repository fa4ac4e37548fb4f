//! What a lying peer offers.

use std::fs;

use store::snapshots::{ImportError, Intake, Offer, OfferError};
use tempfile::TempDir;
use types::Hash;

use super::busy::Busy;
use crate::fixture::data;
use crate::peers::{fetch, fill};

/// A small chain: an open run, a changed set of validators, turns, a complete and an open blob.
fn chain() -> (TempDir, Busy) {
    let dir = tempfile::tempdir().unwrap();
    let mut busy = Busy::new(&data(&dir));
    for acts in [[0x10, 0xcd, 0x0a, 0x0b].as_slice(), &[0x6b, 0x32, 0x09], &[0x0a, 0x0b, 0x34], &[]]
    {
        busy.block(acts);
    }
    (dir, busy)
}

#[test]
fn an_offer_with_any_changed_bit_leads_nowhere() {
    let (dir, mut busy) = chain();
    let (snapshot_store, offer) = busy.offered(&dir.path().join("snapshot_store"));
    assert!(!offer.links.is_empty(), "the validators changed");
    let good = offer.encode();
    let mut refused = 0;
    for place in 0..good.len() {
        let mut bytes = good.clone();
        bytes[place] ^= 1 << (place % 8);
        let verified = Offer::decode(&bytes).and_then(|offer| busy.verified(&offer));
        let Ok(verified) = verified else {
            refused += 1;
            continue;
        };
        // How many rows and bytes a chunk has, and the hashes of extras, are covered by no root: with
        // another number or hash some chunk does not fit.
        let folder = dir.path().join(format!("intake-{place}"));
        let intake = Intake::open(&folder, &verified.offer.manifest).unwrap();
        let is_harmless = verified.offer.manifest == offer.manifest;
        let fits = intake.missing().iter().all(|want| {
            let chunk = offer.manifest.parts.iter().map(|part| (part.hash, part.bytes));
            let extra = offer.manifest.extras.iter().map(|extra| (extra.hash, extra.bytes));
            let known = chunk.chain(extra).find(|(hash, _)| *hash == want.hash);
            known.is_some_and(|(hash, bytes)| {
                intake.keep(want, &fetch(&snapshot_store, &hash, bytes)).is_ok()
            })
        });
        assert_eq!(fits, is_harmless, "the bit in byte {place} of {}", good.len());
    }
    assert!(refused > good.len() * 3 / 4, "{refused} of {}", good.len());
    for length in 0..good.len() {
        Offer::decode(&good[..length]).expect_err("cut off");
    }
}

#[test]
fn a_chunk_with_any_changed_bit_is_refused_before_it_is_kept() {
    let (dir, mut busy) = chain();
    let (snapshot_store, offer) = busy.offered(&dir.path().join("snapshot_store"));
    let (_, intake) = busy.intake(&offer, dir.path());
    for want in intake.missing() {
        let good = fetch(&snapshot_store, &want.hash, want.bytes);
        let refuse = |bytes: &[u8]| {
            let error = intake.keep(&want, bytes).expect_err("it was kept");
            assert!(matches!(error, ImportError::Offer(_)), "{error}");
        };
        let step = (good.len() / 600).max(1);
        for place in (0..good.len()).step_by(step) {
            let mut bytes = good.clone();
            bytes[place] ^= 1 << (place % 8);
            refuse(&bytes);
        }
        refuse(&good[..good.len() - 1]);
        refuse(&[good.as_slice(), &[0]].concat());
        assert_eq!(fs::read_dir(dir.path().join("intake")).unwrap().count(), 0);
    }
}

type Lie = fn(&mut Vec<u8>);

/// Another extra in the place of an honest one, with its right hash.
fn with_extra(offer: &Offer, lie: Lie, mut bytes: Vec<u8>) -> (Offer, Vec<u8>) {
    lie(&mut bytes);
    let mut offer = offer.clone();
    let extra = &mut offer.manifest.extras[0];
    extra.hash = Hash::digest(&bytes);
    extra.bytes = u64::try_from(bytes.len()).unwrap();
    (offer, bytes)
}

#[test]
fn bytes_of_a_complete_blob_that_are_not_its_own_are_found_before_there_is_a_database() {
    let (dir, mut busy) = chain();
    let (snapshot_store, honest) = busy.offered(&dir.path().join("snapshot_store"));
    let extra = honest.manifest.extras[0];
    let bytes = fetch(&snapshot_store, &extra.hash, extra.bytes);
    // The first row is chunk 0 of the first blob, which is complete.
    let lies: [(&str, Lie); 2] = [
        ("another byte", |bytes| bytes[1_000] ^= 1),
        ("a row less", |bytes| {
            let key = usize::try_from(u32::from_le_bytes(bytes[1..5].try_into().unwrap())).unwrap();
            let at = 5 + key;
            let value = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            bytes.drain(..at + 4 + usize::try_from(value).unwrap());
        }),
    ];
    for (name, lie) in lies {
        let (offer, bytes) = with_extra(&honest, lie, bytes.clone());
        let verified = busy.intake(&offer, dir.path());
        let (_, intake) = &verified;
        for want in intake.missing() {
            let is_lie = want.hash == offer.manifest.extras[0].hash;
            let chunk =
                if is_lie { bytes.clone() } else { fetch(&snapshot_store, &want.hash, want.bytes) };
            intake.keep(&want, &chunk).unwrap();
        }
        let error = busy.import(&verified, dir.path(), &mut |_, _| true).unwrap_err();
        assert!(matches!(&error, ImportError::Offer(OfferError::Extras { .. })), "{name}: {error}");
        assert!(!dir.path().join("new").exists(), "{name}");
    }
}

type Change = fn(&mut Offer);

#[test]
fn a_link_cannot_be_left_out_doubled_or_moved() {
    let (dir, mut busy) = chain();
    busy.block(&[0x7d]);
    busy.block(&[]);
    busy.block(&[]);
    let (_, honest) = busy.offered(&dir.path().join("snapshot_store"));
    assert!(honest.links.len() >= 2, "{}", honest.links.len());
    let changes: [(&str, Change); 5] = [
        ("the certificate of block", |offer| drop(offer.links.remove(0))),
        ("the certificate of block", |offer| drop(offer.links.pop())),
        ("the change of validators", |offer| offer.links.insert(0, offer.links[0].clone())),
        ("the certificate of block", |offer| offer.links.swap(0, 1)),
        ("the header of block", |offer| std::mem::swap(&mut offer.header, &mut offer.next_header)),
    ];
    busy.verified(&honest).unwrap();
    for (at, (wrong, change)) in changes.into_iter().enumerate() {
        let mut offer = honest.clone();
        change(&mut offer);
        let refused = busy.verified(&offer).expect_err("it was believed").to_string();
        assert!(refused.starts_with(wrong), "change {at}: {refused}");
    }
}

#[test]
fn a_file_that_was_damaged_on_the_disk_is_fetched_again() {
    let (dir, mut busy) = chain();
    let (snapshot_store, offer) = busy.offered(&dir.path().join("snapshot_store"));
    let verified = busy.intake(&offer, dir.path());
    fill(&verified.1, &snapshot_store);
    let path = dir.path().join("intake").join(offer.manifest.extras[0].hash.to_string());
    let mut bytes = fs::read(&path).unwrap();
    bytes[0] ^= 1;
    fs::write(&path, bytes).unwrap();
    let error = busy.import(&verified, dir.path(), &mut |_, _| true).unwrap_err();
    assert!(matches!(error, ImportError::Missing { .. }), "{error}");
    assert_eq!(fill(&verified.1, &snapshot_store), 1);
    busy.import(&verified, dir.path(), &mut |_, _| true).unwrap();
}
