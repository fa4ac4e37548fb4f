//! The tables of runs and transactions, and the form of their records.

use redb::TableDefinition;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::JournalError;

pub(super) const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
pub(super) const RUNS: TableDefinition<'_, [u8; 32], &[u8]> = TableDefinition::new("runs");
pub(super) const OPEN: TableDefinition<'_, [u8; 32], ()> = TableDefinition::new("open");
pub(super) const OFFERS: TableDefinition<'_, [u8; 32], &[u8]> = TableDefinition::new("offers");
pub(super) const STEPS: TableDefinition<'_, ([u8; 32], u64), &[u8]> = TableDefinition::new("steps");
pub(super) const OUTBOX: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("outbox");
pub(super) const DAYS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("days");

/// What reading and writing give.
pub(super) type Result<T> = std::result::Result<T, JournalError>;

/// A record as it is written.
pub(super) fn json<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(JournalError::Unwritable)
}

/// A record that was written.
pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(JournalError::Damaged)
}
