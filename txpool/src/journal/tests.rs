//! A disk that fails, which no test from outside can make.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use types::build::{Envelope, build_tx};
use types::{Account, Address, Amount, BondChange, CheckedTx, Hash, Keypair, Rejection};

use crate::ports::{
    AdmitError, CommittedChain, EventSink, Extent, PendingLedger, PhasedDraft, PricedDraft,
    TakenBack,
};
use crate::{Config, JournalError, Pool, PoolEvent, PoolFault, Ports};

/// Takes everything.
struct Anything;

impl PricedDraft for Anything {
    fn take_back(&mut self, _: &CheckedTx) -> Result<TakenBack, PoolFault> {
        Ok(TakenBack::Yes)
    }

    fn base_fee(&self) -> Option<u64> {
        None
    }

    fn highest_base_fee(&self, _: &CheckedTx) -> Option<u64> {
        None
    }

    fn is_late(&self, _: &CheckedTx) -> bool {
        false
    }

    fn check_base_fee(&self, _: &CheckedTx) -> Result<(), Rejection> {
        Ok(())
    }
}

impl PhasedDraft for Anything {
    fn is_early(&self, _: &CheckedTx) -> Result<bool, PoolFault> {
        Ok(false)
    }

    fn check_form(&self, _: &CheckedTx) -> Result<(), Rejection> {
        Ok(())
    }
}

impl PendingLedger for Anything {
    fn account(&self, _: Address) -> Result<Account, PoolFault> {
        Ok(Account::default())
    }

    fn check(&self, _: &CheckedTx, _: Extent) -> Result<(), AdmitError> {
        Ok(())
    }

    fn admit(&mut self, _: &CheckedTx) -> Result<(), AdmitError> {
        Ok(())
    }

    fn advance(
        &mut self,
        _: &BTreeMap<Address, Amount>,
        _: &BTreeMap<Address, BondChange>,
    ) -> Result<bool, PoolFault> {
        Ok(true)
    }

    fn reset(&mut self) -> Result<(), PoolFault> {
        Ok(())
    }
}

impl CommittedChain for Anything {
    fn is_included(&self, _: Hash) -> Result<bool, PoolFault> {
        Ok(false)
    }
}

impl EventSink for Anything {
    fn publish(&self, _: Vec<PoolEvent>) {}

    fn executable(&self) {}
}

fn first_of(number: u8) -> CheckedTx {
    let body = fixtures::transfer(Address::default(), 0);
    let text = build_tx(&Keypair::from_seed(&[number; 32]), &body, &Envelope::new(0, 1, None));
    CheckedTx::trust(fixtures::parsed(&text))
}

#[test]
fn a_full_segment_that_cannot_be_synced_is_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let (ledger, chain) = (Box::new(Anything), Arc::new(Anything));
    let ports = Ports { ledger, chain, events: Arc::new(Anything) };
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
