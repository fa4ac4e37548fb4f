//! The rules about the parts of a genesis.

use std::collections::{BTreeMap, BTreeSet};

use state::{FirstAgent, Forks};
use types::params::{INTEGER_MAX, POWER_MAX, VALIDATORS_MAX};
use types::text::shorten;
use types::{Address, Amount, Rejection};

use crate::fault::Faults;
use crate::spec::{ACCOUNTS_MAX, AGENTS_MAX, Validator};

/// The longest chain id and validator name, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// The latest genesis time and fork height: half of what an integer can hold, so that times and
/// heights have room to grow.
const LATEST: u64 = INTEGER_MAX / 2;

/// 1 to 64 characters that need no escape anywhere.
pub(crate) fn chain_id(chain_id: &str, faults: &mut Faults) {
    let fits = (1..=NAME_BYTES_MAX).contains(&chain_id.len());
    let plain = chain_id.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    if !fits || !plain {
        let expected = "1 to 64 characters of [A-Za-z0-9._-]";
        faults.add("chainId", format_args!("{chain_id:?}"), expected);
    }
}

pub(crate) fn time(time: u64, faults: &mut Faults) {
    if time > LATEST {
        let expected = format_args!("at most {LATEST} milliseconds since 1970");
        faults.add("genesisTime", time, expected);
    }
}

pub(crate) fn forks(forks: Forks, faults: &mut Faults) {
    let Forks { v6, validator_vote, v7, v8 } = forks;
    let named = [
        ("forks.v6", Some(v6)),
        ("forks.validatorVote", validator_vote),
        ("forks.v7", v7),
        ("forks.v8", v8),
    ];
    for (path, height) in named {
        if let Some(height) = height.filter(|height| *height > LATEST) {
            faults.add(path, height, format_args!("a height of at most {LATEST}"));
        }
    }
    // The market needs the bonds, the fees and the randomness of v7.
    if let Some(height) = v8.filter(|height| *height < forks.v7_from()) {
        let expected = match v7 {
            Some(v7) => format!("at least {v7}, the height of v7"),
            None => "no such fork in a genesis that does not name forks.v7".to_owned(),
        };
        faults.add("forks.v8", height, expected);
    }
}

/// The agents, each with its place in the list, if the chain can have some.
pub(crate) fn agents(
    agents: Vec<(usize, FirstAgent)>,
    forks: Forks,
    faults: &mut Faults,
) -> Vec<(usize, FirstAgent)> {
    let got = format_args!("{} entries", agents.len());
    if agents.len() > AGENTS_MAX {
        faults.add("agents", got, format_args!("at most {AGENTS_MAX} entries"));
        return Vec::new();
    }
    if !agents.is_empty() && forks.v8.is_none() {
        faults.add("agents", got, "none in a genesis that does not name forks.v8");
        return Vec::new();
    }
    agents
}

/// Adds what is wrong with the metadata of the agent at this place in the list: what is there, what was
/// expected, where in the metadata, and the rule of docs/market.md section 3.
pub(crate) fn add_metadata_fault(at: usize, why: &Rejection, faults: &mut Faults) {
    let extra = |wanted| why.extra().find(|(key, _)| *key == wanted).map(|(_, value)| value);
    let mut expected = why.expected().to_owned();
    if let Some(pointer) = extra("path").filter(|pointer| !pointer.is_empty()) {
        expected.push_str(&format!(" at {}", shorten(pointer)));
    }
    if let Some(rule) = extra("rule") {
        expected.push_str(&format!(" (rule {rule})"));
    }
    faults.add(format!("agents[{at}].metadata"), why.got(), expected);
}

pub(crate) fn validators(validators: &[(usize, Validator)], faults: &mut Faults) {
    if validators.is_empty() || validators.len() > VALIDATORS_MAX {
        let got = format_args!("{} validators", validators.len());
        faults.add("validators", got, format_args!("1 to {VALIDATORS_MAX} validators"));
    }
    let mut seen = BTreeSet::new();
    for (at, Validator { public_key, power, name }) in validators {
        if !seen.insert(*public_key) {
            let path = format!("validators[{at}].publicKey");
            faults.add(path, public_key, "a key that no other validator has");
        }
        if !public_key.can_sign() {
            let path = format!("validators[{at}].publicKey");
            faults.add(path, public_key, "an Ed25519 key that can sign");
        }
        if !(1..=POWER_MAX).contains(power) {
            let path = format!("validators[{at}].power");
            faults.add(path, power, format_args!("an integer from 1 to {POWER_MAX}"));
        }
        if let Some(name) = name.as_ref().filter(|name| name.len() > NAME_BYTES_MAX) {
            let path = format!("validators[{at}].name");
            let got = format_args!("{} bytes", name.len());
            faults.add(path, got, format_args!("at most {NAME_BYTES_MAX} bytes"));
        }
    }
}

/// The balances by address, and their sum.
pub(crate) fn sum_accounts(
    accounts: Vec<(usize, (Address, Amount))>,
    faults: &mut Faults,
) -> (BTreeMap<Address, Amount>, Amount) {
    if accounts.len() > ACCOUNTS_MAX {
        let got = format_args!("{} entries", accounts.len());
        faults.add("accounts", got, format_args!("at most {ACCOUNTS_MAX} entries"));
    }
    let mut balances = BTreeMap::new();
    let mut sum = Some(Amount::ZERO);
    for (at, (address, balance)) in accounts {
        if balances.insert(address, balance).is_some() {
            let path = format!("accounts[{at}].address");
            faults.add(path, address, "an account that no other entry funds");
        }
        sum = sum.and_then(|sum| sum.checked_add(balance));
    }
    if sum.is_none() {
        let expected = format_args!("a sum of at most {} micro-OMBRA", Amount::MAX);
        faults.add("accounts", "balances with a greater sum", expected);
    }
    (balances, sum.unwrap_or_default())
}
