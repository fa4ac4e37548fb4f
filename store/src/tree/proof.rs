//! Proofs that a row is, or is not, in the state of a height; checked without a database.

use serde::{Deserialize, Serialize};
use state::error::StorageError;
use state::table::TableId;
use types::{Hash, codec};

use super::hash::{self, EMPTY_ROOT, bit, inner, key_hash};
use super::update::{NodeSource, Reader, Tree};

/// The leaf at the end of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProofLeaf {
    /// `sha256(tag ‖ row key)`.
    pub key_hash: Hash,
    /// `sha256(row value)`.
    pub value_hash: Hash,
}

/// A path from a leaf, or from an empty place, up to a root.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Proof {
    /// What stands where the key leads: the row's own leaf, the leaf of another key whose subtree
    /// the row would have to share, or nothing.
    pub leaf: Option<ProofLeaf>,
    /// The hash of the other side at each level, from the leaf upwards; the number of levels is at
    /// most 256.
    pub siblings: Vec<Hash>,
}

/// Why a proof proves nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProofError {
    /// The table has no leaves in the tree.
    #[error("rows of table {table} are not authenticated")]
    Table {
        /// The table's name.
        table: &'static str,
    },
    /// More levels than a key has bits.
    #[error("the proof has {levels} levels, at most 256 are possible")]
    Levels {
        /// How many there are.
        levels: usize,
    },
    /// The leaf is not the row's.
    #[error("the leaf is that of key {found}, not {expected}")]
    Key {
        /// The leaf's key hash.
        found: Hash,
        /// The row's key hash.
        expected: Hash,
    },
    /// The row has another value.
    #[error("the leaf has value hash {found}, the value has {expected}")]
    Value {
        /// The leaf's value hash.
        found: Hash,
        /// The value's hash.
        expected: Hash,
    },
    /// A value was claimed and the path ends without its leaf.
    #[error("the proof is a proof of absence, but a value was given")]
    Absent,
    /// Absence was claimed and the path ends in the row's leaf.
    #[error("the proof is a proof of presence, but no value was given")]
    Present,
    /// The other leaf is not on the row's path.
    #[error("the leaf shares {shared} bits with the key, the path has {levels}")]
    Elsewhere {
        /// Common leading bits.
        shared: usize,
        /// Levels of the path.
        levels: usize,
    },
    /// The path leads to another root.
    #[error("the path leads to root {found}, not {expected}")]
    Root {
        /// The root of the path.
        found: Hash,
        /// The root of the header.
        expected: Hash,
    },
}

impl Proof {
    /// Checks that under `root` the row `key` of `table` has the stored bytes `value`, or, with
    /// `None`, that it does not exist.
    ///
    /// # Errors
    /// [`ProofError`] says what does not fit.
    pub fn verify(
        &self,
        root: Hash,
        table: TableId,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<(), ProofError> {
        let key = key_hash(table, key).ok_or(ProofError::Table { table: table.name })?;
        let levels = self.siblings.len();
        if levels > 256 {
            return Err(ProofError::Levels { levels });
        }
        self.check_leaf(key, value)?;
        let start = self.leaf.map_or(EMPTY_ROOT, |leaf| leaf.hash());
        let found =
            self.siblings.iter().zip((0..levels).rev()).fold(start, |hash, (other, level)| {
                if bit(&key, level) { inner(other, &hash) } else { inner(&hash, other) }
            });
        if found == root { Ok(()) } else { Err(ProofError::Root { found, expected: root }) }
    }

    fn check_leaf(&self, key: Hash, value: Option<&[u8]>) -> Result<(), ProofError> {
        match (value, self.leaf) {
            (Some(value), Some(leaf)) => {
                if leaf.key_hash != key {
                    return Err(ProofError::Key { found: leaf.key_hash, expected: key });
                }
                let expected = Hash::digest(value);
                if leaf.value_hash != expected {
                    return Err(ProofError::Value { found: leaf.value_hash, expected });
                }
                Ok(())
            }
            (Some(_), None) => Err(ProofError::Absent),
            (None, Some(leaf)) if leaf.key_hash == key => Err(ProofError::Present),
            (None, Some(leaf)) => {
                let shared =
                    (0..256).take_while(|at| bit(&leaf.key_hash, *at) == bit(&key, *at)).count();
                let levels = self.siblings.len();
                if shared < levels { Err(ProofError::Elsewhere { shared, levels }) } else { Ok(()) }
            }
            (None, None) => Ok(()),
        }
    }
}

impl ProofLeaf {
    fn hash(&self) -> Hash {
        hash::leaf(&self.key_hash, &self.value_hash)
    }
}

/// A row's value, if it exists, and the proof of either.
pub(crate) type Proved = (Option<Vec<u8>>, Proof);

/// The row's value at `version` and its proof; `None` if that version is not kept any more.
pub(crate) fn prove(
    source: &dyn NodeSource,
    version: u64,
    key: Hash,
) -> Result<Option<Proved>, StorageError> {
    let reader = Reader::new(source);
    let answer = Tree::new(&reader).get_with_proof(jmt::KeyHash(*key.as_bytes()), version);
    let (value, proof) = match answer {
        Ok(answer) => answer,
        Err(error) if error.is::<jmt::MissingRootError>() => return Ok(None),
        Err(error) => return Err(StorageError::Tree(error.into())),
    };
    Ok(Some((value, plain(&proof)?)))
}

/// The fields of jmt's proof, in its serialised order: they have no public names.
#[derive(Deserialize)]
struct Fields {
    leaf: Option<([u8; 32], [u8; 32])>,
    siblings: Vec<Sibling>,
    _hasher: (),
}

#[derive(Deserialize)]
enum Sibling {
    Null,
    Internal([u8; 32], [u8; 32]),
    Leaf([u8; 32], [u8; 32]),
}

fn plain(proof: &impl Serialize) -> Result<Proof, StorageError> {
    let fields: Fields = codec::decode(&codec::encode(proof))
        .map_err(|source| StorageError::Decode { table: "tree_nodes", source })?;
    let leaf = |(key, value)| ProofLeaf { key_hash: Hash::new(key), value_hash: Hash::new(value) };
    let siblings = fields.siblings.into_iter().map(|sibling| match sibling {
        Sibling::Null => EMPTY_ROOT,
        Sibling::Internal(left, right) => inner(&Hash::new(left), &Hash::new(right)),
        Sibling::Leaf(key, value) => leaf((key, value)).hash(),
    });
    Ok(Proof { leaf: fields.leaf.map(leaf), siblings: siblings.collect() })
}
