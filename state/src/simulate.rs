//! What a transaction would do, without doing it.

use std::collections::BTreeMap;
use std::sync::Arc;

use types::{Address, Amount, Body, CheckedTx, Run, Supply};

use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::execute::execute;
use crate::ledger::supply;
use crate::table::{Key, Table, decode_value};
use crate::tables::{Accounts, Runs, Supplies};
use crate::view::{self, Read};

/// The effects of one transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effects {
    /// Balances that change: before and after.
    pub balances: BTreeMap<Address, (Amount, Amount)>,
    /// The run that the transaction is about, as it would be.
    pub run: Option<Run>,
    /// What it burns.
    pub burned: Amount,
}

/// Executes a transaction on top of `base` and throws the result away.
///
/// # Errors
/// As [`execute`].
pub fn simulate(
    tx: &CheckedTx,
    base: &Arc<dyn Read>,
    ctx: &Context<'_>,
) -> Result<Effects, TxError> {
    let mut draft = Draft::for_simulation(Arc::clone(base));
    let about = tx.body().agent_run_id();
    // The transaction's own counts: what it burns, and the one escrow that it can change.
    let escrowed = match about {
        Some(id) => draft.get::<Runs>(&id)?.map_or(Amount::ZERO, |run| run.max_fee),
        None => Amount::ZERO,
    };
    // As much is bonded as can be taken out, and nothing if something is added.
    let bonded = if let Body::MinerUnbond(body) = tx.body() { body.amount } else { Amount::ZERO };
    draft.put::<Supplies>(&(), &Supply { escrowed, bonded, ..Supply::default() });
    execute(tx, &mut draft, ctx)?;
    let run = match about {
        Some(id) => draft.get::<Runs>(&id)?,
        None => None,
    };
    let burned = supply(&draft)?.burned;
    Ok(Effects { balances: changed_balances(draft, &**base)?, run, burned })
}

fn changed_balances(
    draft: Draft,
    base: &dyn Read,
) -> Result<BTreeMap<Address, (Amount, Amount)>, StorageError> {
    const BAD_KEY: StorageError = StorageError::Inconsistent { what: "a key has the wrong length" };
    let mut balances = BTreeMap::new();
    let rows = draft.into_changes().remove(&Accounts::ID).unwrap_or_default();
    for (key, value) in rows {
        let address = Address::from_bytes(&key).ok_or(BAD_KEY)?;
        let before = view::get::<Accounts>(base, &address)?.unwrap_or_default();
        let after = value.as_deref().map(decode_value::<Accounts>).transpose()?;
        let (before, after) = (before.balance, after.unwrap_or_default().balance);
        if before != after {
            balances.insert(address, (before, after));
        }
    }
    Ok(balances)
}
