//! What the first block of a fork writes, and the values of parameters that begin to hold in a block.

use types::Fork;

use crate::chain::ChainRules;
use crate::draft::Draft;
use crate::error::StorageError;
use crate::params::CHANGEABLE;
use crate::rules::{Rules, V7, V8, rows};
use crate::tables::{FeeRow, Fees, FixedFork, ForkRows, ParamRow, ParamRows};
use crate::validators;
use crate::view;

/// What happens before the transactions of a block: block v7 writes the rows that later ones read, and
/// parameters take the values that were voted for this height.
pub(crate) fn begin_block(
    draft: &mut Draft,
    chain: &ChainRules,
    rules: &Rules,
    height: u64,
) -> Result<(), StorageError> {
    if !rules.is_v7() {
        return Ok(());
    }
    if !view::contains::<ForkRows>(draft, &V7.to_owned())? {
        return activate(draft, chain, rules, height);
    }
    if height == rules.forks.v8_from() {
        put_params(draft, rules, Fork::V8);
    }
    for (name, row) in rows(draft)? {
        if row.next.is_some_and(|next| next.height <= height) {
            draft.put::<ParamRows>(&name, &ParamRow { value: row.at(height), next: None });
        }
    }
    Ok(())
}

/// Writes the rows of v7, and those of v8 if both begin in the same block.
pub(crate) fn activate(
    draft: &mut Draft,
    chain: &ChainRules,
    rules: &Rules,
    height: u64,
) -> Result<(), StorageError> {
    let fixed = FixedFork { height: rules.forks.v7_from(), since: height };
    draft.put::<ForkRows>(&V7.to_owned(), &fixed);
    put_params(draft, rules, Fork::V7);
    if let Some(v8) = rules.forks.v8 {
        let fixed = FixedFork { height: v8, since: height };
        draft.put::<ForkRows>(&V8.to_owned(), &fixed);
        if height == v8 {
            put_params(draft, rules, Fork::V8);
        }
    }
    draft.put::<Fees>(&(), &FeeRow { base_fee: rules.params.base_fee_floor });
    if validators::sets(draft)?.is_none() {
        validators::put_first(draft, chain.validators.iter().copied());
    }
    validators::drop_unaccepted(draft)
}

/// Writes the parameters of a fork, with their values by genesis.
fn put_params(draft: &mut Draft, rules: &Rules, fork: Fork) {
    for param in CHANGEABLE.iter().filter(|param| param.fork == fork) {
        let row = ParamRow { value: param.get(&rules.params), next: None };
        draft.put::<ParamRows>(&param.name.to_owned(), &row);
    }
}
