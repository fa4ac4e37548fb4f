//! What a table is: a name, a key with order-preserving bytes, a value with one binary form.

use std::cmp::Ordering;

use serde::Serialize;
use serde::de::DeserializeOwned;
use types::agent::ExecutorId;
use types::codec::{self, DecodeError};
use types::{Address, Hash, PublicKey};

use crate::error::StorageError;

/// A typed table. Keys are stored big-endian, so that byte order is the order of the keys; a value
/// is one byte with its version, then the binary form of [`types::codec`].
pub trait Table {
    /// Which table it is.
    const ID: TableId;
    /// The version of the values that are written now. A record that gets a new field raises it
    /// and reads the old form in [`Table::decode_earlier`]; old rows stay as they are.
    const VERSION: u8 = 1;
    /// The key.
    type Key: Key;
    /// The value.
    type Value: Serialize + DeserializeOwned;

    /// The lowest version that can hold a value, and how many bytes the fields take at its end that later
    /// versions added, which all say nothing: zeros. Such a value is written without them, so that a new
    /// program gives the records of an old one the same bytes. None if the value needs the last version.
    fn lower_version(value: &Self::Value) -> Option<(u8, usize)> {
        let _ = value;
        None
    }

    /// Reads a value that an earlier version wrote; `None` if there never was such a version.
    fn decode_earlier(version: u8, bytes: &[u8]) -> Option<Result<Self::Value, DecodeError>> {
        let _ = (version, bytes);
        None
    }
}

/// The stored bytes of a value.
#[must_use]
pub fn encode_value<T: Table>(value: &T::Value) -> Vec<u8> {
    let mut bytes = codec::encode(&(T::VERSION, value));
    if let Some((lower, absent)) = T::lower_version(value)
        && let Some(version) = bytes.first_mut()
    {
        *version = lower;
        bytes.truncate(bytes.len().saturating_sub(absent));
    }
    bytes
}

/// Reads a value of the version before one that appended fields which take so many bytes if they say
/// nothing.
///
/// # Errors
/// [`DecodeError`] if the bytes are no such value.
pub fn decode_shorter<T: Table>(bytes: &[u8], absent: usize) -> Result<T::Value, DecodeError> {
    let length = bytes.len().saturating_add(absent);
    // Execution reads such values again and again, and nearly all of them fit.
    let mut short = [0_u8; codec::SHORT_BYTES];
    if let Some(whole) = short.get_mut(..length)
        && let Some(start) = whole.get_mut(..bytes.len())
    {
        start.copy_from_slice(bytes);
        return codec::decode(whole);
    }
    let mut whole = Vec::with_capacity(length);
    whole.extend_from_slice(bytes);
    whole.resize(length, 0);
    codec::decode(&whole)
}

/// The value of stored bytes.
///
/// # Errors
/// [`StorageError`] if they are not a value of the table in a version that is known.
pub fn decode_value<T: Table>(bytes: &[u8]) -> Result<T::Value, StorageError> {
    let table = T::ID.name;
    let Some((&version, rest)) = bytes.split_first() else {
        return Err(StorageError::Inconsistent { what: "a stored value is empty" });
    };
    let value = if version == T::VERSION {
        codec::decode(rest)
    } else {
        T::decode_earlier(version, rest).ok_or(StorageError::ValueVersion {
            table,
            found: version,
            expected: T::VERSION,
        })?
    };
    value.map_err(|source| StorageError::Decode { table, source })
}

/// What is in a stored value that is bytes, without a copy of them.
///
/// # Errors
/// [`StorageError`] if it is not a value of the table in the version that is written now.
pub fn bytes_of_value<T: Table<Value = Vec<u8>>>(stored: &[u8]) -> Result<&[u8], StorageError> {
    const BROKEN: StorageError =
        StorageError::Inconsistent { what: "stored bytes do not have their stated length" };
    let (_, rest) = stored.split_first().filter(|(it, _)| **it == T::VERSION).ok_or(BROKEN)?;
    let (length, bytes) = rest.split_first_chunk::<8>().ok_or(BROKEN)?;
    let is_whole = u64::try_from(bytes.len()).is_ok_and(|it| it == u64::from_le_bytes(*length));
    if is_whole { Ok(bytes) } else { Err(BROKEN) }
}

/// Bytes of a key. Fixed-width parts keep their order; a text can only be the last part.
pub trait Key: Sized {
    /// Appends the key's bytes.
    fn write(&self, out: &mut Vec<u8>);

    /// Reads the key from the front of `bytes` and shortens `bytes` by it. `None` if it is cut off.
    fn read(bytes: &mut &[u8]) -> Option<Self>;

    /// The key's bytes.
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(48);
        self.write(&mut out);
        out
    }

    /// The key of exactly these bytes.
    fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let key = Self::read(&mut bytes)?;
        bytes.is_empty().then_some(key)
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = bytes.split_first_chunk::<N>()?;
    *bytes = tail;
    Some(*head)
}

impl Key for () {
    fn write(&self, _: &mut Vec<u8>) {}

    fn read(_: &mut &[u8]) -> Option<Self> {
        Some(())
    }
}

impl Key for u8 {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        take::<1>(bytes).map(|[byte]| byte)
    }
}

impl Key for u32 {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_be_bytes());
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        take(bytes).map(Self::from_be_bytes)
    }
}

impl Key for u64 {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_be_bytes());
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        take(bytes).map(Self::from_be_bytes)
    }
}

impl Key for Hash {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        take(bytes).map(Self::new)
    }
}

impl Key for Address {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        take(bytes).map(Self::new)
    }
}

impl Key for PublicKey {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        take(bytes).map(Self::new)
    }
}

/// A byte for the form, then a hash.
impl Key for ExecutorId {
    fn write(&self, out: &mut Vec<u8>) {
        let (form, hash) = self.to_parts();
        form.write(out);
        hash.write(out);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        Self::from_parts(u8::read(bytes)?, Hash::read(bytes)?)
    }
}

/// A text takes the rest of the key: it must be the last part.
impl Key for String {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let text = Self::from_utf8(bytes.to_vec()).ok()?;
        *bytes = &[];
        Some(text)
    }
}

impl<A: Key, B: Key> Key for (A, B) {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        Some((A::read(bytes)?, B::read(bytes)?))
    }
}

impl<A: Key, B: Key, C: Key> Key for (A, B, C) {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
        self.2.write(out);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        Some((A::read(bytes)?, B::read(bytes)?, C::read(bytes)?))
    }
}

/// The name of a table and how the database treats it. Two ids with the same number are the same
/// table.
#[derive(Clone, Copy, Debug)]
pub struct TableId {
    /// The table's place among all tables: cheap to compare. Below 64: tables of execution
    /// ([`crate::tables`]); from 64: tables of the database alone.
    pub number: u8,
    /// The column family.
    pub name: &'static str,
    /// Tables with a tag are authenticated: every row is a leaf of the state tree under
    /// `sha256(tag ‖ key)`, with `sha256(value)` bound to it.
    pub tag: Option<u8>,
}

impl TableId {
    /// A table that is not authenticated.
    #[must_use]
    pub const fn plain(number: u8, name: &'static str) -> Self {
        Self { number, name, tag: None }
    }

    /// A table whose rows are leaves of the state tree.
    #[must_use]
    pub const fn authenticated(number: u8, name: &'static str, tag: u8) -> Self {
        Self { number, name, tag: Some(tag) }
    }
}

impl PartialEq for TableId {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for TableId {}

impl std::hash::Hash for TableId {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl PartialOrd for TableId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TableId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.number.cmp(&other.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::BlobChunks;

    #[test]
    fn bytes_are_read_in_place_as_they_are_decoded() {
        for bytes in [vec![], vec![7], vec![1; 700]] {
            let mut stored = encode_value::<BlobChunks>(&bytes);
            assert_eq!(bytes_of_value::<BlobChunks>(&stored).unwrap(), bytes);
            assert_eq!(decode_value::<BlobChunks>(&stored).unwrap(), bytes);
            stored.push(0);
            assert!(bytes_of_value::<BlobChunks>(&stored).is_err());
            assert!(bytes_of_value::<BlobChunks>(&stored[..5]).is_err());
        }
    }
}
