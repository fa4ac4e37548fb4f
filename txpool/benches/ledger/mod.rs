//! A ledger that does almost nothing, so that figures are the pool's own.

#![expect(clippy::disallowed_types, reason = "a ledger for keyed look-ups only")]

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use txpool::ports::{AdmitError, Chain, EventSink, Extent, PendingLedger};
use txpool::{Fault, PoolEvent, Ports};
use types::{Account, Address, Amount, BondChange, CheckedTx, Hash};

/// Counts nonces and nothing else.
#[derive(Default)]
struct Nonces(HashMap<Address, u64>);

impl PendingLedger for Nonces {
    fn account(&self, address: Address) -> Result<Account, Fault> {
        let nonce = self.0.get(&address).copied().unwrap_or(0);
        Ok(Account { balance: Amount::MAX, nonce })
    }

    fn check(&self, _: &CheckedTx, _: Extent) -> Result<(), AdmitError> {
        Ok(())
    }

    fn admit(&mut self, tx: &CheckedTx) -> Result<(), AdmitError> {
        self.0.insert(tx.from(), tx.nonce() + 1);
        Ok(())
    }

    fn advance(
        &mut self,
        _: &BTreeMap<Address, Amount>,
        _: &BTreeMap<Address, BondChange>,
    ) -> Result<bool, Fault> {
        Ok(true)
    }

    fn reset(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

struct Nothing;

impl Chain for Nothing {
    fn is_included(&self, _: Hash) -> Result<bool, Fault> {
        Ok(false)
    }
}

impl EventSink for Nothing {
    fn executable(&self) {}

    fn publish(&self, _: Vec<PoolEvent>) {}
}

/// What a pool needs, without a chain.
pub(crate) fn ports() -> Ports {
    Ports {
        ledger: Box::new(Nonces::default()),
        chain: Arc::new(Nothing),
        events: Arc::new(Nothing),
    }
}
