//! The store: keys, what they have spent, requests, and signed transactions, in one file.
//!
//! ```text
//! meta      | name                | JSON                | owner; opening of the books; next numbers
//! keys      | key                 | JSON of Key         |
//! hashes    | sha256 of a secret  | key                 | of keys that are not revoked
//! tallies   | key                 | JSON of Tally       |
//! days      | key, day            | JSON of Day         | days since 1970 (UTC)
//! requests  | request             | JSON of Record      |
//! open      | request             |                     | requests that are not over
//! names     | key, idempotency    | request             | of requests that are not forgotten
//! bodies    | key, body, request  |                     | the same
//! runs      | run                 | request             | that signed for it
//! outbox    | nonce               | JSON of Post        | signed, fate not known
//! loose     | nonce               | JSON of Loose       | included, of no request
//! ```
//!
//! A request and its reservation are one transaction, and so are its end and the release of what is
//! left: no interruption leaves money that is neither free nor reserved nor spent. Every change is
//! synced before its future is ready. A second process that opens the file is refused.

mod keys;
mod later;
mod outbox;
mod process;
mod requests;
mod tables;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use miner::journal::{JournalError, Scribe};
use miner::ports::Clock;
use redb::{Database, Durability, ReadableDatabase, ReadableTable, WriteTransaction};
use tokio::sync::oneshot;
use types::Address;
use wallet::Chain;

pub use keys::{KeyFault, KeyStanding};
pub use later::TakenBack;
pub use process::PROCESS_KEY;
pub use requests::{Admission, Attached, NewRequest};
pub use tables::{About, Loose, Opening, Owner};
use tables::{META, OPENING, OWNER, Result, get, prepare, put, read};

/// The form of the rows. A store of another form is not opened.
pub const FORMAT_VERSION: u32 = 1;

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process works with it.
    #[error("{} is open in another process: one gateway per wallet", path.display())]
    InUse {
        /// Which file.
        path: PathBuf,
    },
    /// It is of another wallet, chain or form.
    #[error("{} is of {found}; expected {wanted}", path.display())]
    Foreign {
        /// Which file.
        path: PathBuf,
        /// What it is of.
        found: String,
        /// What was expected.
        wanted: String,
    },
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Journal {
        /// Which file.
        path: PathBuf,
        /// What failed.
        source: JournalError,
    },
}

/// The open store.
#[derive(Debug)]
pub struct Store {
    database: Arc<Database>,
    scribe: Scribe,
    clock: Arc<dyn Clock>,
}

impl Store {
    /// Opens or makes the store of a wallet; `chain` is the one that it is to be of, where that is
    /// known.
    ///
    /// # Errors
    /// When another process has it open, it is of another wallet, chain or form, or the file cannot be
    /// read.
    pub fn open(
        path: &Path,
        wallet: Address,
        chain: Option<&Chain>,
        clock: Arc<dyn Clock>,
    ) -> std::result::Result<Self, OpenError> {
        let failed = |source| OpenError::Journal { path: path.to_owned(), source };
        let database = match Database::create(path) {
            Ok(database) => Arc::new(database),
            Err(redb::DatabaseError::DatabaseAlreadyOpen) => {
                return Err(OpenError::InUse { path: path.to_owned() });
            }
            Err(error) => return Err(failed(redb::Error::from(error).into())),
        };
        let chain = chain.map(|it| (it.chain_id.clone(), it.genesis_hash));
        let wanted = Owner { format: FORMAT_VERSION, wallet, chain };
        if let Some(found) = own(&database, &wanted).map_err(failed)? {
            let (found, wanted) = (described(&found), described(&wanted));
            return Err(OpenError::Foreign { path: path.to_owned(), found, wanted });
        }
        let scribe = Scribe::start(Arc::clone(&database)).map_err(failed)?;
        Ok(Self { database, scribe, clock })
    }

    /// Opens the books, at the first start: how the wallet stands on the chain.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn begin_books(&self, opening: Opening) -> Result<()> {
        self.change(move |write| {
            let mut meta = write.open_table(META)?;
            let known: Option<Opening> = get(&meta, OPENING)?;
            if known.is_none() {
                put(&mut meta, OPENING, &opening)?;
            }
            Ok(())
        })
        .await
    }

    /// How the wallet stood when the books were opened; none if the gateway never worked.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn opening(&self) -> Result<Option<Opening>> {
        get(&self.database.begin_read()?.open_table(META)?, OPENING)
    }

    /// Whose store it is.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn owner(&self) -> Result<Option<Owner>> {
        get(&self.database.begin_read()?.open_table(META)?, OWNER)
    }

    /// One change, synced before this is ready. What it answers is given back.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&WriteTransaction) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (give, take) = oneshot::channel();
        let change = move |write: &WriteTransaction| {
            let value = change(write)?;
            // Whoever went away does not want to know.
            drop(give.send(value));
            Ok(())
        };
        self.scribe.write(Durability::Immediate, change).await?;
        take.await.map_err(|_gone| JournalError::Ended)
    }
}

/// Writes down whose the store is; gives whose it is if that does not fit.
fn own(database: &Database, wanted: &Owner) -> Result<Option<Owner>> {
    let write = database.begin_write()?;
    prepare(&write)?;
    let found: Option<Owner> = get(&write.open_table(META)?, OWNER)?;
    if let Some(found) = found {
        let is_of_chain =
            found.chain.is_none() || wanted.chain.is_none() || found.chain == wanted.chain;
        if !is_of_chain || found.wallet != wanted.wallet || found.format != wanted.format {
            return Ok(Some(found));
        }
        if found.chain.is_some() {
            write.commit()?;
            return Ok(None);
        }
    }
    put(&mut write.open_table(META)?, OWNER, wanted)?;
    write.commit()?;
    Ok(None)
}

fn described(owner: &Owner) -> String {
    let Owner { format, wallet, chain } = owner;
    let chain = chain.as_ref().map_or_else(
        || "any chain".to_owned(),
        |(id, genesis)| format!("chain {id} with genesis {genesis}"),
    );
    format!("wallet {wallet}, {chain}, format {format}")
}

/// The rows of a table that is read.
fn rows<K: redb::Key + 'static, T: serde::de::DeserializeOwned>(
    table: &impl ReadableTable<K, &'static [u8]>,
) -> Result<Vec<T>> {
    table.iter()?.map(|row| read(row?.1.value())).collect()
}
