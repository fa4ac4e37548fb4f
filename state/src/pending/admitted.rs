//! What the admitted transactions did to the draft, and what takes it away again.

use std::collections::HashMap;

use types::{Account, Address, Amount, BondChange, Hash};

use crate::bonds;
use crate::draft::{Draft, RowId, Written};
use crate::error::StorageError;
use crate::table::{Key, Table, decode_value, encode_value};
use crate::tables::{Accounts, Bonds};
use crate::tx::envelope::Charge;

/// A transaction in the draft.
pub(super) struct Admitted {
    /// The rows that it wrote.
    pub(super) rows: Vec<RowId>,
    pub(super) charge: Charge,
    /// What takes its effects away again. Nothing before v7.
    pub(super) undo: Undo,
}

/// The admitted transactions that wrote a row.
#[derive(Default)]
pub(super) struct Writers {
    pub(super) count: u32,
    /// From v7 on their hashes, in the order of admission. Not of accounts: what transactions do to
    /// these does not depend on their order.
    pub(super) order: Vec<Hash>,
}

/// Who sent a transaction, and what it cost.
pub(super) struct Payer {
    pub(super) address: Address,
    /// What the sender had before the transaction.
    pub(super) had: Amount,
    /// What the sender had left after paying, and before what it got by the transaction.
    pub(super) left: Amount,
}

/// What takes a transaction's effects away again.
#[derive(Default)]
pub(super) struct Undo {
    /// What it took from its sender, whatever that got by it.
    debit: u128,
    /// By how much it changed which balance.
    pub(super) balances: Vec<(Address, i128)>,
    /// What the draft had for a row that another admitted transaction had written before.
    pub(super) before: Vec<(RowId, Option<Vec<u8>>)>,
}

impl Undo {
    /// What the writes that `draft` has noted changed. `writers` are those of before.
    pub(super) fn of(
        payer: &Payer,
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
                undo.note_account(&row.1, before.as_ref(), payer, draft)?;
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
        payer: &Payer,
        draft: &Draft,
    ) -> Result<(), StorageError> {
        let address = <Address as Key>::from_bytes(key)
            .ok_or(StorageError::Inconsistent { what: "the key of an account" })?;
        let balance = |account: Option<Account>| account.unwrap_or_default().balance;
        let before = if address == payer.address {
            // The check has read it already: the database is not asked once more.
            self.debit = u128::from(payer.had.get().saturating_sub(payer.left.get()));
            payer.had
        } else {
            balance(match before {
                Some(before) => before.as_deref().map(decode_value::<Accounts>).transpose()?,
                None => draft.below::<Accounts>(key)?,
            })
        };
        let after = balance(draft.get::<Accounts>(&address)?);
        let change = i128::from(after.get()).saturating_sub(i128::from(before.get()));
        self.balances.push((address, change));
        Ok(())
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

/// One more transaction has written the row; its hash is kept where the order counts.
pub(super) fn add_writer(all: &mut HashMap<RowId, Writers>, row: &RowId, hash: Option<Hash>) {
    // Most rows have been written before. Their names are not copied once more.
    if let Some(writers) = all.get_mut(row) {
        writers.count = writers.count.saturating_add(1);
        writers.order.extend(hash);
        return;
    }
    all.insert(row.clone(), Writers { count: 1, order: hash.into_iter().collect() });
}
