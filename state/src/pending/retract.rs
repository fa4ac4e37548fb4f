//! Taking an admitted transaction back, without executing the others again (from v7 on).
//!
//! What a transaction did to accounts is a sum, so it can be taken away whatever came between; but not
//! from an account that could not pay for everything that it sent without what it was paid. Of any other
//! row the value of before is kept, and it is right as long as nobody has written the row since:
//! whoever has builds on the transaction, and must be taken back first.

use std::collections::HashMap;

use types::{Account, Address, Amount, BondChange, CheckedTx, Hash};

use super::{PendingState, Writers};
use crate::bonds;
use crate::draft::{Draft, RowId, Written};
use crate::error::StorageError;
use crate::table::{Key, Table, decode_value, encode_value};
use crate::tables::{Accounts, Bonds};

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

/// What takes a transaction's effects away again.
#[derive(Default)]
pub(super) struct Undo {
    /// What it took from its sender, whatever that got by it.
    debit: u128,
    /// By how much it changed which balance.
    balances: Vec<(Address, i128)>,
    /// What the draft had for a row that another admitted transaction had written before.
    before: Vec<(RowId, Option<Vec<u8>>)>,
}

impl Undo {
    /// What the writes that `draft` has noted changed. `writers` are those of before.
    /// `left` is what its sender had after paying.
    pub(super) fn of(
        sender: Address,
        left: Amount,
        draft: &Draft,
        writers: &HashMap<RowId, Writers>,
    ) -> Result<Self, StorageError> {
        let (mut undo, written) = (Self::default(), draft.written());
        for (position, Written { row, before }) in written.iter().enumerate() {
            let earlier = written.get(..position).unwrap_or_default();
            if earlier.iter().any(|write| write.row == *row) {
                continue;
            }
            if row.0 == Accounts::ID {
                let (address, before) = undo.note_account(&row.1, before.as_ref(), draft)?;
                if address == sender {
                    undo.debit = u128::from(before.get().saturating_sub(left.get()));
                }
            } else if let Some(before) = before
                && writers.contains_key(row)
            {
                undo.before.push((row.clone(), before.clone()));
            }
        }
        Ok(undo)
    }

    fn note_account(
        &mut self,
        key: &[u8],
        before: Option<&Option<Vec<u8>>>,
        draft: &Draft,
    ) -> Result<(Address, Amount), StorageError> {
        let before = match before {
            Some(before) => before.as_deref().map(decode_value::<Accounts>).transpose()?,
            None => draft.below::<Accounts>(key)?,
        };
        let address = <Address as Key>::from_bytes(key)
            .ok_or(StorageError::Inconsistent { what: "the key of an account" })?;
        let after = draft.get::<Accounts>(&address)?;
        let balance = |account: Option<Account>| account.unwrap_or_default().balance;
        let (before, after) = (balance(before), balance(after));
        let change = i128::from(after.get()).saturating_sub(i128::from(before.get()));
        self.balances.push((address, change));
        Ok((address, before))
    }

    pub(super) const fn debit(&self) -> u128 {
        self.debit
    }

    /// A block has changed the bond that is the row.
    pub(super) fn follow_bond(
        &mut self,
        row: &RowId,
        change: BondChange,
    ) -> Result<(), StorageError> {
        for (_, before) in self.before.iter_mut().filter(|(other, _)| other == row) {
            let bond = before.as_deref().map(decode_value::<Bonds>).transpose()?;
            let bond = bonds::after(&bond.unwrap_or_default(), change)?;
            *before = Some(encode_value::<Bonds>(&bond));
        }
        Ok(())
    }
}

/// The transaction takes nothing from its sender any more.
pub(super) fn take_debit(debits: &mut HashMap<Address, u128>, sender: Address, undo: &Undo) {
    if let Some(sum) = debits.get_mut(&sender) {
        *sum = sum.saturating_sub(undo.debit);
        if *sum == 0 {
            debits.remove(&sender);
        }
    }
}

/// Whether nobody else has written the row; the transaction is one of its writers no more.
pub(super) fn is_last_of(writers: &mut HashMap<RowId, Writers>, row: &RowId, tx: Hash) -> bool {
    let Some(those) = writers.get_mut(row) else { return false };
    those.count = those.count.saturating_sub(1);
    if let Some(place) = those.order.iter().position(|hash| *hash == tx) {
        those.order.remove(place);
    }
    let is_last = those.count == 0;
    if is_last {
        writers.remove(row);
    }
    is_last
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
        let draft =
            std::sync::Arc::get_mut(&mut self.draft).expect("no simulation outlives its call");
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
        drop(draft.take_written());
    }
}
