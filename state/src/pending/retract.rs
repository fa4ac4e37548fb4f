//! Taking an admitted transaction back, without executing the others again (from v7 on).
//!
//! What a transaction did to accounts is a sum, so it can be taken away whatever came between; but not
//! from an account that could not pay for everything that it sent without what it was paid. Of any other
//! row the value of before is kept, and it is right as long as nobody has written the row since:
//! whoever has builds on the transaction, and must be taken back first.

use std::sync::Arc;

use types::{Account, Address, Amount, CheckedTx, Hash};

use super::admitted::{Undo, is_last_of, take_debit};
use super::state::PendingState;
use crate::draft::RowId;
use crate::error::StorageError;
use crate::table::{Key, Table};
use crate::tables::Accounts;

/// What came of taking a transaction back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retracted {
    /// The draft is as if it had never been admitted.
    Yes,
    /// Nothing has changed: this transaction builds on it and must be taken back first.
    After(Hash),
    /// Nothing has changed: this account was paid by it and may have spent that, so what the account
    /// sent last must be taken back first.
    Spent(Address),
    /// Nothing has changed: it is not known what the draft would be without it, so the draft would have
    /// to be begun anew.
    Unknown,
}

impl PendingState {
    /// Takes back the admitted transaction of its sender with the highest nonce. From v7 on.
    ///
    /// What only reads what the transaction wrote, such as a turn that names it as its parent, is not
    /// found; it fails when it is executed.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    ///
    /// # Panics
    /// Never: no simulation outlives its call.
    pub fn retract(&mut self, tx: &CheckedTx) -> Result<Retracted, StorageError> {
        let (hash, sender) = (tx.hash(), tx.from());
        if self.account(sender)?.nonce != tx.nonce().saturating_add(1) {
            return Ok(Retracted::Unknown);
        }
        let Some(admitted) = self.admitted.get(&hash).filter(|_| self.rules.is_v7()) else {
            return Ok(Retracted::Unknown);
        };
        if let Some(obstacle) = self.obstacle(hash, &admitted.rows, &admitted.undo) {
            return Ok(obstacle);
        }
        let mut accounts = Vec::with_capacity(admitted.undo.balances.len());
        for (address, change) in &admitted.undo.balances {
            let account = self.account(*address)?;
            let balance = i128::from(account.balance.get()).saturating_sub(*change);
            let is_paid = *address != sender && *change > 0;
            if balance < 0 || is_paid && !self.pays_by_itself(*address)? {
                return Ok(Retracted::Spent(*address));
            }
            let Ok(balance) = u64::try_from(balance) else { return Ok(Retracted::Unknown) };
            let nonce = if *address == sender { tx.nonce() } else { account.nonce };
            accounts.push((*address, Account { balance: Amount::new(balance), nonce }));
        }
        self.take_away(tx, accounts);
        Ok(Retracted::Yes)
    }

    /// Whether the account could pay for everything that it sent without what others sent.
    fn pays_by_itself(&self, address: Address) -> Result<bool, StorageError> {
        let Some(debits) = self.debits.get(&address) else { return Ok(true) };
        let account = self.draft.below::<Accounts>(&address.to_bytes())?.unwrap_or_default();
        Ok(u128::from(account.balance.get()) >= *debits)
    }

    /// What keeps the transaction from being taken back, but for balances.
    fn obstacle(&self, hash: Hash, rows: &[RowId], undo: &Undo) -> Option<Retracted> {
        for row in rows.iter().filter(|(table, _)| *table != Accounts::ID) {
            let Some(writers) = self.writers.get(row) else { return Some(Retracted::Unknown) };
            let last = writers.order.last().copied();
            if let Some(last) = last.filter(|last| *last != hash) {
                return Some(Retracted::After(last));
            }
            if writers.count > 1 && !undo.before.iter().any(|(known, _)| known == row) {
                return Some(Retracted::Unknown);
            }
        }
        None
    }

    fn take_away(&mut self, tx: &CheckedTx, accounts: Vec<(Address, Account)>) {
        let Some(admitted) = self.admitted.remove(&tx.hash()) else { return };
        let draft = Arc::get_mut(&mut self.draft).expect("no simulation outlives its call");
        self.changes = self.changes.wrapping_add(1);
        take_debit(&mut self.debits, tx.from(), &admitted.undo);
        for (address, account) in accounts {
            draft.put::<Accounts>(&address, &account);
        }
        for (row, before) in admitted.undo.before {
            draft.restore(&row, before);
        }
        for row in admitted.rows {
            if is_last_of(&mut self.writers, &row, tx.hash()) {
                draft.forget(&row);
            }
        }
        // These writes belong to no transaction.
        drop(draft.take_notes());
    }
}
