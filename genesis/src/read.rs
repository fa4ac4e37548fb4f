//! Reading a genesis file, and the rules about its parts.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use state::{FirstAgent, Forks};
use types::json::{self, Json};
use types::params::INTEGER_MAX;
use types::text::{ParseTextError, shorten};
use types::{Address, Amount, Params, PublicKey, Rejection};

use crate::fault::Faults;
use crate::params::FIELDS;
use crate::{ACCOUNTS_MAX, AGENTS_MAX, Genesis, POWER_MAX, Spec, VALIDATORS_MAX, Validator};

/// The file, a list, an entry, a value in it.
const DEPTH_MAX: usize = 4;
/// The longest file that is read, in bytes.
const FILE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// The longest chain id and validator name, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// The latest genesis time and fork height: half of what an integer can hold, so that times and
/// heights have room to grow.
const LATEST: u64 = INTEGER_MAX / 2;

type Members<'a, 'b> = &'a [(Cow<'b, str>, Json<'b>)];

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

/// Reads and checks the text of a genesis file.
pub(crate) fn genesis(text: &[u8]) -> Result<Genesis, Faults> {
    let mut faults = Faults::default();
    if text.len() > FILE_BYTES_MAX {
        let got = format_args!("{} bytes", text.len());
        faults.add("", got, format_args!("at most {FILE_BYTES_MAX} bytes"));
        return Err(faults);
    }
    let value = match json::parse(text, DEPTH_MAX) {
        Ok(value) => value,
        Err(error) => {
            faults.add("", error, "one JSON object");
            return Err(faults);
        }
    };
    let parts = Reader { faults: &mut faults }.parts(&value);
    // A part that could not be read is a default by now, and not worth a second fault.
    let mut more = Faults::default();
    let genesis = Genesis::check(parts, &mut more);
    faults.add_unless_told(more);
    faults.into_result(genesis)
}

/// Collects faults while it reads; what is missing or wrong becomes a default.
struct Reader<'f> {
    faults: &'f mut Faults,
}

impl Reader<'_> {
    fn parts(&mut self, value: &Json<'_>) -> Parts {
        const KEYS: [&str; 7] =
            ["chainId", "genesisTime", "validators", "accounts", "agents", "forks", "params"];
        let members = self.object(value, "", &KEYS);
        Parts {
            chain_id: self.text(members, "", "chainId").unwrap_or_default().to_owned(),
            genesis_time: self.integer(members, "", "genesisTime").unwrap_or_default(),
            validators: self.list(members, "validators", VALIDATORS_MAX, Self::validator),
            accounts: self.list(members, "accounts", ACCOUNTS_MAX, Self::account),
            agents: match find(members, "agents") {
                Some(_) => self.list(members, "agents", AGENTS_MAX, Self::agent),
                None => Vec::new(),
            },
            forks: find(members, "forks").map(|value| self.forks(value)).unwrap_or_default(),
            params: find(members, "params").map(|value| self.params(value)).unwrap_or_default(),
        }
    }

    fn validator(&mut self, value: &Json<'_>, path: &str) -> Option<Validator> {
        let members = self.object(value, path, &["publicKey", "power", "name"]);
        let public_key = self.parsed::<PublicKey>(members, path, "publicKey");
        let power = self.integer(members, path, "power");
        let has_name = find(members, "name").is_some();
        let name = has_name.then(|| self.text(members, path, "name")).flatten();
        let name = name.map(str::to_owned);
        Some(Validator { public_key: public_key?, power: power?, name })
    }

    fn account(&mut self, value: &Json<'_>, path: &str) -> Option<(Address, Amount)> {
        let members = self.object(value, path, &["address", "balance"]);
        let address = self.parsed(members, path, "address");
        let balance = self.parsed(members, path, "balance");
        Some((address?, balance?))
    }

    fn agent(&mut self, value: &Json<'_>, path: &str) -> Option<FirstAgent> {
        let members = self.object(value, path, &["owner", "metadata"]);
        let owner = self.parsed(members, path, "owner");
        let metadata = self.text(members, path, "metadata").map(str::to_owned);
        Some(FirstAgent { owner: owner?, metadata: metadata? })
    }

    fn forks(&mut self, value: &Json<'_>) -> Forks {
        let members = self.object(value, "forks", &["v6", "validatorVote", "v7", "v8"]);
        let mut height = |key| {
            let is_named = find(members, key).is_some();
            is_named.then(|| self.integer(members, "forks", key)).flatten()
        };
        let v6 = height("v6").unwrap_or_default();
        Forks { v6, validator_vote: height("validatorVote"), v7: height("v7"), v8: height("v8") }
    }

    fn params(&mut self, value: &Json<'_>) -> Params {
        let mut params = Params::default();
        let names: Vec<&str> = FIELDS.iter().map(|field| field.name).collect();
        let members = self.object(value, "params", &names);
        for field in &FIELDS {
            if let Some(value) = find(members, field.name) {
                field.read(value, &mut params, self.faults);
            }
        }
        params
    }

    /// The members of an object that has no key but these.
    fn object<'a, 'b>(
        &mut self,
        value: &'a Json<'b>,
        path: &str,
        keys: &[&str],
    ) -> Members<'a, 'b> {
        let Some(members) = members(value) else {
            self.faults.add(path, value.kind(), "an object");
            return &[];
        };
        for (key, _) in members.iter().filter(|(key, _)| !keys.contains(&key.as_ref())) {
            let expected = format!("one of {}", keys.join(", "));
            self.faults.add(join(path, key), "an unknown key", expected);
        }
        members
    }

    fn list<T>(
        &mut self,
        in_members: Members<'_, '_>,
        key: &'static str,
        most: usize,
        mut read: impl FnMut(&mut Self, &Json<'_>, &str) -> Option<T>,
    ) -> Vec<(usize, T)> {
        let items = match find(in_members, key) {
            Some(Json::Array(items)) => items.as_slice(),
            other => {
                let got = other.map_or("missing", Json::kind);
                self.faults.add(key, got, "an array");
                return Vec::new();
            }
        };
        if items.len() > most {
            let got = format_args!("{} entries", items.len());
            self.faults.add(key, got, format_args!("at most {most} entries"));
            return Vec::new();
        }
        let items = items.iter().enumerate();
        items
            .filter_map(|(at, item)| Some((at, read(self, item, &format!("{key}[{at}]"))?)))
            .collect()
    }

    fn text<'a>(&mut self, members: Members<'a, '_>, path: &str, key: &str) -> Option<&'a str> {
        match find(members, key) {
            Some(Json::String(text)) => Some(text.as_ref()),
            other => {
                self.faults.add(join(path, key), other.map_or("missing", Json::kind), "a string");
                None
            }
        }
    }

    fn parsed<T: FromStr<Err = ParseTextError>>(
        &mut self,
        members: Members<'_, '_>,
        path: &str,
        key: &str,
    ) -> Option<T> {
        let text = self.text(members, path, key)?;
        let fault = |error: ParseTextError| {
            self.faults.add(join(path, key), format_args!("{:?}", error.got), error.expected);
        };
        text.parse().map_err(fault).ok()
    }

    fn integer(&mut self, members: Members<'_, '_>, path: &str, key: &str) -> Option<u64> {
        const EXPECTED: &str = "an integer in plain digits";
        let got = match find(members, key) {
            Some(Json::Number(literal)) => {
                let plain = literal.bytes().all(|byte| byte.is_ascii_digit());
                match literal.parse() {
                    Ok(value) if plain => return Some(value),
                    _ => *literal,
                }
            }
            other => other.map_or("missing", Json::kind),
        };
        self.faults.add(join(path, key), got, EXPECTED);
        None
    }
}

fn members<'a, 'b>(value: &'a Json<'b>) -> Option<Members<'a, 'b>> {
    match value {
        Json::Object(members) => Some(members),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => None,
    }
}

fn find<'a, 'b>(members: Members<'a, 'b>, key: &str) -> Option<&'a Json<'b>> {
    members.iter().find(|(name, _)| name == key).map(|(_, value)| value)
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// 1 to 64 characters that need no escape anywhere.
pub(crate) fn check_chain_id(chain_id: &str, faults: &mut Faults) {
    let fits = (1..=NAME_BYTES_MAX).contains(&chain_id.len());
    let plain = chain_id.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    if !fits || !plain {
        let expected = "1 to 64 characters of [A-Za-z0-9._-]";
        faults.add("chainId", format_args!("{chain_id:?}"), expected);
    }
}

pub(crate) fn check_time(time: u64, faults: &mut Faults) {
    if time > LATEST {
        let expected = format_args!("at most {LATEST} milliseconds since 1970");
        faults.add("genesisTime", time, expected);
    }
}

pub(crate) fn check_forks(forks: Forks, faults: &mut Faults) {
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
pub(crate) fn check_agents(
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

pub(crate) fn check_validators(validators: &[(usize, Validator)], faults: &mut Faults) {
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
