//! What a genesis file says, before it is checked.

use state::{FirstAgent, Forks};
use types::{Address, Amount, Params, PublicKey};

/// The most funded accounts.
pub const ACCOUNTS_MAX: usize = 100_000;

/// The most agents that are there from the start.
pub const AGENTS_MAX: usize = 64;

/// A validator of the first set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Validator {
    /// The key that its votes are signed with.
    pub public_key: PublicKey,
    /// Its voting power, 1 to [`POWER_MAX`](types::params::POWER_MAX).
    pub power: u64,
    /// A name for people.
    pub name: Option<String>,
}

/// What a genesis file says, before it is checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec {
    /// The chain's name.
    pub chain_id: String,
    /// The time of height 0 in milliseconds since 1970.
    pub genesis_time: u64,
    /// The first validators, in any order.
    pub validators: Vec<Validator>,
    /// The first balances, in any order.
    pub accounts: Vec<(Address, Amount)>,
    /// The first agents, in this order: one may have those before it among its tools. Only for a chain that
    /// names fork v8.
    pub agents: Vec<FirstAgent>,
    /// From which heights on later rules hold.
    pub forks: Forks,
    /// The numbers of the protocol.
    pub params: Params,
}

/// [`Spec`] with each entry's place in its list, which faults name.
pub(crate) struct Parts {
    pub(crate) chain_id: String,
    pub(crate) genesis_time: u64,
    pub(crate) validators: Vec<(usize, Validator)>,
    pub(crate) accounts: Vec<(usize, (Address, Amount))>,
    pub(crate) agents: Vec<(usize, FirstAgent)>,
    pub(crate) forks: Forks,
    pub(crate) params: Params,
}

impl From<Spec> for Parts {
    fn from(spec: Spec) -> Self {
        let Spec { chain_id, genesis_time, validators, accounts, agents, forks, params } = spec;
        let validators = validators.into_iter().enumerate().collect();
        let accounts = accounts.into_iter().enumerate().collect();
        let agents = agents.into_iter().enumerate().collect();
        Self { chain_id, genesis_time, validators, accounts, agents, forks, params }
    }
}
