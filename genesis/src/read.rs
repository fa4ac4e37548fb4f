//! Reading a genesis file.

use std::borrow::Cow;
use std::str::FromStr;

use state::{FirstAgent, Forks};
use types::json::{self, Json};
use types::params::VALIDATORS_MAX;
use types::text::ParseTextError;
use types::{Address, Amount, Params, PublicKey};

use crate::fault::Faults;
use crate::params::FIELDS;
use crate::spec::{ACCOUNTS_MAX, AGENTS_MAX, Parts, Validator};

/// The file, a list, an entry, a value in it.
const DEPTH_MAX: usize = 4;
/// The longest file that is read, in bytes.
const FILE_BYTES_MAX: usize = 32 * 1024 * 1024;
type Members<'a, 'b> = &'a [(Cow<'b, str>, Json<'b>)];

/// Reads the text of a genesis file: what it says, and what of it could not be read and is a default now.
///
/// # Errors
/// [`Faults`] if it is no JSON at all.
pub(crate) fn parts(text: &[u8]) -> Result<(Parts, Faults), Faults> {
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
    Ok((parts, faults))
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
