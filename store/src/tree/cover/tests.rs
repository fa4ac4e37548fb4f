//! Lists of cuts that are a cover, and such that are none.

use types::Hash;

use super::{BITS_MAX, Cover, Cut};
use crate::tree::subtree::Subtree;

/// Cuts of so many bits, each with two leaves and a weight of one.
fn cuts(bits: &[usize]) -> Vec<Cut> {
    let subtree =
        |at: usize| Subtree { hash: Hash::digest(&[u8::try_from(at % 250).unwrap()]), leaves: 2 };
    let cut = |(at, bits): (usize, &usize)| Cut { bits: *bits, subtree: subtree(at), weight: 1 };
    bits.iter().enumerate().map(cut).collect()
}

#[test]
fn cuts_that_leave_out_a_key_or_have_one_twice_are_no_cover() {
    for good in [&[0][..], &[1, 1], &[2, 2, 1], &[1, 2, 2], &[1, 2, 3, 3], &[3, 3, 2, 2, 2]] {
        assert!(Cover::new(&cuts(good)).is_some(), "{good:?}");
    }
    let deepest: Vec<usize> = (1..=BITS_MAX).chain([BITS_MAX]).collect();
    assert!(Cover::new(&cuts(&deepest)).is_some());
    let beyond: Vec<usize> = (1..=BITS_MAX + 1).chain([BITS_MAX + 1]).collect();
    for bad in [&[][..], &[1], &[0, 0], &[1, 1, 1], &[2, 1, 2], &[2, 2], &[1, 2], &[0, 1], &beyond]
    {
        assert!(Cover::new(&cuts(bad)).is_none(), "{bad:?}");
    }
}

#[test]
fn a_cover_leads_to_the_root_of_its_parts_and_knows_the_lightest_that_was_cut() {
    let parts = cuts(&[1, 3, 3, 2]);
    let [a, b, c, d] = [0, 1, 2, 3].map(|at| parts[at].subtree);
    let root = Subtree::join(a, Subtree::join(Subtree::join(b, c), d));
    let cover = Cover::new(&parts).unwrap();
    assert_eq!((cover.root, cover.least), (root, Some(2)));
    assert_eq!(Cover::new(&parts[..0]), None);
    let mut other = parts;
    other.swap(1, 2);
    assert_ne!(Cover::new(&other).unwrap().root, root);
}
