//! A chain's beginning that was checked: its parts, its hash, its first state.

use std::collections::BTreeMap;

use state::{ChainRules, Changes, FirstAgent, FirstStateError};
use types::{Address, Amount, Hash, SetMember};

use crate::fault::Faults;
use crate::spec::{Parts, Spec, Validator};
use crate::{check, params, read, write};

/// A chain's beginning that was checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Genesis {
    chain: ChainRules,
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
        let (parts, mut faults) = read::parts(text)?;
        // A part that could not be read is a default by now, and not worth a second fault.
        let mut more = Faults::default();
        let genesis = Self::check(parts, &mut more);
        faults.add_unless_told(more);
        faults.into_result(genesis)
    }

    /// Checks what a genesis file would say.
    ///
    /// # Errors
    /// [`Faults`]: everything that is wrong with it.
    pub fn new(spec: Spec) -> Result<Self, Faults> {
        let mut faults = Faults::default();
        let genesis = Self::check(Parts::from(spec), &mut faults);
        faults.into_result(genesis)
    }

    /// The same chain with these agents, which are there from the start.
    ///
    /// # Errors
    /// [`Faults`] for agents of a chain that does not name fork v8, and for one that breaks a rule.
    pub fn with_agents(self, agents: Vec<FirstAgent>) -> Result<Self, Faults> {
        let Self { chain, time, validators, accounts, supply: _, agents: _ } = self;
        Self::new(Spec {
            chain_id: chain.chain_id,
            genesis_time: time,
            validators,
            accounts: accounts.into_iter().collect(),
            agents,
            forks: chain.forks,
            params: chain.params,
        })
    }

    /// Adds what is wrong to `faults` and answers what is left without it.
    fn check(parts: Parts, faults: &mut Faults) -> Self {
        let Parts { chain_id, genesis_time, validators, accounts, agents, forks, params } = parts;
        check::chain_id(&chain_id, faults);
        check::time(genesis_time, faults);
        check::validators(&validators, faults);
        let (accounts, supply) = check::sum_accounts(accounts, faults);
        check::forks(forks, faults);
        params::check(&params, forks, faults);
        let mut validators: Vec<_> = validators.into_iter().map(|(_, entry)| entry).collect();
        validators.sort_by_key(|validator| validator.public_key.address());
        let members = validators.iter().map(|validator| {
            let Validator { public_key, power, .. } = *validator;
            SetMember { public_key, power }
        });
        let genesis_hash = Hash::ZERO;
        let chain =
            ChainRules { chain_id, genesis_hash, params, forks, validators: members.collect() };
        let (places, agents): (Vec<usize>, Vec<FirstAgent>) =
            check::agents(agents, forks, faults).into_iter().unzip();
        let mut genesis = Self { chain, time: genesis_time, validators, accounts, supply, agents };
        // Without agents nothing in it can be wrong that was not looked at above.
        if !genesis.agents.is_empty()
            && let Err(FirstStateError::Agent { position, why }) = genesis.first_state()
        {
            let place = usize::try_from(position).ok().and_then(|at| places.get(at));
            check::add_metadata_fault(place.copied().unwrap_or_default(), &why, faults);
            genesis.agents.clear();
        }
        genesis.chain.genesis_hash = genesis.hash();
        genesis
    }

    /// The rules that execution follows.
    #[must_use]
    pub fn chain(&self) -> ChainRules {
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
        let Self { chain, time, validators, accounts, supply: _, agents } = self;
        write::canonical(chain, *time, validators, accounts, agents)
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
