//! The bytes of a node and of its key.
//!
//! ```text
//! key       version u64 BE | number of nibbles u8 | nibbles, two a byte, high one first
//! empty     0
//! leaf      1 | key hash, 32 bytes | the row's value
//! internal  2 | children u16 LE, bit n = nibble n | which of them are leaves u16 LE
//!             | for each child: hash, 32 bytes | version, LEB128 | leaves below, LEB128, if internal
//! ```

use std::io::Write;

use jmt::storage::{LeafNode, Node, NodeKey};
use jmt::{KeyHash, ValueHash};
use state::error::StorageError;
use types::Hash;

use super::hasher::TreeHasher;
use super::subtree::Subtree;

const EMPTY: u8 = 0;
const LEAF: u8 = 1;
const INTERNAL: u8 = 2;

/// A node as it was stored: a leaf with its value.
#[derive(Debug)]
pub(super) struct Stored<'a> {
    pub(super) node: Node,
    /// Key hash and value of a leaf.
    pub(super) leaf: Option<([u8; 32], &'a [u8])>,
}

pub(super) fn encode_key(key: &NodeKey) -> Vec<u8> {
    let path = key.nibble_path();
    let nibbles = path.num_nibbles();
    let mut out = Vec::with_capacity(nibbles.div_ceil(2).saturating_add(9));
    out.extend_from_slice(&key.version().to_be_bytes());
    out.push(u8::try_from(nibbles).unwrap_or(u8::MAX));
    let mut nibbles = path.nibbles();
    while let Some(high) = nibbles.next() {
        let low = nibbles.next().map_or(0, u8::from);
        out.push((u8::from(high) << 4) | low);
    }
    out
}

/// The key of the root of a version.
pub(super) fn root_key(version: u64) -> Vec<u8> {
    let mut key = version.to_be_bytes().to_vec();
    key.push(0);
    key
}

/// The key of the node of a version at the first `nibbles` of a hash.
pub(super) fn path_key(version: u64, hash: &Hash, nibbles: usize) -> Vec<u8> {
    let mut key = version.to_be_bytes().to_vec();
    key.push(u8::try_from(nibbles).unwrap_or(u8::MAX));
    let path = hash.as_bytes().get(..nibbles.div_ceil(2)).unwrap_or_default();
    key.extend_from_slice(path);
    if let Some(last) = key.last_mut().filter(|_| !nibbles.is_multiple_of(2)) {
        *last &= 0xf0;
    }
    key
}

/// The bytes of an internal node whose sixteen children are all of one version.
pub(super) fn encode_children(version: u64, children: &[Subtree]) -> Vec<u8> {
    let (mut present, mut leaves) = (0_u16, 0_u16);
    for (child, nibble) in children.iter().zip(0_u32..16) {
        let bit = 1_u16.checked_shl(nibble).unwrap_or(0);
        match child.leaves {
            0 => {}
            1 => (present, leaves) = (present | bit, leaves | bit),
            _ => present |= bit,
        }
    }
    let mut out = Vec::with_capacity(children.len().saturating_mul(40).saturating_add(8));
    out.push(INTERNAL);
    out.extend_from_slice(&present.to_le_bytes());
    out.extend_from_slice(&leaves.to_le_bytes());
    for child in children.iter().filter(|child| child.leaves > 0) {
        out.extend_from_slice(child.hash.as_bytes());
        write_number(version, &mut out);
        if child.leaves > 1 {
            write_number(child.leaves, &mut out);
        }
    }
    out
}

pub(super) fn encode_leaf(key_hash: &[u8; 32], value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len().saturating_add(33));
    out.push(LEAF);
    out.extend_from_slice(key_hash);
    out.extend_from_slice(value);
    out
}

/// The bytes of a node that is not a leaf; `None` for a leaf, whose value the node does not know.
pub(super) fn encode_inner(node: &Node) -> Option<Vec<u8>> {
    match node {
        Node::Null => Some(vec![EMPTY]),
        Node::Leaf(_) => None,
        Node::Internal(internal) => {
            let (children, leaves) = internal.generate_bitmaps();
            let count = usize::try_from(children.count_ones()).unwrap_or(16);
            let mut out = Vec::with_capacity(count.saturating_mul(40).saturating_add(8));
            out.push(INTERNAL);
            out.extend_from_slice(&children.to_le_bytes());
            out.extend_from_slice(&leaves.to_le_bytes());
            for (_, child) in internal.children_sorted() {
                out.extend_from_slice(&child.hash);
                write_number(child.version, &mut out);
                if !child.is_leaf() {
                    write_number(u64::try_from(child.leaf_count()).unwrap_or(u64::MAX), &mut out);
                }
            }
            Some(out)
        }
    }
}

pub(super) fn decode(bytes: &[u8]) -> Result<Stored<'_>, StorageError> {
    let broken = || StorageError::Inconsistent { what: "a node of the state tree is malformed" };
    let (&tag, rest) = bytes.split_first().ok_or_else(broken)?;
    match tag {
        EMPTY => Ok(Stored { node: Node::Null, leaf: None }),
        LEAF => {
            let (key_hash, value) = rest.split_first_chunk::<32>().ok_or_else(broken)?;
            let node = LeafNode::new(KeyHash(*key_hash), ValueHash::with::<TreeHasher>(value));
            Ok(Stored { node: Node::Leaf(node), leaf: Some((*key_hash, value)) })
        }
        INTERNAL => {
            let node = decode_internal(rest).ok_or_else(broken)?;
            Ok(Stored { node, leaf: None })
        }
        _ => Err(broken()),
    }
}

/// The most bytes of an internal node in its borsh form: the tag, sixteen children, two counts.
const FORM_BYTES_MAX: usize = 1 + 16 * 50 + 16;

/// An internal node can only be made from its borsh form: its parts have no public names.
fn decode_internal(bytes: &[u8]) -> Option<Node> {
    let (children, rest) = bytes.split_first_chunk::<2>()?;
    let (leaves, mut rest) = rest.split_first_chunk::<2>()?;
    let (children, leaves) = (u16::from_le_bytes(*children), u16::from_le_bytes(*leaves));
    let mut buffer = [0_u8; FORM_BYTES_MAX];
    let mut form = buffer.as_mut_slice();
    let mut push = |bytes: &[u8]| form.write_all(bytes).ok();
    push(&[1])?; // Node::Internal
    let mut below = 0_u64;
    for nibble in 0..16 {
        let bit = 1_u16 << nibble;
        if children & bit == 0 {
            push(&[0])?; // Option::None
            continue;
        }
        let (hash, after) = rest.split_first_chunk::<32>()?;
        rest = after;
        push(&[1])?; // Option::Some
        push(hash)?;
        push(&read_number(&mut rest)?.to_le_bytes())?;
        if leaves & bit == 0 {
            let count = read_number(&mut rest)?;
            push(&[1])?; // NodeType::Internal
            push(&count.to_le_bytes())?;
            below = below.checked_add(count)?;
        } else {
            push(&[0])?; // NodeType::Leaf
            below = below.checked_add(1)?;
        }
    }
    push(&u64::from(children.count_ones()).to_le_bytes())?;
    push(&below.to_le_bytes())?;
    let unused = form.len();
    let form = buffer.get(..FORM_BYTES_MAX.checked_sub(unused)?)?;
    if rest.is_empty() { borsh::from_slice(form).ok() } else { None }
}

/// LEB128.
fn write_number(mut number: u64, out: &mut Vec<u8>) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            out.push(low & 0x7f);
            return;
        }
        out.push(low | 0x80);
    }
}

fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Packs keys of nodes into one value: each with its length in one byte.
pub(super) fn encode_keys<'a>(keys: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    for key in keys {
        out.push(u8::try_from(key.len()).unwrap_or(u8::MAX));
        out.extend_from_slice(key);
    }
    out
}

/// The keys that [`encode_keys`] packed.
pub(super) fn decode_keys(mut bytes: &[u8]) -> Result<Vec<&[u8]>, StorageError> {
    let broken = || StorageError::Inconsistent { what: "a list of stale nodes is malformed" };
    let mut keys = Vec::new();
    while let Some((&length, rest)) = bytes.split_first() {
        let (key, after) = rest.split_at_checked(usize::from(length)).ok_or_else(broken)?;
        keys.push(key);
        bytes = after;
    }
    Ok(keys)
}
