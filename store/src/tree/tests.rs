//! The tree against a second implementation of its rules, over random histories.

#![expect(clippy::arithmetic_side_effects, reason = "small numbers of a test")]

use std::cell::RefCell;
use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use state::draft::Changes;
use state::error::StorageError;
use state::table::{Table, TableId};
use state::tables::{Accounts, Blobs, Runs, Steps};
use types::Hash;

use super::{EMPTY_ROOT, NodeSource, ProofError, TreeUpdate, key_hash, prove, update};

/// A key that begins like this chooses the first bits of its own hash, with the two bytes that follow.
pub(crate) const CHOOSES: [u8; 6] = *b"prefix";

/// The hash of a key, with the bits that the key chooses.
pub(crate) fn prefixed(key: &[u8], hash: Hash) -> Hash {
    let Some([first, second, ..]) = key.strip_prefix(&CHOOSES) else { return hash };
    let mut bytes = *hash.as_bytes();
    [bytes[0], bytes[1]] = [*first, *second];
    Hash::new(bytes)
}

/// How many versions before the newest stay provable here.
const KEPT: u64 = 3;

/// Nodes in memory.
#[derive(Default)]
pub(crate) struct Nodes {
    pub(crate) nodes: RefCell<BTreeMap<Vec<u8>, Bytes>>,
    stale: RefCell<BTreeMap<u64, Vec<u8>>>,
}

impl NodeSource for Nodes {
    fn node(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        Ok(self.nodes.borrow().get(key).cloned())
    }
}

impl Nodes {
    /// Applies a version and prunes what is too old.
    pub(crate) fn apply(&self, version: u64, changes: &Changes) -> Hash {
        let update = update(self, version, changes).unwrap();
        let mut nodes = self.nodes.borrow_mut();
        for (key, node) in &update.nodes {
            let before = nodes.insert(key.clone(), Bytes::copy_from_slice(node));
            assert!(before.is_none(), "a node was written twice");
        }
        self.stale.borrow_mut().insert(version, update.stale_value());
        let old = version.checked_sub(KEPT).and_then(|old| self.stale.borrow_mut().remove(&old));
        for key in old.iter().flat_map(|list| TreeUpdate::stale_keys(list).unwrap()) {
            assert!(nodes.remove(key).is_some(), "a stale node was not there");
        }
        update.root
    }
}

/// The rules of the module documentation, read off from the leaves.
fn expected_root(leaves: &[(Hash, Hash)], depth: usize) -> Hash {
    match leaves {
        [] => EMPTY_ROOT,
        [(key, value)] => Hash::digest_parts(&[b"JMT::LeafNode", key.as_bytes(), value.as_bytes()]),
        _ => {
            let is_left =
                |(key, _): &(Hash, Hash)| key.as_bytes()[depth / 8] >> (7 - depth % 8) & 1 == 0;
            let (left, right) = leaves.split_at(leaves.partition_point(is_left));
            let left = expected_root(left, depth + 1);
            let right = expected_root(right, depth + 1);
            Hash::digest_parts(&[b"JMT::IntrnalNode", left.as_bytes(), right.as_bytes()])
        }
    }
}

type Rows = BTreeMap<(TableId, Vec<u8>), Vec<u8>>;

fn root_of(rows: &Rows) -> Hash {
    let mut leaves: Vec<(Hash, Hash)> = rows
        .iter()
        .map(|((table, key), value)| (key_hash(*table, key).unwrap(), Hash::digest(value)))
        .collect();
    leaves.sort_unstable();
    expected_root(&leaves, 0)
}

/// A row and its new value; `None` deletes it.
type Change = (TableId, Vec<u8>, Option<Vec<u8>>);

fn changes(rows: &[Change]) -> Changes {
    let mut changes = Changes::new();
    for (table, key, value) in rows {
        changes.entry(*table).or_default().insert(key.clone(), value.clone());
    }
    changes
}

fn apply_rows(rows: &mut Rows, changes: &Changes) {
    for (table, changed) in changes {
        for (key, value) in changed {
            match value {
                Some(value) => drop(rows.insert((*table, key.clone()), value.clone())),
                None => drop(rows.remove(&(*table, key.clone()))),
            }
        }
    }
}

/// A change of one of a few rows: collisions, replacements and deletions are common.
fn change() -> impl Strategy<Value = Change> {
    let table = prop_oneof![Just(Accounts::ID), Just(Runs::ID), Just(Blobs::ID)];
    let value = prop_oneof![
        3 => proptest::collection::vec(any::<u8>(), 0..40).prop_map(Some),
        1 => Just(None),
    ];
    (table, 0_u8..40, value).prop_map(|(table, key, value)| (table, vec![key], value))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn roots_and_proofs_follow_the_rules_whatever_the_history(
        history in proptest::collection::vec(proptest::collection::vec(change(), 0..12), 1..20)
    ) {
        let nodes = Nodes::default();
        let mut rows = Rows::new();
        let mut states: Vec<(Hash, Rows)> = Vec::new();
        for (version, block) in (0_u64..).zip(&history) {
            let changes = changes(block);
            apply_rows(&mut rows, &changes);
            let root = nodes.apply(version, &changes);
            prop_assert_eq!(root, root_of(&rows));
            states.push((root, rows.clone()));
            for back in 0..=version.min(KEPT) {
                let at = version - back;
                let (root, rows) = &states[usize::try_from(at).unwrap()];
                check_proofs(&nodes, at, *root, rows);
            }
        }
    }
}

fn check_proofs(nodes: &Nodes, version: u64, root: Hash, rows: &Rows) {
    for table in [Accounts::ID, Runs::ID, Blobs::ID] {
        for key in (0_u8..40).step_by(7).map(|key| vec![key]) {
            let place = key_hash(table, &key).unwrap();
            let (value, proof) = prove(nodes, version, place).unwrap().expect("still provable");
            assert_eq!(value.as_ref(), rows.get(&(table, key.clone())));
            proof.verify(root, table, &key, value.as_deref()).unwrap();
        }
    }
}

fn three_rows() -> (Nodes, Hash) {
    let nodes = Nodes::default();
    let rows = [
        (Accounts::ID, b"one".to_vec(), Some(b"1".to_vec())),
        (Accounts::ID, b"two".to_vec(), Some(b"2".to_vec())),
        (Runs::ID, b"one".to_vec(), Some(b"run".to_vec())),
    ];
    let root = nodes.apply(0, &changes(&rows));
    (nodes, root)
}

fn proof_of(nodes: &Nodes, table: TableId, key: &[u8]) -> super::Proof {
    prove(nodes, 0, key_hash(table, key).unwrap()).unwrap().unwrap().1
}

#[test]
fn a_tampered_proof_proves_nothing() {
    let (nodes, root) = three_rows();
    let good = proof_of(&nodes, Accounts::ID, b"one");
    good.verify(root, Accounts::ID, b"one", Some(b"1")).unwrap();

    let value = good.verify(root, Accounts::ID, b"one", Some(b"2"));
    assert!(matches!(value, Err(ProofError::Value { .. })), "{value:?}");
    let table = good.verify(root, Runs::ID, b"one", Some(b"1"));
    assert!(matches!(table, Err(ProofError::Key { .. })), "{table:?}");
    let other_root = good.verify(Hash::ZERO, Accounts::ID, b"one", Some(b"1"));
    assert!(matches!(other_root, Err(ProofError::Root { .. })), "{other_root:?}");
    assert_eq!(good.verify(root, Accounts::ID, b"one", None), Err(ProofError::Present));

    for level in 0..good.siblings.len() {
        let mut bad = good.clone();
        bad.siblings[level] = Hash::digest(b"another");
        let answer = bad.verify(root, Accounts::ID, b"one", Some(b"1"));
        assert!(matches!(answer, Err(ProofError::Root { .. })), "level {level}: {answer:?}");
    }
    let mut long = good;
    long.siblings.resize(257, Hash::ZERO);
    let answer = long.verify(root, Accounts::ID, b"one", Some(b"1"));
    assert_eq!(answer, Err(ProofError::Levels { levels: 257 }));
}

#[test]
fn absence_cannot_be_claimed_with_a_leaf_from_elsewhere() {
    let (nodes, root) = three_rows();
    let absent = proof_of(&nodes, Accounts::ID, b"nobody");
    absent.verify(root, Accounts::ID, b"nobody", None).unwrap();
    assert!(absent.verify(root, Accounts::ID, b"nobody", Some(b"1")).is_err());
    // The path of a leaf that is there says nothing about a key that leads elsewhere.
    let other = proof_of(&nodes, Accounts::ID, b"two");
    let answer = other.verify(root, Accounts::ID, b"one", None);
    assert!(
        matches!(answer, Err(ProofError::Elsewhere { .. } | ProofError::Root { .. })),
        "{answer:?}"
    );
}

#[test]
fn rows_of_other_tables_are_not_in_the_tree() {
    let (nodes, root) = three_rows();
    let step = [(Steps::ID, b"step".to_vec(), Some(b"value".to_vec()))];
    assert_eq!(nodes.apply(1, &changes(&step)), root);
    let answer = proof_of(&nodes, Accounts::ID, b"one").verify(root, Steps::ID, b"step", None);
    assert_eq!(answer, Err(ProofError::Table { table: "steps" }));
}

#[test]
fn the_form_of_the_tree_is_fixed() {
    let (_, root) = three_rows();
    let leaf = |tag: &[u8], key: &[u8], value: &[u8]| {
        let key = Hash::digest_parts(&[tag, key]);
        (key, Hash::digest(value))
    };
    let mut leaves =
        [leaf(b"a", b"one", b"1"), leaf(b"a", b"two", b"2"), leaf(b"r", b"one", b"run")];
    leaves.sort_unstable();
    assert_eq!(root, expected_root(&leaves, 0));
    let golden = "be1d77089c246aeb92646296769503fbb53526f9f6a474bc10ffe73286213382";
    assert_eq!(root.to_string(), golden);
}

#[test]
fn a_chain_of_empty_blocks_keeps_one_root() {
    let (nodes, root) = three_rows();
    let rows = nodes.nodes.borrow().len();
    for version in 1..50 {
        assert_eq!(nodes.apply(version, &Changes::new()), root);
    }
    let kept = usize::try_from(KEPT).unwrap();
    assert!(nodes.nodes.borrow().len() <= rows + kept, "roots of old versions pile up");
}
