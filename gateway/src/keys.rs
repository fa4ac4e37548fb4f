//! Keys of the interface: a secret that is shown once, and what it may do.

use serde::{Deserialize, Serialize};
use types::Hash;

use crate::money::Limits;

/// What every secret begins with.
pub const SECRET_PREFIX: &str = "sk-ombra-";
/// Bytes of chance in a secret.
const SECRET_BYTES: usize = 24;
/// Characters of a secret by which people know it again.
const SHOWN_CHARS: usize = SECRET_PREFIX.len() + 4;
/// The longest name of a key, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// The longest key that makes a request idempotent, in bytes.
pub(crate) const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;

/// The number of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyId(pub u64);

/// What a client sends as its key. Its `Debug` output does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Secret({}…)", self.shown())
    }
}

impl Secret {
    /// A new one.
    ///
    /// # Errors
    /// When the system has no chance to give.
    pub fn new() -> Result<Self, getrandom::Error> {
        let mut chance = [0; SECRET_BYTES];
        getrandom::fill(&mut chance)?;
        let digits: String = chance.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self(format!("{SECRET_PREFIX}{digits}")))
    }

    /// The text that a client sends.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The characters by which people know it again.
    #[must_use]
    pub fn shown(&self) -> String {
        self.0.chars().take(SHOWN_CHARS).collect()
    }

    /// What is kept of it. It has enough chance in it that no slow hash is needed.
    #[must_use]
    pub fn hash(&self) -> Hash {
        hash_of(&self.0)
    }
}

/// What is kept of a secret that a client sent.
#[must_use]
pub fn hash_of(text: &str) -> Hash {
    Hash::digest(text.as_bytes())
}

/// A key as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// Its number.
    pub id: KeyId,
    /// Its name, for people; no two keys that are not revoked have the same.
    pub name: String,
    /// The first characters of its secret.
    pub shown: String,
    /// SHA-256 of its secret.
    pub hash: Hash,
    /// When it was made, milliseconds since 1970.
    pub created_ms: u64,
    /// When it was revoked; none if it is in force.
    pub revoked_ms: Option<u64>,
    /// What it may do.
    pub limits: Limits,
}

/// Checks the name of a key.
///
/// # Errors
/// What a name is.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(is_plain) {
        return Err(format!(
            "{name:?}: expected a name of 1 to {NAME_BYTES_MAX} letters, digits, '-', '_' and '.'"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    //! Secrets and names.

    use super::{SECRET_PREFIX, Secret, check_name, hash_of};

    #[test]
    fn a_secret_is_shown_only_where_that_is_asked_for() {
        let (one, other) = (Secret::new().unwrap(), Secret::new().unwrap());
        assert_ne!(one, other);
        assert!(one.reveal().starts_with(SECRET_PREFIX));
        assert_eq!(one.hash(), hash_of(one.reveal()));
        let debug = format!("{one:?}");
        assert!(!debug.contains(one.reveal()) && debug.contains(&one.shown()), "{debug}");
    }

    #[test]
    fn a_name_is_short_and_plain() {
        assert_eq!(Ok(()), check_name("cursor-1.a_B"));
        for name in ["", "a b", "ä", &"x".repeat(65)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
