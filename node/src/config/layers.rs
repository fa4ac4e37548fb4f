//! Merging defaults, file, environment and flags, value by value.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::check::{self, Fault};
use super::settings::Config;

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

impl ConfigError {
    /// The key that is wrong, if it is one that there is.
    fn key(&self) -> Option<&str> {
        match self {
            Self::BadValue { key, .. } => Some(key),
            Self::Read { .. }
            | Self::Syntax { .. }
            | Self::NotText { .. }
            | Self::UnknownKey { .. } => None,
        }
    }
}

/// Everything that is wrong with the settings: at least one thing.
#[derive(Debug)]
pub struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &ConfigError> {
        self.0.iter()
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.0.as_slice() {
            return only.fmt(f);
        }
        write!(f, "{} faults in the settings:", self.0.len())?;
        self.iter().try_for_each(|error| write!(f, "\n  {error}"))
    }
}

impl std::error::Error for ConfigErrors {}

/// The settings in force, and where each value came from.
#[derive(Clone, Debug)]
pub struct Effective {
    /// The settings.
    pub config: Config,
    /// Every dotted key with its value and origin, in order of keys.
    pub origins: BTreeMap<String, (Value, Origin)>,
}

/// The names of the variables that are settings, in order.
pub fn variables(environment: impl Iterator<Item = (OsString, OsString)>) -> Vec<String> {
    let names = environment.map(|(name, _)| name).filter(|name| is_ours(name));
    let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn is_ours(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
}

/// Merges the defaults, those of the command, a file, the variables that begin with `OMBRA__`, and
/// flags, and checks what is more than a type.
///
/// # Errors
/// [`ConfigErrors`]: all that is wrong.
pub fn load(
    command: &[CommandDefault],
    file: Option<&Path>,
    environment: impl Iterator<Item = (OsString, OsString)>,
    flags: &[FlagValue],
) -> Result<Effective, ConfigErrors> {
    let mut layers = Layers { merged: defaults(), errors: Vec::new() };
    for CommandDefault { key, command, value } in command {
        layers.merge(key, value.clone(), Origin::Command(command));
    }
    if let Some(path) = file {
        layers.merge_file(path);
    }
    for (name, text) in environment.filter(|(name, _)| is_ours(name)) {
        layers.merge_variable(name, text);
    }
    for FlagValue { key, flag, value } in flags {
        layers.merge(key, value.clone(), Origin::Flag((*flag).to_owned()));
    }
    layers.finish()
}

/// What has been merged so far, and what was wrong with it.
struct Layers {
    merged: BTreeMap<String, (Value, Origin)>,
    errors: Vec<ConfigError>,
}

impl Layers {
    fn merge_file(&mut self, path: &Path) {
        let origin = Origin::File(path.to_owned());
        match read_file(path) {
            Ok(values) => {
                values.into_iter().for_each(|(key, value)| self.merge(&key, value, origin.clone()));
            }
            Err(error) => self.errors.push(error),
        }
    }

    fn merge_variable(&mut self, name: OsString, text: OsString) {
        let shown = name.to_string_lossy().into_owned();
        let (Ok(name), Ok(text)) = (name.into_string(), text.into_string()) else {
            return self.errors.push(ConfigError::NotText { name: shown });
        };
        let Some(rest) = name.strip_prefix(PREFIX) else { return };
        let key = rest.to_lowercase().replace("__", ".");
        let value = read_variable(self.merged.get(&key).map(|(default, _)| default), text);
        self.merge(&key, value, Origin::Environment(name));
    }

    fn merge(&mut self, key: &str, value: Value, origin: Origin) {
        let Some((old, _)) = self.merged.get(key) else {
            let known = self.merged.keys();
            let nearest = known.min_by_key(|known| strsim::damerau_levenshtein(known, key));
            let nearest = nearest.cloned().unwrap_or_default();
            return self.errors.push(ConfigError::UnknownKey {
                key: key.to_owned(),
                origin,
                nearest,
            });
        };
        if old.type_str() != value.type_str() {
            let why = format!("expected {} such as {old}", old.type_str());
            let value = value.to_string();
            let key = key.to_owned();
            return self.errors.push(ConfigError::BadValue { key, value, origin, why });
        }
        self.merged.insert(key.to_owned(), (value, origin));
    }

    /// The settings, unless something is wrong with them.
    fn finish(mut self) -> Result<Effective, ConfigErrors> {
        let config = self.read().or_else(|_error| {
            self.set_unreadable_aside();
            self.read()
        });
        match config {
            Ok(config) => {
                self.check(&config);
                if self.errors.is_empty() {
                    return Ok(Effective { config, origins: self.merged });
                }
            }
            Err(error) => self.errors.push(ConfigError::BadValue {
                key: "(several keys)".to_owned(),
                value: "a combination".to_owned(),
                origin: Origin::Default,
                why: error.message().to_owned(),
            }),
        }
        Err(ConfigErrors(self.errors))
    }

    fn read(&self) -> Result<Config, toml::de::Error> {
        let values = self.merged.iter().map(|(key, (value, _))| (key, value));
        Value::Table(unflatten(values)).try_into()
    }

    /// Puts the default in the place of each value that alone makes the defaults unreadable, so that the
    /// others can be checked.
    fn set_unreadable_aside(&mut self) {
        let base = defaults();
        for (key, merged) in &mut self.merged {
            let Some(default) = base.get(key) else { continue };
            let alone = base
                .iter()
                .map(|(other, (value, _))| (other, if other == key { &merged.0 } else { value }));
            let read: Result<Config, toml::de::Error> = Value::Table(unflatten(alone)).try_into();
            let Err(error) = read else { continue };
            let (value, origin) = std::mem::replace(merged, default.clone());
            let (key, value) = (key.clone(), value.to_string());
            let why = error.message().to_owned();
            self.errors.push(ConfigError::BadValue { key, value, origin, why });
        }
    }

    /// Checks what is more than a type. What was refused before is not said to be wrong once more:
    /// there is another value in its place.
    fn check(&mut self, config: &Config) {
        let refused: BTreeSet<_> = self.errors.iter().filter_map(ConfigError::key).collect();
        let mut errors = Vec::new();
        for Fault { key, why } in check::faults(config) {
            if refused.contains(key.as_str()) {
                continue;
            }
            let merged = self.merged.get(&key).cloned();
            let (value, origin) = merged.unwrap_or_else(|| ("".into(), Origin::Default));
            errors.push(ConfigError::BadValue { key, value: value.to_string(), origin, why });
        }
        self.errors.extend(errors);
    }
}

fn defaults() -> BTreeMap<String, (Value, Origin)> {
    let values = values(&Config::default()).into_iter();
    values.map(|(key, value)| (key, (value, Origin::Default))).collect()
}

/// Every dotted key with its value.
pub(super) fn values(config: &Config) -> BTreeMap<String, Value> {
    let tree = Table::try_from(config).expect("settings are TOML");
    flatten(tree).collect()
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
