//! Rows as their tables have them.

use state::error::StorageError;
use state::table::{Key, Table, decode_value};

/// The key and the value of a row.
pub(super) fn typed<T: Table>(
    key: &[u8],
    value: &[u8],
) -> Result<(T::Key, T::Value), StorageError> {
    let key = T::Key::from_bytes(key)
        .ok_or(StorageError::Inconsistent { what: "a key has the wrong length" })?;
    Ok((key, decode_value::<T>(value)?))
}
