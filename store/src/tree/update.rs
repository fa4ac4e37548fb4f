//! From the changed rows of a block to the next root.

use std::cell::RefCell;
use std::collections::BTreeMap;

use bytes::Bytes;
use jmt::storage::{LeafNode, Node, NodeKey, TreeReader, TreeUpdateBatch};
use jmt::{JellyfishMerkleTree, KeyHash, OwnedValue, RootHash, Version};
use state::draft::Changes;
use state::error::StorageError;
use types::Hash;

use super::hash::key_hash;
use super::hasher::TreeHasher;
use super::node::{self, Stored};

pub(super) type Tree<'a> = JellyfishMerkleTree<'a, Reader<'a>, TreeHasher>;

/// Where the nodes of earlier versions are.
pub(crate) trait NodeSource {
    /// The bytes of a node.
    fn node(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError>;
}

/// What a block does to the tree.
#[derive(Debug)]
pub(crate) struct TreeUpdate {
    /// The root of the new version.
    pub(crate) root: Hash,
    /// New nodes: key and bytes, in ascending order.
    pub(crate) nodes: Vec<(Vec<u8>, Box<[u8]>)>,
    /// Keys of nodes that only earlier versions need, in ascending order.
    pub(crate) stale: Vec<Vec<u8>>,
}

impl TreeUpdate {
    /// The stale keys as one value.
    pub(crate) fn stale_value(&self) -> Vec<u8> {
        node::encode_keys(self.stale.iter().map(Vec::as_slice))
    }

    /// The keys of [`TreeUpdate::stale_value`].
    pub(crate) fn stale_keys(value: &[u8]) -> Result<Vec<&[u8]>, StorageError> {
        node::decode_keys(value)
    }
}

/// Reads nodes for `jmt` and keeps the leaves that it saw, with their values.
pub(super) struct Reader<'a> {
    source: &'a dyn NodeSource,
    leaves: RefCell<BTreeMap<[u8; 32], Bytes>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(source: &'a dyn NodeSource) -> Self {
        Self { source, leaves: RefCell::default() }
    }
}

impl TreeReader for Reader<'_> {
    fn get_node_option(&self, key: &NodeKey) -> anyhow::Result<Option<Node>> {
        let Some(bytes) = self.source.node(&node::encode_key(key))? else { return Ok(None) };
        let stored = node::decode(&bytes)?;
        let Stored { node, leaf } = stored;
        if let Some((key_hash, value)) = leaf {
            self.leaves.borrow_mut().insert(key_hash, bytes.slice_ref(value));
        }
        Ok(Some(node))
    }

    fn get_value_option(&self, _: Version, key: KeyHash) -> anyhow::Result<Option<OwnedValue>> {
        // Only asked for a leaf that was read just before.
        Ok(self.leaves.borrow().get(&key.0).map(|value| value.to_vec()))
    }

    fn get_rightmost_leaf(&self) -> anyhow::Result<Option<(NodeKey, LeafNode)>> {
        anyhow::bail!("the rightmost leaf is only asked for when a tree is restored leaf by leaf")
    }
}

/// Changed leaves by key hash; `None` deletes.
type Leaves<'a> = BTreeMap<[u8; 32], Option<&'a [u8]>>;

/// Applies the changes of block `version` to the tree of `version - 1`.
pub(crate) fn update(
    source: &dyn NodeSource,
    version: u64,
    changes: &Changes,
) -> Result<TreeUpdate, StorageError> {
    let mut leaves = Leaves::new();
    for (table, rows) in changes {
        for (key, value) in rows {
            if let Some(hash) = key_hash(*table, key) {
                leaves.insert(*hash.as_bytes(), value.as_deref());
            }
        }
    }
    let reader = Reader::new(source);
    let (root, batch) =
        apply(&reader, version, &leaves).map_err(|error| StorageError::Tree(error.into()))?;
    let seen = reader.leaves.into_inner();
    let value_of = |hash: &[u8; 32]| match leaves.get(hash) {
        Some(changed) => *changed,
        None => seen.get(hash).map(Bytes::as_ref),
    };
    let mut nodes = Vec::with_capacity(batch.node_batch.nodes().len());
    for (key, node) in batch.node_batch.nodes() {
        let bytes = match node {
            Node::Leaf(leaf) => {
                let hash = leaf.key_hash().0;
                let value = value_of(&hash).ok_or(StorageError::Inconsistent {
                    what: "a leaf moved in the state tree without having been read",
                })?;
                node::encode_leaf(&hash, value)
            }
            Node::Null | Node::Internal(_) => {
                node::encode_inner(node).expect("a node that is not a leaf has a form")
            }
        };
        nodes.push((node::encode_key(key), bytes.into_boxed_slice()));
    }
    let mut stale: Vec<Vec<u8>> = batch
        .stale_node_index_batch
        .iter()
        .map(|index| node::encode_key(&index.node_key))
        .collect();
    if let Some(previous) = version.checked_sub(1) {
        // The root of every version is its own row; one that nothing replaced is forgotten by jmt.
        stale.push(node::root_key(previous));
        stale.sort_unstable();
        stale.dedup();
    }
    Ok(TreeUpdate { root, nodes, stale })
}

fn apply(
    reader: &Reader<'_>,
    version: u64,
    leaves: &Leaves<'_>,
) -> anyhow::Result<(Hash, TreeUpdateBatch)> {
    let tree = Tree::new(reader);
    let puts: Option<Vec<(KeyHash, OwnedValue)>> = leaves
        .iter()
        .map(|(hash, value)| value.map(|value| (KeyHash(*hash), value.to_vec())))
        .collect();
    let (RootHash(root), batch) = match puts {
        // Each inner node is hashed once for the whole block; the way with deletions hashes a path
        // for every row.
        Some(puts) if !puts.is_empty() => {
            let (roots, batch) = tree.batch_put_value_sets(vec![puts], None, version)?;
            let root = roots.into_iter().next();
            (root.ok_or_else(|| anyhow::anyhow!("the tree gave no root"))?, batch)
        }
        _ => {
            let rows =
                leaves.iter().map(|(hash, value)| (KeyHash(*hash), value.map(<[u8]>::to_vec)));
            tree.put_value_set(rows, version)?
        }
    };
    Ok((Hash::new(root), batch))
}
