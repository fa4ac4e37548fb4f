//! The rules of one block: the numbers of the protocol as they are then, which forks are active, and
//! what a place in the block costs.
//!
//! ```text
//!   genesis ─────────────┐
//!   votes counted before ├─▶ height of v7 ──▶ block v7 writes forks, params, fees (and validators)
//!   v7 (state::forks)    ┘                    later blocks read them, votes change them
//!
//!   genesis ─▶ block v7 writes ─▶ height of v8 ──▶ block v8 writes its params
//!              the fork's row
//! ```
//!
//! Before v7 the rules are those of genesis. A block reads them once, before its transactions.

use types::sign_bytes::Domain;
use types::{Fork, Forks, Params};

use crate::chain::ChainRules;
use crate::error::StorageError;
use crate::fees::Price;
use crate::params::Changeable;
use crate::tables::{Fees, FixedForks, ForkRows, ParamRow, ParamRows};
use crate::view::{self, Range, Read};

/// The name of the fork under which these rows stand.
pub const V7: &str = Fork::V7.name();

/// The name of the fork of the agent market.
pub const V8: &str = Fork::V8.name();

/// The rules of one block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rules {
    /// The numbers of the protocol.
    pub params: Params,
    /// The same with the values that were voted for and hold later: what a vote on one of them must fit
    /// to.
    pub decided: Params,
    /// The heights of the forks, as far as they are fixed.
    pub forks: Forks,
    /// What separates the signatures of this chain's validators from those of others'.
    pub domain: Domain,
    /// What a place in the block costs; none before v7.
    pub price: Option<Price>,
}

impl Rules {
    /// The rules of block `height`, on the state of the block before.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn at(chain: &ChainRules, state: &dyn Read, height: u64) -> Result<Self, StorageError> {
        let v7 = v7_from(chain, state)?;
        let forks = Forks { v7, v8: v8_from(chain, state)?, ..chain.forks };
        let mut params = chain.params.clone();
        let domain = Domain {
            chain_id: chain.chain_id.as_str().into(),
            genesis_hash: chain.genesis_hash,
            v7_from: v7,
        };
        if height < forks.v7_from() {
            return Ok(Self { decided: params.clone(), params, forks, domain, price: None });
        }
        let rows = rows(state)?;
        let decided = with(&params, &rows, u64::MAX);
        params = with(&params, &rows, height);
        let base_fee = match view::get::<Fees>(state, &())? {
            Some(fees) => fees.base_fee,
            // The block that writes the row.
            None => params.base_fee_floor,
        };
        Ok(Self { params, decided, forks, domain, price: Some(Price::of_block(base_fee)) })
    }

    /// The same rules with the price that a block takes, if these are the pool's.
    #[must_use]
    pub(crate) fn of_block(&self) -> Self {
        let price = self.price.map(|price| Price::of_block(price.base_fee));
        Self { price, ..self.clone() }
    }

    /// Whether the rules of v7 hold.
    #[must_use]
    pub const fn is_v7(&self) -> bool {
        self.price.is_some()
    }

    /// Whether the rules of v8 hold in a block.
    #[must_use]
    pub const fn is_v8(&self, height: u64) -> bool {
        height >= self.forks.v8_from()
    }
}

/// The first block with the rules of v7, if it is fixed: by the state once it has been reached, before
/// that by genesis or by the votes that were counted beside the state (docs/protocol.md section 8).
///
/// # Errors
/// [`StorageError`] if the database fails.
pub fn v7_from(chain: &ChainRules, state: &dyn Read) -> Result<Option<u64>, StorageError> {
    let name = V7.to_owned();
    if let Some(fixed) = view::get::<ForkRows>(state, &name)? {
        return Ok(Some(fixed.height));
    }
    if chain.forks.v7.is_some() {
        return Ok(chain.forks.v7);
    }
    Ok(view::get::<FixedForks>(state, &name)?.map(|fixed| fixed.height))
}

/// The first block with the rules of v8, if it is fixed: by the state from v7 on, before that by genesis.
fn v8_from(chain: &ChainRules, state: &dyn Read) -> Result<Option<u64>, StorageError> {
    let row = view::get::<ForkRows>(state, &V8.to_owned())?;
    Ok(row.map(|fixed| fixed.height).or(chain.forks.v8))
}

/// The numbers with every value that is decided.
pub(crate) fn decided(params: &Params, state: &dyn Read) -> Result<Params, StorageError> {
    Ok(with(params, &rows(state)?, u64::MAX))
}

/// The numbers with the values of a block.
fn with(params: &Params, rows: &[(String, ParamRow)], height: u64) -> Params {
    let mut params = params.clone();
    for (name, row) in rows {
        if let Some(param) = Changeable::find(name) {
            param.set(&mut params, row.at(height));
        }
    }
    params
}

/// Every row of a parameter.
pub(crate) fn rows(state: &dyn Read) -> Result<Vec<(String, ParamRow)>, StorageError> {
    view::scan::<ParamRows>(state, Range { from: &[], to: None, limit: usize::MAX })
}
