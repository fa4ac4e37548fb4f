//! Subtrees against the tree that grew block by block.

#![expect(clippy::arithmetic_side_effects, reason = "small numbers of a test")]

use std::cell::RefCell;
use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use types::Hash;

use super::{Leaf, Subtree, build, build_top, nibble, single_depth};
use crate::draft::Changes;
use crate::error::StorageError;
use crate::table::Table;
use crate::tables::Accounts;
use crate::tree::{NodeSource, key_hash, prove, update};

#[derive(Default)]
struct Nodes(RefCell<BTreeMap<Vec<u8>, Bytes>>);

impl NodeSource for Nodes {
    fn node(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        Ok(self.0.borrow().get(key).cloned())
    }
}

/// The tree of these rows at version 0, made out of subtrees of `depth` nibbles.
fn rebuilt(depth: usize, rows: &BTreeMap<Vec<u8>, Vec<u8>>) -> (Subtree, Nodes) {
    let leaves: BTreeMap<Hash, &Vec<u8>> =
        rows.iter().map(|(key, value)| (key_hash(Accounts::ID, key).unwrap(), value)).collect();
    let place =
        |hash: &Hash| (0..depth).fold(0, |at, depth| at * 16 + usize::from(nibble(hash, depth)));
    let mut chunks: Vec<Vec<Leaf<'_>>> =
        vec![Vec::new(); 16_usize.pow(u32::try_from(depth).unwrap())];
    for (key_hash, value) in leaves {
        chunks[place(&key_hash)].push(Leaf { key_hash, value });
    }
    let parts: Vec<Subtree> = chunks.iter().map(|leaves| super::of_leaves(depth, leaves)).collect();
    let nodes = Nodes::default();
    let mut emit = |key: Vec<u8>, node: Vec<u8>| {
        let before = nodes.0.borrow_mut().insert(key, Bytes::from(node));
        assert!(before.is_none(), "a node was written twice");
    };
    for (place, leaves) in chunks.iter().enumerate() {
        let single = single_depth(depth, &parts, place);
        assert_eq!(build(0, (depth, single), leaves, &mut emit), parts[place]);
    }
    let whole = build_top(0, depth, &parts, &mut emit);
    (whole, nodes)
}

fn changes(rows: impl IntoIterator<Item = (Vec<u8>, Option<Vec<u8>>)>) -> Changes {
    Changes::from([(Accounts::ID, rows.into_iter().collect())])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_tree_put_together_from_subtrees_is_the_one_that_grew(
        rows in proptest::collection::btree_map(
            proptest::collection::vec(any::<u8>(), 1..4),
            proptest::collection::vec(any::<u8>(), 0..40),
            1..120,
        ),
        depth in 0_usize..=3,
    ) {
        let grown = Nodes::default();
        let update_of = |nodes: &Nodes, version, changes: &Changes| {
            let update = update(nodes, version, changes).unwrap();
            for (key, node) in update.nodes {
                nodes.0.borrow_mut().insert(key, Bytes::from(node));
            }
            update.root
        };
        let first = changes(rows.iter().map(|(key, value)| (key.clone(), Some(value.clone()))));
        let root = update_of(&grown, 0, &first);
        let (whole, nodes) = rebuilt(depth, &rows);
        prop_assert_eq!(whole.hash, root);
        prop_assert_eq!(whole.leaves, u64::try_from(rows.len()).unwrap());
        prop_assert_eq!(&*nodes.0.borrow(), &*grown.0.borrow());
        // It proves, and it grows on.
        for (key, value) in &rows {
            let key = key_hash(Accounts::ID, key).unwrap();
            let (found, _) = prove(&nodes, 0, key).unwrap().unwrap();
            prop_assert_eq!(found.as_ref(), Some(value));
        }
        let next = changes(rows.keys().take(rows.len() / 2).map(|key| (key.clone(), None)));
        prop_assert_eq!(update_of(&nodes, 1, &next), update_of(&grown, 1, &next));
    }
}
