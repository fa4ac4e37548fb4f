//! The engine's messages as bytes, so that a peer can send what no engine would.
//!
//! ```text
//! broadcast    length, varint | 4 * the topic's length + 1 | topic | message
//! sync         length, 4 bytes, big-endian | question or answer
//! proof        length, varint | proof
//! ```

use anyhow::Context as _;
use borsh::{BorshDeserialize, BorshSerialize};
use libp2p::identity::Keypair;

/// The topic on which nodes say how far they are.
const STATUS_TOPIC: &[u8] = b"/sync";

/// How far a node says that it is.
#[derive(BorshSerialize)]
struct Status {
    peer_id: Vec<u8>,
    tip: u64,
    earliest: u64,
}

/// Decided blocks in a row.
#[derive(Clone, Debug, BorshSerialize, BorshDeserialize)]
pub struct Answer {
    pub start: u64,
    pub blocks: Vec<Decided>,
}

/// A block and what is to prove that it was decided.
#[derive(Clone, Debug, BorshSerialize, BorshDeserialize)]
pub struct Decided {
    pub bytes: Vec<u8>,
    pub certificate: Certificate,
}

/// The precommits for a block.
#[derive(Clone, Debug, BorshSerialize, BorshDeserialize)]
pub struct Certificate {
    pub height: u64,
    pub round: Option<u32>,
    pub hash: [u8; 32],
    pub signatures: Vec<([u8; 20], [u8; 64])>,
}

impl Answer {
    /// Reads what came on the sync protocol.
    pub fn read(framed: &[u8]) -> anyhow::Result<Self> {
        let bytes = framed.get(4..).context("a length")?;
        Ok(borsh::from_slice(bytes)?)
    }

    /// As it goes over the sync protocol.
    pub fn write(&self) -> anyhow::Result<Vec<u8>> {
        framed(&borsh::to_vec(self)?)
    }
}

/// A question for the blocks from one height to another.
pub fn question(first: u64, last: u64) -> anyhow::Result<Vec<u8>> {
    framed(&[first.to_le_bytes(), last.to_le_bytes()].concat())
}

/// The heights that a question is for.
pub fn read_question(framed: &[u8]) -> Option<(u64, u64)> {
    let number = |at: usize| Some(u64::from_le_bytes(framed.get(at..at + 8)?.try_into().ok()?));
    Some((number(4)?, number(12)?))
}

/// What the node with this key says when it has the blocks up to `tip`.
pub fn status(key: [u8; 32], tip: u64) -> anyhow::Result<Vec<u8>> {
    let peer_id = Keypair::ed25519_from_bytes(key)?.public().to_peer_id().to_bytes();
    broadcast(&borsh::to_vec(&Status { peer_id, tip, earliest: 0 })?)
}

/// A message where nodes say how far they are.
pub fn broadcast(message: &[u8]) -> anyhow::Result<Vec<u8>> {
    let head = u8::try_from(STATUS_TOPIC.len() * 4 + 1)?;
    Ok(counted(&[&[head], STATUS_TOPIC, message].concat()))
}

/// Bytes after their length as a varint.
pub fn counted(bytes: &[u8]) -> Vec<u8> {
    let (mut out, mut left) = (Vec::new(), bytes.len());
    while left >= 0x80 {
        out.push(u8::try_from(left & 0x7f).unwrap_or_default() | 0x80);
        left >>= 7;
    }
    out.push(u8::try_from(left).unwrap_or_default());
    [out.as_slice(), bytes].concat()
}

/// Bytes after their length as the sync protocol has it.
pub fn framed(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let length = u32::try_from(bytes.len())?.to_be_bytes();
    Ok([length.as_slice(), bytes].concat())
}
