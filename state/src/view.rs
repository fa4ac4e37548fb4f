//! Reading: raw bytes below, typed rows above.

use std::sync::Arc;

use crate::error::StorageError;
use crate::table::{Key, Table, TableId, decode_value};

/// One row: key and value.
pub type Row<T> = (<T as Table>::Key, <T as Table>::Value);

/// One row as bytes: key and value.
pub type RawRow = (Vec<u8>, Vec<u8>);

/// A bounded stretch of one table.
#[derive(Clone, Copy, Debug)]
pub struct Range<'a> {
    /// The first key that may be answered.
    pub from: &'a [u8],
    /// The first key that is not; `None` is the end of the table.
    pub to: Option<&'a [u8]>,
    /// The most rows.
    pub limit: usize,
}

/// A state that can be read: the database, a snapshot of it, a draft over either, or memory.
pub trait Read: Send + Sync {
    /// The value of a key.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    fn get_raw(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError>;

    /// Whether a key has a value.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    fn contains_raw(&self, table: TableId, key: &[u8]) -> Result<bool, StorageError> {
        self.get_raw(table, key).map(|value| value.is_some())
    }

    /// Rows of a range in ascending order of their keys.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    fn scan_raw(&self, table: TableId, range: Range<'_>) -> Result<Vec<RawRow>, StorageError>;
}

/// A state that stands still: that of one height, whatever is committed meanwhile. What asks many
/// questions one after the other, and must get answers that fit together, takes nothing else. Cheap to
/// clone.
#[derive(Clone)]
pub struct Still(Arc<dyn Read>);

impl Still {
    /// The caller vouches for it that no answer of `source` ever changes.
    #[must_use]
    pub fn vouched(source: Arc<dyn Read>) -> Self {
        Self(source)
    }

    /// The raw source.
    #[must_use]
    pub const fn source(&self) -> &Arc<dyn Read> {
        &self.0
    }
}

impl std::fmt::Debug for Still {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Still")
    }
}

/// The typed handle for reading. Cheap to clone.
#[derive(Clone)]
pub struct View(Arc<dyn Read>);

impl View {
    /// A view of `source`.
    #[must_use]
    pub fn new(source: Arc<dyn Read>) -> Self {
        Self(source)
    }

    /// The raw source.
    #[must_use]
    pub fn source(&self) -> &dyn Read {
        &*self.0
    }

    /// The value of a key.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or the value does not decode.
    pub fn get<T: Table>(&self, key: &T::Key) -> Result<Option<T::Value>, StorageError> {
        get::<T>(&*self.0, key)
    }
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("View")
    }
}

/// The typed value of a key.
///
/// # Errors
/// [`StorageError`] if the database fails or the value does not decode.
pub fn get<T: Table>(source: &dyn Read, key: &T::Key) -> Result<Option<T::Value>, StorageError> {
    let Some(bytes) = source.get_raw(T::ID, &key.to_bytes())? else { return Ok(None) };
    decode_value::<T>(&bytes).map(Some)
}

/// Whether a key has a value.
///
/// # Errors
/// [`StorageError`] if the database fails.
pub fn contains<T: Table>(source: &dyn Read, key: &T::Key) -> Result<bool, StorageError> {
    source.contains_raw(T::ID, &key.to_bytes())
}

/// Typed rows of a range in ascending order.
///
/// # Errors
/// [`StorageError`] if the database fails or a row does not decode.
pub fn scan<T: Table>(source: &dyn Read, range: Range<'_>) -> Result<Vec<Row<T>>, StorageError> {
    let rows = source.scan_raw(T::ID, range)?;
    rows.into_iter()
        .map(|(key, value)| {
            let key = T::Key::from_bytes(&key)
                .ok_or(StorageError::Inconsistent { what: "a key has the wrong length" })?;
            Ok((key, decode_value::<T>(&value)?))
        })
        .collect()
}
