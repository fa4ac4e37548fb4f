//! Subtrees against the tree that grew block by block.

#![expect(clippy::arithmetic_side_effects, reason = "small numbers of a test")]

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use state::draft::Changes;
use state::table::Table;
use state::tables::Accounts;
use types::Hash;

use super::{build_cut, build_top};
use crate::tree::cover::{Cover, Cut};
use crate::tree::hash::nibbles_above;
use crate::tree::subtree::{Leaf, Subtree, bit, of_leaves};
use crate::tree::tests::Nodes;
use crate::tree::{key_hash, prove};

/// Cuts leaves that have the same first `bits` bits wherever `cuts` says so.
fn cut<'a, 'b>(
    leaves: &'b [Leaf<'a>],
    bits: usize,
    cuts: &mut dyn FnMut(usize) -> bool,
    out: &mut Vec<(usize, &'b [Leaf<'a>])>,
) {
    if bits < 24 && cuts(bits) {
        let at = leaves.partition_point(|leaf| !bit(&leaf.key_hash, bits));
        cut(&leaves[..at], bits + 1, cuts, out);
        cut(&leaves[at..], bits + 1, cuts, out);
    } else {
        out.push((bits, leaves));
    }
}

/// The tree of these rows at version 0, made out of ranges.
fn rebuilt(
    rows: &BTreeMap<Vec<u8>, Vec<u8>>,
    cuts: &mut dyn FnMut(usize) -> bool,
) -> (Subtree, Nodes) {
    let leaves: BTreeMap<Hash, &Vec<u8>> =
        rows.iter().map(|(key, value)| (key_hash(Accounts::ID, key).unwrap(), value)).collect();
    let leaves: Vec<Leaf<'_>> =
        leaves.into_iter().map(|(key_hash, value)| Leaf { key_hash, value }).collect();
    let mut parts = Vec::new();
    cut(&leaves, 0, cuts, &mut parts);
    let subtrees: Vec<Cut> = parts
        .iter()
        .map(|(bits, leaves)| Cut { bits: *bits, subtree: of_leaves(*bits, leaves), weight: 1 })
        .collect();
    let cover = Cover::new(&subtrees).expect("every key once");
    let (nodes, mut above) = (Nodes::default(), Vec::new());
    let mut emit = |key: Vec<u8>, node: Vec<u8>| {
        let before = nodes.nodes.borrow_mut().insert(key, Bytes::from(node));
        assert!(before.is_none(), "a node was written twice");
    };
    for (place, (bits, leaves)) in parts.iter().enumerate() {
        let cut = build_cut(0, (*bits, cover.single_depth(place)), leaves, &mut emit);
        assert_eq!(Subtree::join_all(cut.clone()), subtrees[place].subtree);
        above.extend(cut.into_iter().map(|subtree| (nibbles_above(*bits), subtree)));
    }
    let whole = build_top(0, above, &mut emit);
    assert_eq!(whole, cover.root);
    (whole, nodes)
}

fn changes(rows: impl IntoIterator<Item = (Vec<u8>, Option<Vec<u8>>)>) -> Changes {
    Changes::from([(Accounts::ID, rows.into_iter().collect())])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_tree_put_together_from_ranges_is_the_one_that_grew(
        rows in proptest::collection::btree_map(
            prop_oneof![
                proptest::collection::vec(any::<u8>(), 1..4),
                // Keys under one prefix.
                (0_u8..3, any::<u8>()).prop_map(|(prefix, last)| {
                    [b"prefix".as_slice(), &[0xa7, prefix, last]].concat()
                }),
            ],
            proptest::collection::vec(any::<u8>(), 0..40),
            1..120,
        ),
        random in proptest::collection::vec(any::<bool>(), 0..200),
        cut_below in 0_usize..20,
    ) {
        let grown = Nodes::default();
        let first = changes(rows.iter().map(|(key, value)| (key.clone(), Some(value.clone()))));
        let root = grown.apply(0, &first);
        let mut random = random.into_iter();
        let mut cuts = |bits: usize| random.next().unwrap_or(false) || bits < cut_below.min(6);
        let (whole, nodes) = rebuilt(&rows, &mut cuts);
        prop_assert_eq!(whole.hash, root);
        prop_assert_eq!(whole.leaves, u64::try_from(rows.len()).unwrap());
        prop_assert_eq!(&*nodes.nodes.borrow(), &*grown.nodes.borrow());
        // It proves, and it grows on.
        for (key, value) in &rows {
            let key = key_hash(Accounts::ID, key).unwrap();
            let (found, _) = prove(&nodes, 0, key).unwrap().unwrap();
            prop_assert_eq!(found.as_ref(), Some(value));
        }
        let next = changes(rows.keys().take(rows.len() / 2).map(|key| (key.clone(), None)));
        prop_assert_eq!(nodes.apply(1, &next), grown.apply(1, &next));
    }
}
