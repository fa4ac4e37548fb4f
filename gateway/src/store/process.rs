//! The key of a client that starts the gateway itself. Nobody has its secret.

use miner::journal::JournalError;
use redb::ReadableDatabase;

use super::tables::{KEYS, put, rows};
use super::{KeyFault, Store};
use crate::keys::Key;
use crate::money::Limits;

/// Its name; no key that is made by hand can have it.
pub const PROCESS_KEY: &str = "mcp (stdio)";

impl Store {
    /// The key of the client on standard input, with these limits. It is the same one at each start, so
    /// that a client gets no new budget by starting the program anew.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn process_key(&self, limits: Limits) -> Result<Key, KeyFault> {
        match self.known_process_key()? {
            None => self.new_key(PROCESS_KEY, limits).await.map(|(key, _secret)| key),
            Some(key) => {
                let key = Key { limits, ..key };
                let kept = key.clone();
                self.change(move |write| put(&mut write.open_table(KEYS)?, kept.id.0, &kept))
                    .await?;
                Ok(key)
            }
        }
    }

    fn known_process_key(&self) -> Result<Option<Key>, JournalError> {
        let keys: Vec<Key> = rows(&self.database.begin_read()?.open_table(KEYS)?)?;
        Ok(keys.into_iter().find(|key| key.revoked_ms.is_none() && key.name == PROCESS_KEY))
    }
}
