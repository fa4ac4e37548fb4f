//! What a table is: a name, a key with order-preserving bytes, a value with one binary form.

use serde::Serialize;
use serde::de::DeserializeOwned;
use types::{Address, Hash};

/// A typed table. Keys are stored big-endian, so that byte order is the order of the keys; values
/// in the binary form of [`types::codec`].
pub trait Table {
    /// Which table it is.
    const ID: TableId;
    /// The key.
    type Key: Key;
    /// The value.
    type Value: Serialize + DeserializeOwned;
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

/// The name of a table and how the database treats it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TableId {
    /// The column family.
    pub name: &'static str,
    /// Tables with a tag are authenticated: every row is a leaf of the state tree under
    /// `sha256(tag ‖ key)`, with `sha256(value)` bound to it.
    pub tag: Option<u8>,
}
