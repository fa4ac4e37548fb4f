//! Keys in the store.

use miner::journal::JournalError;
use redb::ReadableDatabase;
use serde::{Deserialize, Serialize};
use types::Hash;

use super::Store;
use super::tables::{DAYS, HASHES, KEYS, META, NEXT, Next, Result, TALLIES, get, put, read, rows};
use crate::keys::{Key, KeyId, Secret};
use crate::money::{Day, Limits, Tally, day_of};

/// Why keys are not changed.
#[derive(Debug, thiserror::Error)]
pub enum KeyFault {
    /// A key in force has this name.
    #[error("there is a key {0:?} in force: revoke it, or choose another name")]
    NameTaken(String),
    /// No key in force has this name.
    #[error("there is no key {0:?} in force")]
    Unknown(String),
    /// The system has no chance to give for a secret.
    #[error("cannot get random bytes for a secret: {0}")]
    Chance(getrandom::Error),
    /// The store cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// A key and what is counted of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyStanding {
    /// The key.
    pub key: Key,
    /// What is counted of it.
    pub tally: Tally,
    /// What is counted of today.
    pub today: Day,
}

impl Store {
    /// Makes a key. Its secret is not kept, so this is the only time that it is known.
    ///
    /// # Errors
    /// When a key in force has the name, or the store cannot be written.
    pub async fn new_key(
        &self,
        name: &str,
        limits: Limits,
    ) -> std::result::Result<(Key, Secret), KeyFault> {
        let secret = Secret::new().map_err(KeyFault::Chance)?;
        let (name, now_ms) = (name.to_owned(), self.clock.now_ms());
        let (shown, hash) = (secret.shown(), secret.hash());
        let made = self.change(move |write| {
            let mut keys = write.open_table(KEYS)?;
            let known: Vec<Key> = rows(&keys)?;
            if known.iter().any(|key| key.revoked_ms.is_none() && key.name == name) {
                return Ok(Err(name));
            }
            let mut meta = write.open_table(META)?;
            let mut next: Next = get(&meta, NEXT)?.unwrap_or_default();
            next.key = next.key.saturating_add(1);
            put(&mut meta, NEXT, &next)?;
            let id = KeyId(next.key);
            let key = Key { id, name, shown, hash, created_ms: now_ms, revoked_ms: None, limits };
            put(&mut keys, id.0, &key)?;
            write.open_table(HASHES)?.insert(key.hash.as_bytes(), id.0)?;
            Ok(Ok(key))
        });
        let key = made.await?.map_err(KeyFault::NameTaken)?;
        Ok((key, secret))
    }

    /// Takes a key back. What is under way for it goes on.
    ///
    /// # Errors
    /// When there is no such key in force, or the store cannot be written.
    pub async fn revoke_key(&self, name: &str) -> std::result::Result<Key, KeyFault> {
        let (wanted, now_ms) = (name.to_owned(), self.clock.now_ms());
        let revoked = self.change(move |write| {
            let mut keys = write.open_table(KEYS)?;
            let known: Vec<Key> = rows(&keys)?;
            let is_meant = |key: &Key| key.revoked_ms.is_none() && key.name == wanted;
            let Some(key) = known.into_iter().find(is_meant) else { return Ok(None) };
            let key = Key { revoked_ms: Some(now_ms), ..key };
            put(&mut keys, key.id.0, &key)?;
            write.open_table(HASHES)?.remove(key.hash.as_bytes())?;
            Ok(Some(key))
        });
        revoked.await?.ok_or_else(|| KeyFault::Unknown(name.to_owned()))
    }

    /// The key in force whose secret has this hash.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn key_of(&self, secret: &Hash) -> Result<Option<Key>> {
        let read = self.database.begin_read()?;
        let Some(id) = read.open_table(HASHES)?.get(secret.as_bytes())?.map(|it| it.value()) else {
            return Ok(None);
        };
        get(&read.open_table(KEYS)?, id)
    }

    /// All keys, revoked ones too, in the order in which they were made.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn keys(&self) -> Result<Vec<KeyStanding>> {
        let read = self.database.begin_read()?;
        let keys: Vec<Key> = rows(&read.open_table(KEYS)?)?;
        let (tallies, days) = (read.open_table(TALLIES)?, read.open_table(DAYS)?);
        let today = day_of(self.clock.now_ms());
        let standing = |key: Key| {
            let tally = get(&tallies, key.id.0)?.unwrap_or_default();
            let today = get(&days, (key.id.0, today))?.unwrap_or_default();
            Ok(KeyStanding { key, tally, today })
        };
        keys.into_iter().map(standing).collect()
    }

    /// What is counted of a key on each day, the newest first, at most `most`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn days(&self, key: KeyId, most: usize) -> Result<Vec<(u64, Day)>> {
        let days = self.database.begin_read()?.open_table(DAYS)?;
        let all = days.range((key.0, 0)..=(key.0, u64::MAX))?.rev().take(most);
        all.map(|row| {
            let (number, day) = row?;
            Ok((number.value().1, read(day.value())?))
        })
        .collect()
    }
}
