//! What the journal has of signed transactions whose fate is not known.

use std::collections::BTreeSet;

use redb::{ReadableDatabase, ReadableTable};

use super::Journal;
use super::entry::Parcel;
use super::tables::{OUTBOX, Result, read};

impl Journal {
    /// The nonces of the signed transactions whose fate is not known.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn nonces(&self) -> Result<BTreeSet<u64>> {
        let table = self.database.begin_read()?.open_table(OUTBOX)?;
        table.iter()?.map(|row| Ok(row?.0.value())).collect()
    }

    /// The signed transactions whose fate is not known, by nonce.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn outbox(&self) -> Result<Vec<Parcel>> {
        let table = self.database.begin_read()?.open_table(OUTBOX)?;
        table.iter()?.map(|row| read(row?.1.value())).collect()
    }

    /// The signed transaction with this nonce, while its fate is not known.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn parcel(&self, nonce: u64) -> Result<Option<Parcel>> {
        let table = self.database.begin_read()?.open_table(OUTBOX)?;
        table.get(nonce)?.map(|row| read(row.value())).transpose()
    }
}
