//! A ledger that does almost nothing, so that figures are the pool's own.

#![expect(clippy::disallowed_types, reason = "a ledger for keyed look-ups only")]

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use txpool::ports::{
    AdmitError, Extent, PendingLedger, PhasedDraft, PricedDraft, ReadyDraft, TakenBack,
};
use txpool::{PoolFault, Ports};
use types::{Account, Address, Amount, BondChange, CheckedTx, Rejection};

mod nothing;

use nothing::Nothing;

/// Counts nonces and nothing else.
#[derive(Default)]
struct Nonces {
    next: HashMap<Address, u64>,
    base_fee: Option<u64>,
}

impl PricedDraft for Nonces {
    fn take_back(&mut self, tx: &CheckedTx) -> Result<TakenBack, PoolFault> {
        self.next.insert(tx.from(), tx.nonce());
        Ok(TakenBack::Yes)
    }

    fn base_fee(&self) -> Option<u64> {
        self.base_fee
    }

    fn highest_base_fee(&self, tx: &CheckedTx) -> Option<u64> {
        tx.bid().ok().map(|bid| bid.highest().get())
    }

    fn is_late(&self, _: &CheckedTx) -> bool {
        false
    }

    fn check_base_fee(&self, _: &CheckedTx) -> Result<(), Rejection> {
        Ok(())
    }
}

impl ReadyDraft for Nonces {
    fn stands_alone(&self, _: &CheckedTx, _: &[CheckedTx]) -> Result<bool, PoolFault> {
        Ok(true)
    }

    fn check_lowest_fee(&self, _: &CheckedTx) -> Result<(), Rejection> {
        Ok(())
    }
}

impl PhasedDraft for Nonces {
    fn is_early(&self, _: &CheckedTx) -> Result<bool, PoolFault> {
        Ok(false)
    }

    fn check_form(&self, _: &CheckedTx) -> Result<(), Rejection> {
        Ok(())
    }
}

impl PendingLedger for Nonces {
    fn account(&self, address: Address) -> Result<Account, PoolFault> {
        let nonce = self.next.get(&address).copied().unwrap_or(0);
        Ok(Account { balance: Amount::MAX, nonce })
    }

    fn check(&self, _: &CheckedTx, _: Extent) -> Result<(), AdmitError> {
        Ok(())
    }

    fn admit(&mut self, tx: &CheckedTx) -> Result<(), AdmitError> {
        self.next.insert(tx.from(), tx.nonce().saturating_add(1));
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

/// What a pool needs, without a chain; from v7 on with a base fee.
pub(crate) fn ports(base_fee: Option<u64>) -> Ports {
    Ports {
        ledger: Box::new(Nonces { base_fee, ..Nonces::default() }),
        chain: Arc::new(Nothing),
        events: Arc::new(Nothing),
    }
}
