//! What the admitted transactions did to the draft, and what takes it away again.

use std::collections::HashMap;

use types::{Address, Amount, BondChange, Hash};

use crate::bonds;
use crate::draft::RowId;
use crate::error::StorageError;
use crate::table::{decode_value, encode_value};
use crate::tables::Bonds;
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
    /// What a transaction did to accounts, which were credited with so much by it.
    pub(super) fn of(payer: &Payer, credited: Vec<(Address, Amount)>) -> Self {
        let debit = u128::from(payer.had.get().saturating_sub(payer.left.get()));
        let paid = i128::try_from(debit).unwrap_or(i128::MAX).saturating_neg();
        let mut balances = Vec::with_capacity(credited.len().saturating_add(1));
        balances.push((payer.address, paid));
        for (address, amount) in credited {
            let amount = i128::from(amount.get());
            match balances.iter_mut().find(|(known, _)| *known == address) {
                Some((_, change)) => *change = change.saturating_add(amount),
                None => balances.push((address, amount)),
            }
        }
        Self { debit, balances, before: Vec::new() }
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

/// One more transaction has written the row; its hash is kept where the order counts. Answers whether an
/// earlier one has written it.
pub(super) fn add_writer(
    all: &mut HashMap<RowId, Writers>,
    row: &RowId,
    hash: Option<Hash>,
) -> bool {
    // Most rows have been written before. Their names are not copied once more.
    if let Some(writers) = all.get_mut(row) {
        writers.count = writers.count.saturating_add(1);
        writers.order.extend(hash);
        return true;
    }
    all.insert(row.clone(), Writers { count: 1, order: hash.into_iter().collect() });
    false
}
