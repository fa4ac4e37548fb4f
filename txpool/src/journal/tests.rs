//! A disk that fails, which no test from outside can make.

use std::os::fd::OwnedFd;

use types::build::{Envelope, build_tx};
use types::{Address, CheckedTx, Keypair};

use crate::{Config, JournalError, Pool};

#[path = "../../benches/ledger/mod.rs"]
mod ledger;

fn first_of(number: u8) -> CheckedTx {
    let body = fixtures::transfer(Address::default(), 0);
    let text = build_tx(&Keypair::from_seed(&[number; 32]), &body, &Envelope::new(0, 1, None));
    CheckedTx::trust(fixtures::parsed(&text))
}

#[test]
fn a_full_segment_that_cannot_be_synced_is_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let ports = ledger::ports(None);
    let pool = Pool::with_journal(Config::default(), 1, ports, directory.path()).unwrap();
    pool.core().journal().1.turn_on();
    pool.submit(&[first_of(1)], 1).remove(0).unwrap();
    assert_eq!(1, pool.write_journal().unwrap());

    // A pipe can be written but not synced.
    let (_reader, writer) = std::io::pipe().unwrap();
    pool.journal.as_ref().unwrap().lock().fill_current(OwnedFd::from(writer).into());
    pool.submit(&[first_of(2)], 1).remove(0).unwrap();
    let error = pool.write_journal().unwrap_err();
    assert!(matches!(error, JournalError::Io { action: "sync", .. }), "{error}");
    // Nobody knows what of the first one is on the disk.
    assert_eq!(2, pool.write_journal().unwrap());
    assert_eq!(2, std::fs::read_dir(directory.path()).unwrap().count());
}
