//! Opaque cursors: a position in a list, as text.
//!
//! A cursor is base64url of one tag byte and the position's bytes, big-endian. It names a place in
//! the chain or a key, never a count, so new blocks move nothing.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use types::agent::ExecutorId;
use types::{Address, Amount, Hash, PublicKey, TxLocation};

use crate::error::RpcError;
use crate::ports::OfferPlace;

/// A place in a list from which the next page goes on.
pub(crate) trait Position: Sized {
    /// Tells the positions of different lists apart.
    const TAG: u8;

    fn write(&self, out: &mut Vec<u8>);
    fn read(bytes: &[u8]) -> Option<Self>;
}

impl Position for TxLocation {
    const TAG: u8 = 1;

    fn write(&self, out: &mut Vec<u8>) {
        let Self { height, position } = self;
        out.extend_from_slice(&height.to_be_bytes());
        out.extend_from_slice(&position.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (height, rest) = bytes.split_first_chunk()?;
        let position = u32::from_be_bytes(rest.try_into().ok()?);
        Some(Self { height: u64::from_be_bytes(*height), position })
    }
}

impl Position for u64 {
    const TAG: u8 = 2;

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self::from_be_bytes(bytes.try_into().ok()?))
    }
}

impl Position for Address {
    const TAG: u8 = 3;

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self::new(bytes.try_into().ok()?))
    }
}

impl Position for PublicKey {
    const TAG: u8 = 4;

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self::new(bytes.try_into().ok()?))
    }
}

impl Position for OfferPlace {
    const TAG: u8 = 5;

    fn write(&self, out: &mut Vec<u8>) {
        let Self { miner, executor, bonded } = self;
        let (form, hash) = executor.to_parts();
        out.extend_from_slice(miner.as_bytes());
        out.push(form);
        out.extend_from_slice(hash.as_bytes());
        out.extend_from_slice(&bonded.get().to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (miner, rest) = bytes.split_first_chunk()?;
        let (form, rest) = rest.split_first()?;
        let (hash, rest) = rest.split_first_chunk()?;
        let bonded = u64::from_be_bytes(rest.try_into().ok()?);
        Some(Self {
            miner: Address::new(*miner),
            executor: ExecutorId::from_parts(*form, Hash::new(*hash))?,
            bonded: Amount::new(bonded),
        })
    }
}

impl Position for Hash {
    const TAG: u8 = 6;

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self::new(bytes.try_into().ok()?))
    }
}

/// A version of an agent.
impl Position for String {
    const TAG: u8 = 7;

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Self::from_utf8(bytes.to_vec()).ok()
    }
}

/// The text of a position.
pub(crate) fn encode<P: Position>(position: &P) -> String {
    let mut bytes = vec![P::TAG];
    position.write(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The position of a text that this node gave.
pub(crate) fn decode<P: Position>(text: &str) -> Result<P, RpcError> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok();
    bytes
        .as_deref()
        .and_then(<[u8]>::split_first)
        .filter(|(tag, _)| **tag == P::TAG)
        .and_then(|(_, rest)| P::read(rest))
        .ok_or_else(|| RpcError::invalid("cursor", text, "the nextCursor of an earlier page"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_and_only_for_its_own_list() {
        let location = TxLocation { height: 7, position: 3 };
        let text = encode(&location);
        assert_eq!(Ok(location), decode(&text));
        assert!(decode::<u64>(&text).is_err());
        assert!(decode::<Address>(&text).is_err());
        assert_eq!(Ok(9_u64), decode(&encode(&9_u64)));
        for rubbish in ["", "!", "AQ", "AQAAAAAAAAAHAAAAAwA"] {
            assert!(decode::<TxLocation>(rubbish).is_err(), "{rubbish}");
        }
    }
}
