//! The tables, and their rows.

use std::borrow::Borrow;

use miner::journal::JournalError;
use redb::{Key, ReadableTable, Table, TableDefinition, WriteTransaction};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use types::{Address, Hash};

use crate::record::{Purpose, RequestId};

pub(super) type Result<T> = std::result::Result<T, JournalError>;
/// A table whose values are JSON.
type Json<K> = TableDefinition<'static, K, &'static [u8]>;

pub(super) const META: Json<&str> = TableDefinition::new("meta");
pub(super) const KEYS: Json<u64> = TableDefinition::new("keys");
pub(super) const HASHES: TableDefinition<'static, [u8; 32], u64> = TableDefinition::new("hashes");
pub(super) const TALLIES: Json<u64> = TableDefinition::new("tallies");
pub(super) const DAYS: Json<(u64, u64)> = TableDefinition::new("days");
pub(super) const REQUESTS: Json<u64> = TableDefinition::new("requests");
pub(super) const OPEN: TableDefinition<'static, u64, ()> = TableDefinition::new("open");
pub(super) const NAMES: TableDefinition<'static, (u64, [u8; 32]), u64> =
    TableDefinition::new("names");
pub(super) const BODIES: TableDefinition<'static, (u64, [u8; 32], u64), ()> =
    TableDefinition::new("bodies");
pub(super) const RUNS: TableDefinition<'static, [u8; 32], u64> = TableDefinition::new("runs");
pub(super) const OUTBOX: Json<u64> = TableDefinition::new("outbox");
pub(super) const LOOSE: Json<u64> = TableDefinition::new("loose");

/// The row of [`META`] with the owner.
pub(super) const OWNER: &str = "owner";
/// The row of [`META`] with the next numbers.
pub(super) const NEXT: &str = "next";

/// The row of [`META`] with how the wallet stood at the first start.
pub(super) const OPENING: &str = "opening";

/// How the wallet stood when the books were opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opening {
    /// What it had, micro-OMBRA.
    pub balance_micro: u64,
    /// After which block.
    pub height: u64,
}

/// Whose store it is, and of which chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    /// The form of the rows.
    pub format: u32,
    /// The wallet that pays.
    pub wallet: Address,
    /// The chain, once the gateway has worked on one.
    pub chain: Option<(String, Hash)>,
}

/// The next numbers.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Next {
    pub(super) key: u64,
    pub(super) request: u64,
    /// The last request that no other can repeat any more: it is in no table of repetitions.
    #[serde(default)]
    pub(super) forgotten: u64,
}

/// What a signed transaction is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// A request.
    Request {
        /// Which.
        id: RequestId,
        /// What it is for.
        purpose: Purpose,
    },
    /// Nothing: it takes the nonce of a transaction that was refused, for those after it.
    Filler,
    /// TRANSFER of what the wallet has to somebody else.
    Drain {
        /// Who gets it.
        to: Address,
        /// How much, micro-OMBRA.
        micro: u64,
    },
}

/// A signed transaction whose fate is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Post {
    pub(super) hash: Hash,
    pub(super) text: String,
    pub(super) about: About,
}

/// A transaction of no request that is in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loose {
    /// Its hash.
    pub hash: Hash,
    /// What it was about.
    pub about: About,
}

/// Makes the tables that are missing.
pub(super) fn prepare(write: &WriteTransaction) -> Result<()> {
    write.open_table(META)?;
    write.open_table(KEYS)?;
    write.open_table(HASHES)?;
    write.open_table(TALLIES)?;
    write.open_table(DAYS)?;
    write.open_table(REQUESTS)?;
    write.open_table(OPEN)?;
    write.open_table(NAMES)?;
    write.open_table(BODIES)?;
    write.open_table(RUNS)?;
    write.open_table(OUTBOX)?;
    write.open_table(LOOSE)?;
    Ok(())
}

/// A row, if there is one.
pub(super) fn get<'a, K: Key + 'static, T: DeserializeOwned>(
    table: &impl ReadableTable<K, &'static [u8]>,
    key: impl Borrow<K::SelfType<'a>>,
) -> Result<Option<T>> {
    table.get(key)?.map(|row| read(row.value())).transpose()
}

/// Writes a row.
pub(super) fn put<'a, K: Key + 'static, T: Serialize>(
    table: &mut Table<'_, K, &'static [u8]>,
    key: impl Borrow<K::SelfType<'a>>,
    value: &T,
) -> Result<()> {
    let bytes = serde_json::to_vec(value).map_err(JournalError::Unwritable)?;
    table.insert(key, bytes.as_slice())?;
    Ok(())
}

pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(JournalError::Damaged)
}

/// The rows of a table that is read.
pub(super) fn rows<K: Key + 'static, T: DeserializeOwned>(
    table: &impl ReadableTable<K, &'static [u8]>,
) -> Result<Vec<T>> {
    table.iter()?.map(|row| read(row?.1.value())).collect()
}
