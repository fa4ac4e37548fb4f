//! Merging defaults, file, environment and flags, value by value.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::settings::{Config, Snapshots, Sync, Trusted};

/// What the variables of settings begin with.
const PREFIX: &str = "OMBRA__";

/// Where a value came from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The program.
    Default,
    /// A command that has another default.
    Command(&'static str),
    /// A file.
    File(PathBuf),
    /// A variable of the environment.
    Environment(String),
    /// The command line.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Command(name) => write!(f, "default of {name}"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// A default of one command, which everything else beats.
#[derive(Clone, PartialEq, Debug)]
pub struct CommandDefault {
    /// The dotted key: `log.filter`.
    pub key: &'static str,
    /// The command: `ombra dev`.
    pub command: &'static str,
    /// The value.
    pub value: Value,
}

/// A value that was given on the command line.
#[derive(Clone, PartialEq, Debug)]
pub struct FlagValue {
    /// The dotted key: `rpc.listen`.
    pub key: &'static str,
    /// The flag's name: `--rpc`.
    pub flag: &'static str,
    /// The value.
    pub value: Value,
}

/// What is wrong with the settings.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{} is not TOML: {source}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: toml::de::Error,
    },
    /// A variable of the environment is not text.
    #[error("environment {name} is not UTF-8")]
    NotText {
        /// The variable.
        name: String,
    },
    /// Nobody knows the key.
    #[error("unknown key `{key}` ({origin}); the nearest known one is `{nearest}`")]
    UnknownKey {
        /// The key.
        key: String,
        /// Where it stands.
        origin: Origin,
        /// A known key that looks like it.
        nearest: String,
    },
    /// The value does not fit the key.
    #[error("`{key}` is {value} ({origin}): {why}")]
    BadValue {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// Where it stands.
        origin: Origin,
        /// What would fit.
        why: String,
    },
}

/// The settings in force, and where each value came from.
#[derive(Clone, Debug)]
pub struct Effective {
    /// The settings.
    pub config: Config,
    /// Every dotted key with its value and origin, in order of keys.
    pub origins: BTreeMap<String, (Value, Origin)>,
}

/// Merges the defaults, those of the command, a file, the variables that begin with `OMBRA__`, and
/// flags, and checks addresses and the log filter.
///
/// # Errors
/// The first [`ConfigError`].
pub fn load(
    command: &[CommandDefault],
    file: Option<&Path>,
    environment: impl Iterator<Item = (OsString, OsString)>,
    flags: &[FlagValue],
) -> Result<Effective, ConfigError> {
    let mut merged = defaults();
    for CommandDefault { key, command, value } in command {
        merge(&mut merged, key, value.clone(), Origin::Command(command))?;
    }
    if let Some(path) = file {
        let origin = Origin::File(path.to_owned());
        for (key, value) in read_file(path)? {
            merge(&mut merged, &key, value, origin.clone())?;
        }
    }
    for (name, text) in environment {
        if !name.as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let shown = name.to_string_lossy().into_owned();
        let not_text = |_bytes| ConfigError::NotText { name: shown.clone() };
        let name = name.into_string().map_err(not_text)?;
        let text = text.into_string().map_err(not_text)?;
        let Some(rest) = name.strip_prefix(PREFIX) else { continue };
        let key = rest.to_lowercase().replace("__", ".");
        let value = read_variable(merged.get(&key).map(|(default, _)| default), text);
        merge(&mut merged, &key, value, Origin::Environment(name))?;
    }
    for FlagValue { key, flag, value } in flags {
        merge(&mut merged, key, value.clone(), Origin::Flag((*flag).to_owned()))?;
    }
    let tree = unflatten(merged.iter().map(|(key, (value, _))| (key, value)));
    let config: Config = Value::Table(tree).try_into().map_err(|error| culprit(&merged, &error))?;
    check(&config, &merged)?;
    Ok(Effective { config, origins: merged })
}

/// Checks what is more than its TOML type.
fn check(config: &Config, merged: &BTreeMap<String, (Value, Origin)>) -> Result<(), ConfigError> {
    let bad = |key: &str, why: &dyn fmt::Display| {
        let (value, origin) =
            merged.get(key).cloned().unwrap_or_else(|| ("".into(), Origin::Default));
        let (key, value, why) = (key.to_owned(), value.to_string(), why.to_string());
        ConfigError::BadValue { key, value, origin, why }
    };
    let Config { p2p, sync, log, rpc, snapshots, .. } = config;
    rpc.limits.check().map_err(|(name, why)| bad(&format!("rpc.limits.{name}"), &why))?;
    consensus::check_address(&p2p.listen).map_err(|why| bad("p2p.listen", &why))?;
    for peer in &p2p.peers {
        consensus::check_address(peer).map_err(|why| bad("p2p.peers", &why))?;
    }
    check_trust(sync).map_err(|(key, why)| bad(key, &why))?;
    let kept = Snapshots::KEEP;
    if !kept.contains(&snapshots.keep) {
        let why = format!("expected {} to {}", kept.start(), kept.end());
        return Err(bad("snapshots.keep", &why));
    }
    crate::logging::check(&log.filter).map_err(|why| bad("log.filter", &why))
}

/// The key that is wrong, and what was expected.
fn check_trust(sync: &Sync) -> Result<(), (&'static str, String)> {
    const HEIGHT: &str = "sync.trusted.height";
    const HASH: &str = "sync.trusted.hash";
    let Trusted { height, hash } = &sync.trusted;
    if !hash.is_empty() {
        types::Hash::parse(hash).map_err(|why| (HASH, why.to_string()))?;
    }
    match (height, hash.is_empty()) {
        (0, false) => Err((HEIGHT, "expected the height of the block `sync.trusted.hash`".into())),
        (1.., true) => Err((HASH, format!("expected the hash of the block at height {height}"))),
        (0, true) | (1.., false) => Ok(()),
    }?;
    let (period, range) = (sync.trust_period_ms, Sync::TRUST_PERIOD_MS);
    if range.contains(&period) {
        return Ok(());
    }
    Err(("sync.trust_period_ms", format!("expected {} to {}", range.start(), range.end())))
}

fn defaults() -> BTreeMap<String, (Value, Origin)> {
    let tree = Table::try_from(Config::default()).expect("the default settings are TOML");
    flatten(tree).map(|(key, value)| (key, (value, Origin::Default))).collect()
}

fn read_file(path: &Path) -> Result<Vec<(String, Value)>, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    let tree: Table =
        text.parse().map_err(|source| ConfigError::Syntax { path: path.to_owned(), source })?;
    Ok(flatten(tree).collect())
}

/// A variable's text as a value of the default's type; a text that does not fit stays a string,
/// and is refused where it is merged.
fn read_variable(default: Option<&Value>, text: String) -> Value {
    let wants_text = default.is_none_or(Value::is_str);
    let parsed = format!("value = {text}").parse::<Table>().ok();
    match parsed.and_then(|mut table| table.remove("value")) {
        Some(value) if !wants_text => value,
        _ => Value::String(text),
    }
}

fn merge(
    merged: &mut BTreeMap<String, (Value, Origin)>,
    key: &str,
    value: Value,
    origin: Origin,
) -> Result<(), ConfigError> {
    let Some((old, _)) = merged.get(key) else {
        let nearest = merged
            .keys()
            .min_by_key(|known| strsim::damerau_levenshtein(known, key))
            .cloned()
            .unwrap_or_default();
        return Err(ConfigError::UnknownKey { key: key.to_owned(), origin, nearest });
    };
    if old.type_str() != value.type_str() {
        let why = format!("expected {} such as {old}", old.type_str());
        let value = value.to_string();
        return Err(ConfigError::BadValue { key: key.to_owned(), value, origin, why });
    }
    merged.insert(key.to_owned(), (value, origin));
    Ok(())
}

/// The key whose value alone makes the defaults unreadable.
fn culprit(merged: &BTreeMap<String, (Value, Origin)>, error: &toml::de::Error) -> ConfigError {
    let base = defaults();
    let guilty = merged.iter().find_map(|(key, (value, origin))| {
        let mut alone: BTreeMap<&String, &Value> =
            base.iter().map(|(key, (value, _))| (key, value)).collect();
        alone.insert(key, value);
        let read: Result<Config, _> = Value::Table(unflatten(alone.into_iter())).try_into();
        let why = read.err()?.message().to_owned();
        Some(ConfigError::BadValue {
            key: key.clone(),
            value: value.to_string(),
            origin: origin.clone(),
            why,
        })
    });
    guilty.unwrap_or_else(|| ConfigError::BadValue {
        key: "(several keys)".to_owned(),
        value: "a combination".to_owned(),
        origin: Origin::Default,
        why: error.message().to_owned(),
    })
}

/// Leaves by dotted key; an array is a leaf.
fn flatten(tree: Table) -> impl Iterator<Item = (String, Value)> {
    let mut open = vec![(String::new(), tree)];
    let mut leaves = BTreeMap::new();
    while let Some((prefix, table)) = open.pop() {
        for (name, value) in table {
            let key = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
            match value {
                Value::Table(inner) => open.push((key, inner)),
                leaf @ (Value::String(_)
                | Value::Integer(_)
                | Value::Float(_)
                | Value::Boolean(_)
                | Value::Datetime(_)
                | Value::Array(_)) => drop(leaves.insert(key, leaf)),
            }
        }
    }
    leaves.into_iter()
}

fn unflatten<'a>(leaves: impl Iterator<Item = (&'a String, &'a Value)>) -> Table {
    let mut tree = Table::new();
    for (key, value) in leaves {
        let mut parts: Vec<&str> = key.split('.').collect();
        let Some(last) = parts.pop() else { continue };
        let mut table = &mut tree;
        for part in parts {
            let inner = table.entry(part).or_insert_with(|| Value::Table(Table::new()));
            let Value::Table(next) = inner else { return Table::new() };
            table = next;
        }
        table.insert(last.to_owned(), value.clone());
    }
    tree
}

#[cfg(test)]
mod tests;
