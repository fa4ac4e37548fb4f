//! Offers of honest peers and of liars, side by side.

use super::*;

fn content(height: u64, manifest: &str) -> Content {
    let block = Hash::digest(&height.to_be_bytes());
    Content { height, block, root: block, manifest: Hash::digest(manifest.as_bytes()) }
}

const fn teller(peer: u32, has_voice: bool) -> Teller<u32> {
    Teller { peer, has_voice }
}

/// What peers with voices offer.
fn all(told: &[(u32, Content)]) -> Vec<(Teller<u32>, Content)> {
    told.iter().map(|(peer, content)| (teller(*peer, true), *content)).collect()
}

/// The contents in their order.
fn contents(told: &[(u32, Content)], tries: &[(Content, u32)]) -> Vec<Content> {
    let tries = tries.iter().copied().collect();
    order(&all(told), &tries).iter().map(|choice| choice.content).collect()
}

#[test]
fn strangers_outvote_no_named_peer_and_what_they_alone_offer_is_not_taken() {
    let (honest, older, lie) = (content(40, "m"), content(20, "m"), content(60, "a lie"));
    let told = [
        (teller(1, true), honest),
        (teller(2, true), older),
        (teller(7, false), lie),
        (teller(8, false), lie),
        (teller(9, false), older),
    ];
    let choices = order(&told, &BTreeMap::new());
    let found: Vec<_> = choices.iter().map(|it| (it.content, it.voices())).collect();
    assert_eq!(vec![(honest, 1), (older, 1)], found);
    assert_eq!(vec![2, 9], choices[1].peers().collect::<Vec<_>>(), "who gives its chunks");
    // A stranger that says the same as a named peer does not make it two.
    let state = (2, true);
    assert!(!is_decided(&order(&told[1..], &BTreeMap::new()), state, MORE_TIME));
    assert!(is_decided(&choices, state, AGREE_TIME));
}

#[test]
fn what_two_peers_offer_alike_goes_before_what_one_offers() {
    let (shared, alone, older) = (content(40, "m"), content(60, "m"), content(20, "m"));
    let told = [(1, alone), (2, shared), (3, shared), (4, older), (5, older)];
    assert_eq!(vec![shared, older, alone], contents(&told, &[]));
}

#[test]
fn a_peer_that_says_the_same_twice_agrees_with_nobody() {
    let (twice, shared) = (content(40, "a lie"), content(20, "m"));
    let told = [(1, twice), (1, twice), (2, shared), (3, shared)];
    let choices = order(&all(&told), &BTreeMap::new());
    assert_eq!(shared, choices[0].content);
    assert_eq!(vec![1], choices[1].peers().collect::<Vec<_>>());
}

#[test]
fn another_manifest_or_another_root_or_another_block_is_another_offer() {
    let honest = content(40, "m");
    let extras = content(40, "other extras");
    let root = Content { root: Hash::ZERO, ..honest };
    let block = Content { block: Hash::ZERO, ..honest };
    let told = [(1, extras), (2, root), (3, honest), (4, honest), (5, block)];
    let choices = order(&all(&told), &BTreeMap::new());
    assert_eq!(
        (4, honest, vec![3, 4]),
        (choices.len(), choices[0].content, choices[0].peers().collect())
    );
}

#[test]
fn among_equals_the_highest_goes_first_and_then_what_most_offer() {
    let (high, many, few) = (content(60, "m"), content(40, "m"), content(40, "other"));
    let told = [(1, few), (2, few), (3, many), (4, many), (5, many), (6, high), (7, high)];
    assert_eq!(vec![high, many, few], contents(&told, &[]));
}

#[test]
fn an_offer_that_came_to_nothing_goes_behind_all_that_were_tried_less() {
    let (lie, honest, other) = (content(60, "a lie"), content(40, "m"), content(20, "m"));
    // A crowd of liars agrees.
    let told = [(1, lie), (2, lie), (3, lie), (4, honest), (5, other)];
    assert_eq!(vec![lie, honest, other], contents(&told, &[]));
    assert_eq!(vec![honest, other, lie], contents(&told, &[(lie, 1)]));
    assert_eq!(vec![other, lie, honest], contents(&told, &[(lie, 1), (honest, 2)]));
}

#[test]
fn however_many_lies_there_are_the_honest_offer_gets_its_turn() {
    let honest = content(40, "m");
    let mut told: Vec<(u32, Content)> =
        (0..100).map(|liar| (liar, content(1_000, &format!("lie {}", liar / 2)))).collect();
    told.push((1_000, honest));
    let (mut tries, mut attempts) = (BTreeMap::new(), 0);
    loop {
        let first = order(&all(&told), &tries)[0].content;
        if first == honest {
            break;
        }
        *tries.entry(first).or_insert(0) += 1;
        attempts += 1;
    }
    assert_eq!(50, attempts, "one for each lie");
}

#[test]
fn an_agreement_or_the_lack_of_others_decides_and_else_the_time() {
    let choice = |peers: u32| {
        let told: Vec<(u32, Content)> = (0..peers).map(|peer| (peer, content(40, "m"))).collect();
        order(&all(&told), &BTreeMap::new())
    };
    let (short, long) = (MORE_TIME, AGREE_TIME);
    let before = MORE_TIME.saturating_sub(Duration::from_millis(1));
    for (peers, tellers, is_asking, waited, decided) in [
        (0, 0, false, long, false),
        (2, 2, true, before, false),
        (2, 2, true, short, true),
        (1, 1, false, before, false),
        (1, 1, false, short, true),
        // Others may still say the same.
        (1, 1, true, short, false),
        (1, 3, false, short, false),
        (1, 3, false, long, true),
        (1, 1, true, long, true),
    ] {
        let state = (tellers, is_asking);
        let found = is_decided(&choice(peers), state, waited);
        assert_eq!(decided, found, "{peers} {state:?} {waited:?}");
    }
}

#[test]
fn no_offer_that_passes_over_the_trusted_block_is_looked_at() {
    let head = |height: u64| SnapshotHead { height, hash: Hash::ZERO, bytes: 1 };
    let looked_at = |trusted| {
        let heads = [10, 40, 30, 20].map(head).to_vec();
        let (heads, above) = up_to_trusted(heads, trusted, 2);
        (heads.iter().map(|head| head.height).collect::<Vec<_>>(), above)
    };
    assert_eq!((vec![40, 30], None), looked_at(None));
    assert_eq!((vec![40, 30], None), looked_at(Some(40)));
    assert_eq!((vec![30, 20], Some(40)), looked_at(Some(39)));
    assert_eq!((vec![10], Some(40)), looked_at(Some(19)));
    assert_eq!((Vec::new(), Some(40)), looked_at(Some(9)));
}
