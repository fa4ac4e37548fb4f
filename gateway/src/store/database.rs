//! The file of the store: whose it is, and how it is changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::clock::Clock;
use miner::journal::{JournalError, JournalWriter};
use redb::{Database, Durability, ReadableDatabase, WriteTransaction};
use tokio::sync::oneshot;
use types::Address;
use wallet::ChainIdentity;

use super::tables::{META, OPENING, OWNER, Opening, Owner, Result, get, prepare, put};
use crate::operate::{Counters, Meter};

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
    #[error("{} belongs to {found}; expected {wanted}", path.display())]
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
    pub(super) database: Arc<Database>,
    pub(super) writer: JournalWriter,
    pub(super) clock: Arc<dyn Clock>,
    pub(crate) meter: Meter,
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
        chain: Option<&ChainIdentity>,
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
        let writer = JournalWriter::start(Arc::clone(&database)).map_err(failed)?;
        Ok(Self { database, writer, clock, meter: Meter::default() })
    }

    /// The same, with somebody who counts what happens.
    #[must_use]
    pub fn counted_by(self, counters: Arc<dyn Counters>) -> Self {
        Self { meter: Meter::of(counters), ..self }
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
    pub(super) async fn change<T: Send + 'static>(
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
        self.writer.write(Durability::Immediate, change).await?;
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
