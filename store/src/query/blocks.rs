//! Blocks, their headers, certificates and events.

use state::error::StorageError;
use state::table::Table;
use state::view::{self, Range};
use types::{Address, Block, BlockEvents, BlockFees, Hash, Header, SealedBlock};

use crate::bodies;
use crate::meta::{TIP_CELL, Tip};
use crate::row::typed;
use crate::snapshot::Snapshot;
use crate::tables::{
    BlockIds, COMMITS, EventRows, FeeFloors, FeeTotals, HeaderRow, Headers, ValidatorFigures,
    ValidatorStats,
};

/// A header with its hash.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredHeader {
    /// The block's hash.
    pub hash: Hash,
    /// The header.
    pub header: Header,
}

impl Snapshot<'_> {
    /// The end of the chain at this moment.
    ///
    /// # Errors
    /// [`StorageError::Empty`] if the chain has no genesis yet.
    pub fn tip(&self) -> Result<Tip, StorageError> {
        self.source.cell(TIP_CELL)?.ok_or(StorageError::Empty)
    }

    /// The header of a height. Height 0 has none: genesis is not a block. A database that began with
    /// a snapshot has the header of that height, but not its block.
    ///
    /// # Errors
    /// [`StorageError::History`] below that; [`StorageError`] if the database fails or the row does
    /// not decode.
    pub fn header(&self, height: u64) -> Result<Option<StoredHeader>, StorageError> {
        match self.get::<Headers>(&height)? {
            Some(row) => read_header(height, &row).map(Some),
            None => self.require(height).map(|()| None),
        }
    }

    /// The text of the header of a height, if it is there.
    pub(crate) fn header_payload(&self, height: u64) -> Result<Option<String>, StorageError> {
        Ok(self.get::<Headers>(&height)?.map(|row| row.payload))
    }

    /// Headers from `newest` (the tip if `None`) downwards, at most `limit`.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a row does not decode.
    pub fn headers(
        &self,
        newest: Option<u64>,
        limit: usize,
    ) -> Result<Vec<StoredHeader>, StorageError> {
        let to = newest.map_or([0xff; 8], |height| height.saturating_add(1).to_be_bytes());
        let mut headers = Vec::new();
        let mut fault = None;
        if limit == 0 {
            return Ok(headers);
        }
        self.source.walk_back(Headers::ID, &[], &to, |key, value| {
            let header =
                typed::<Headers>(key, value).and_then(|(height, row)| read_header(height, &row));
            match header {
                Ok(header) => headers.push(header),
                Err(error) => fault = Some(error),
            }
            fault.is_none() && headers.len() < limit
        })?;
        fault.map_or(Ok(headers), Err)
    }

    /// The height of a block.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or the row does not decode.
    pub fn height_by_hash(&self, hash: &Hash) -> Result<Option<u64>, StorageError> {
        self.get::<BlockIds>(hash)
    }

    /// A whole block.
    ///
    /// # Errors
    /// [`StorageError::History`] below [`Snapshot::earliest`]; [`StorageError`] if the database fails or the block does not decode.
    pub fn block(&self, height: u64) -> Result<Option<Block>, StorageError> {
        self.require(height)?;
        let Some(StoredHeader { header, .. }) = self.header(height)? else { return Ok(None) };
        let transactions = bodies::all(&self.source, height)?;
        as_many(&header, transactions.len())?;
        Ok(Some(Block { header, transactions }))
    }

    /// A whole block as it is shown: header, hash and the texts of its transactions.
    ///
    /// # Errors
    /// [`StorageError::History`] if it is before [`Snapshot::earliest`]; [`StorageError`] if the
    /// database fails or a row does not decode.
    pub fn sealed_block(&self, height: u64) -> Result<Option<SealedBlock>, StorageError> {
        self.require(height)?;
        let Some(StoredHeader { header, hash }) = self.header(height)? else { return Ok(None) };
        let transactions = bodies::sealed(&self.source, height)?;
        as_many(&header, transactions.len())?;
        Ok(Some(SealedBlock { header, hash, transactions }))
    }

    /// A whole block in its binary form ([`Block::encode`]), without looking into it.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn block_bytes(&self, height: u64) -> Result<Option<Vec<u8>>, StorageError> {
        Ok(self.hash_and_bytes(height)?.map(|(_, bytes)| bytes))
    }

    /// A whole block in its binary form, after the hash that its row states.
    pub(crate) fn hash_and_bytes(
        &self,
        height: u64,
    ) -> Result<Option<(Hash, Vec<u8>)>, StorageError> {
        self.require(height)?;
        let Some(HeaderRow { hash, payload }) = self.get::<Headers>(&height)? else {
            return Ok(None);
        };
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let mut bytes = [&length.to_le_bytes(), payload.as_bytes()].concat();
        bodies::append_all(&self.source, height, &mut bytes)?;
        Ok(Some((hash, bytes)))
    }

    /// The certificate that was committed with a block.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn certificate(&self, height: u64) -> Result<Option<Vec<u8>>, StorageError> {
        self.source.get(COMMITS, &height.to_be_bytes())
    }

    /// What a block did. None if there is no such block, or below [`Store::events_from`](crate::Store::events_from).
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or the row does not decode.
    pub fn events(&self, height: u64) -> Result<Option<BlockEvents>, StorageError> {
        self.get::<EventRows>(&height)
    }

    /// What the places in a block cost. None if there is no such block, or before fork v7.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or the row does not decode.
    pub fn fees(&self, height: u64) -> Result<Option<BlockFees>, StorageError> {
        self.get::<FeeTotals>(&height)
    }

    /// The lowest base fee in a block, in micro-OMBRA per KiB. None if there is no such block, before fork v7,
    /// and where a program that did not note it committed the block.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or the row does not decode.
    pub fn fee_floor(&self, height: u64) -> Result<Option<u64>, StorageError> {
        if self.fees(height)?.is_none() {
            return Ok(None);
        }
        let to = height.saturating_add(1).to_be_bytes();
        let mut found = Ok(None);
        self.source.walk_back(FeeFloors::ID, &[], &to, |key, value| {
            found = typed::<FeeFloors>(key, value).map(|(_, floor)| Some(floor));
            false
        })?;
        found
    }

    /// How a validator has done.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or the row does not decode.
    pub fn validator_stats(&self, address: &Address) -> Result<ValidatorStats, StorageError> {
        Ok(self.get::<ValidatorFigures>(address)?.unwrap_or_default())
    }

    /// How every validator that ever proposed or missed has done, at most `limit`.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a row does not decode.
    pub fn all_validator_stats(
        &self,
        limit: usize,
    ) -> Result<Vec<(Address, ValidatorStats)>, StorageError> {
        view::scan::<ValidatorFigures>(self, Range { from: &[], to: None, limit })
    }
}

fn read_header(height: u64, row: &HeaderRow) -> Result<StoredHeader, StorageError> {
    let header = Header::parse(row.payload.as_bytes())
        .map_err(|source| StorageError::Block { height, source })?;
    Ok(StoredHeader { hash: row.hash, header })
}

/// Refuses a block that lost transactions.
fn as_many(header: &Header, transactions: usize) -> Result<(), StorageError> {
    if u64::try_from(transactions).ok() == Some(header.tx_count) {
        return Ok(());
    }
    Err(StorageError::Inconsistent {
        what: "a block has more or fewer transactions than its header says",
    })
}
