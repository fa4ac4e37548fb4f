//! The beginning of a chain: its file, its hash, its first state.
//!
//! ```text
//! text ──Genesis::parse──▶ Genesis ──hash──▶ the chain's identity
//!                             │────state──▶ the rows of height 0
//! fields ──Genesis::new──────▶│────chain──▶ the rules that execution follows
//! ```
//!
//! Whatever makes a [`Genesis`] reports every fault of its input at once, each with its place in
//! the file. Holding one is the proof that it is right.
//!
//! Not here: files, the network, clocks.

#![deny(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::float_arithmetic
)]

mod dev;
mod fault;
mod params;
mod read;
mod write;

use std::collections::BTreeMap;

use state::{Chain, Changes, FirstStateError, Forks};
use types::{Address, Amount, Hash, Params, PublicKey, SetMember};

pub use dev::DevError;
pub use fault::{FAULTS_MAX, Fault, Faults};
pub use params::{ParamError, param_names, set_param};
pub use state::FirstAgent;
pub use types::params::{POWER_MAX, VALIDATORS_MAX};

/// The most funded accounts.
pub const ACCOUNTS_MAX: usize = 100_000;

/// The most agents that are there from the start.
pub const AGENTS_MAX: usize = 64;

/// A validator of the first set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Validator {
    /// The key that its votes are signed with.
    pub public_key: PublicKey,
    /// Its voting power, 1 to [`POWER_MAX`].
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

/// A chain's beginning that was checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Genesis {
    chain: Chain,
    time: u64,
    validators: Vec<Validator>,
    accounts: BTreeMap<Address, Amount>,
    supply: Amount,
    agents: Vec<FirstAgent>,
}

impl Genesis {
    /// Reads a genesis file.
    ///
    /// # Errors
    /// [`Faults`]: everything that is wrong with it.
    pub fn parse(text: &[u8]) -> Result<Self, Faults> {
        read::genesis(text)
    }

    /// Checks what a genesis file would say.
    ///
    /// # Errors
    /// [`Faults`]: everything that is wrong with it.
    pub fn new(spec: Spec) -> Result<Self, Faults> {
        let mut faults = Faults::default();
        let genesis = Self::check(read::Parts::from(spec), &mut faults);
        faults.into_result(genesis)
    }

    /// Adds what is wrong to `faults` and answers what is left without it.
    fn check(parts: read::Parts, faults: &mut Faults) -> Self {
        let read::Parts { chain_id, genesis_time, validators, accounts, agents, forks, params } =
            parts;
        read::check_chain_id(&chain_id, faults);
        read::check_time(genesis_time, faults);
        read::check_validators(&validators, faults);
        let (accounts, supply) = read::sum_accounts(accounts, faults);
        read::check_forks(forks, faults);
        params::check(&params, forks, faults);
        let mut validators: Vec<_> = validators.into_iter().map(|(_, entry)| entry).collect();
        validators.sort_by_key(|validator| validator.public_key.address());
        let members = validators.iter().map(|validator| {
            let Validator { public_key, power, .. } = *validator;
            SetMember { public_key, power }
        });
        let genesis_hash = Hash::ZERO;
        let chain = Chain { chain_id, genesis_hash, params, forks, validators: members.collect() };
        let (places, agents): (Vec<usize>, Vec<FirstAgent>) =
            read::check_agents(agents, forks, faults).into_iter().unzip();
        let mut genesis = Self { chain, time: genesis_time, validators, accounts, supply, agents };
        // Without agents nothing in it can be wrong that was not looked at above.
        if !genesis.agents.is_empty()
            && let Err(FirstStateError::Agent { position, why }) = genesis.first_state()
        {
            let place = usize::try_from(position).ok().and_then(|at| places.get(at));
            read::add_metadata_fault(place.copied().unwrap_or_default(), &why, faults);
            genesis.agents.clear();
        }
        genesis.chain.genesis_hash = genesis.hash();
        genesis
    }

    /// The rules that execution follows.
    #[must_use]
    pub fn chain(&self) -> Chain {
        self.chain.clone()
    }

    /// The chain's name.
    #[must_use]
    pub fn chain_id(&self) -> &str {
        &self.chain.chain_id
    }

    /// The time of height 0 in milliseconds since 1970.
    #[must_use]
    pub const fn time(&self) -> u64 {
        self.time
    }

    /// The first validators, sorted by address.
    #[must_use]
    pub fn validators(&self) -> &[Validator] {
        &self.validators
    }

    /// The first balances.
    #[must_use]
    pub const fn accounts(&self) -> &BTreeMap<Address, Amount> {
        &self.accounts
    }

    /// The first agents.
    #[must_use]
    pub fn agents(&self) -> &[FirstAgent] {
        &self.agents
    }

    /// The sum of the first balances.
    #[must_use]
    pub const fn supply(&self) -> Amount {
        self.supply
    }

    /// The text that is hashed: one line of JSON without spaces, keys in the order of the file's
    /// table in docs/protocol.md, validators and accounts sorted by address, every parameter
    /// written out. Files that mean the same have the same canonical text.
    #[must_use]
    pub fn canonical(&self) -> String {
        write::canonical(self)
    }

    /// The same content as [`Genesis::canonical`], indented for people, as a file holds it.
    #[must_use]
    pub fn to_file(&self) -> String {
        write::indented(&self.canonical())
    }

    /// SHA-256 of [`Genesis::canonical`]: the chain's identity, and the `previousHash` of its
    /// first block.
    #[must_use]
    pub fn hash(&self) -> Hash {
        Hash::digest(self.canonical().as_bytes())
    }

    /// The rows of height 0: the funded accounts, the supply, the validators of a chain that can change
    /// them, and the agents.
    ///
    /// # Panics
    /// Never: the sum of the balances and the agents were checked.
    #[must_use]
    pub fn state(&self) -> Changes {
        self.first_state().expect("balances and agents were checked")
    }

    fn first_state(&self) -> Result<Changes, FirstStateError> {
        self.chain.first_state_with(&self.accounts, &self.agents, self.time)
    }
}
