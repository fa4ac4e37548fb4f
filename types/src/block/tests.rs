//! Golden bytes of headers, blocks and Merkle roots.

use proptest::collection::vec;
use proptest::prelude::*;

use super::merkle::root;
use super::{
    Block, BlockTx, CompactBlock, CompactBlockEntry, DecodeBlockError, Filled, Header, Incomplete,
    UncheckedBlock, merkle_root,
};
use crate::testing::{Draft, bodies, limits};
use crate::vrf::Proof;
use crate::{Address, Amount, CheckedTx, Hash, Randomness, Rejection};

fn header(tx_count: u64) -> Header {
    Header {
        chain_id: "ombra-ț".to_owned(),
        index: 7,
        previous_hash: Hash::new([1; 32]),
        timestamp: 1_715_990_000_000,
        proposer: Address::new([2; 20]),
        tx_root: Hash::new([3; 32]),
        state_root: Hash::new([4; 32]),
        tokens_burned: Amount::new(100),
        tx_count,
        randomness: None,
    }
}

/// The same in a block of fork v7.
fn header_of_v7(tx_count: u64) -> Header {
    let (value, proof) = (Hash::new([5; 32]), Proof::new([6; 80]));
    Header { randomness: Some(Randomness { value, proof }), ..header(tx_count) }
}

fn block(kinds: &[usize]) -> Block {
    let bodies = bodies();
    let draft = |kind: &usize| Draft::of(&bodies[*kind]).parse().unwrap();
    let transactions: Vec<_> = kinds.iter().map(draft).map(CheckedTx::trust).collect();
    Block { header: header(u64::try_from(kinds.len()).unwrap()), transactions }
}

const HEADER: &str = "{\"chainId\":\"ombra-ț\",\"index\":7,\
    \"previousHash\":\"0101010101010101010101010101010101010101010101010101010101010101\",\
    \"timestamp\":1715990000000,\"proposer\":\"0202020202020202020202020202020202020202\",\
    \"txRoot\":\"0303030303030303030303030303030303030303030303030303030303030303\",\
    \"stateRoot\":\"0404040404040404040404040404040404040404040404040404040404040404\",\
    \"tokensBurned\":\"100\",\"txCount\":2}";

#[test]
fn a_compact_block_names_or_carries_each_transaction_and_has_one_binary_form() {
    let block = block(&[0, 3, 5]);
    let named = |at: usize| CompactBlockEntry::Named(block.transactions[at].hash());
    let carried =
        |at: usize| CompactBlockEntry::Carried(Box::new((*block.transactions[at]).clone()));
    let cases = [
        (vec![true, true, true], vec![named(0), named(1), named(2)]),
        (vec![false, true, false], vec![carried(0), named(1), carried(2)]),
        (vec![true], vec![named(0), carried(1), carried(2)]),
    ];
    for (is_named, entries) in cases {
        let bytes = CompactBlock::encode(&block, &is_named);
        let compact_block = CompactBlock { header: block.header.clone(), entries };
        assert_eq!(CompactBlock::decode(&bytes, &limits()).unwrap(), compact_block, "{is_named:?}");
        for end in 0..bytes.len() {
            assert!(CompactBlock::decode(&bytes[..end], &limits()).is_err(), "cut off at {end}");
        }
        let more = [bytes.as_slice(), &[0]].concat();
        assert!(CompactBlock::decode(&more, &limits()).is_err(), "followed by more");
    }
    let mut other_kind = CompactBlock::encode(&block, &[]);
    let first = block.header.payload().len() + 4;
    other_kind[first] = 2;
    assert!(matches!(
        CompactBlock::decode(&other_kind, &limits()),
        Err(DecodeBlockError::Entry { position: 0, kind: 2 })
    ));
}

/// Fills the compact block of a block in a place where the transactions are found that `found` makes of
/// the good ones.
fn filled(
    block: &Block,
    size: usize,
    found: impl Fn(&CheckedTx) -> Option<CheckedTx>,
) -> Result<Filled, Incomplete> {
    let lookup = |hashes: &[Hash]| {
        let by_hash = |hash: &Hash| block.transactions.iter().find(|tx| tx.hash() == *hash);
        hashes.iter().map(|hash| found(by_hash(hash)?)).collect()
    };
    compact_block_of(block).fill(size, &Hash::digest(&block.encode()), lookup)
}

/// The compact block that names all but the second.
fn compact_block_of(block: &Block) -> CompactBlock {
    let bytes = CompactBlock::encode(block, &[true, false, true]);
    CompactBlock::decode(&bytes, &limits()).unwrap()
}

#[test]
fn the_block_of_a_compact_block_is_the_sealed_one_byte_for_byte_or_none() {
    let block = block(&[0, 3, 5]);
    let bytes = block.encode();
    let whole = filled(&block, bytes.len(), |tx| Some(tx.clone())).unwrap();
    assert_eq!((&whole.header, &whole.bytes), (&block.header, &bytes));
    let [first, second, third] = &block.transactions[..] else { panic!("not three") };
    let expected = [
        BlockTx::Checked(first.clone()),
        BlockTx::Unchecked(Box::new((**second).clone())),
        BlockTx::Checked(third.clone()),
    ];
    assert_eq!(whole.transactions, expected);

    let refused = |missing| Err(Incomplete { missing });
    assert_eq!(filled(&block, bytes.len(), |_| None), refused(2));
    let only_first = |tx: &CheckedTx| (tx == first).then(|| tx.clone());
    assert_eq!(filled(&block, bytes.len(), only_first), refused(1));
    for size in [0, bytes.len() - 1, bytes.len() + 1] {
        assert_eq!(filled(&block, size, |tx| Some(tx.clone())), refused(0), "{size} bytes");
    }
    assert_eq!(filled(&block, bytes.len(), |_| Some(second.clone())), refused(0));
}

#[test]
fn a_header_is_canonical_json_and_its_hash_is_the_blocks_name() {
    assert_eq!(header(2).payload(), HEADER);
    let name = "bea2d708d8e3571bd693a65e1a940736278a933661114cc12ca9e235b5c18252";
    assert_eq!(header(2).hash().to_string(), name);
    assert_eq!(Header::parse(HEADER.as_bytes()).unwrap(), header(2));
    assert_eq!(block(&[5, 6]).hash().to_string(), name);
}

/// What [`HEADER`] is with the members of v7, whose texts are these.
fn with_randomness(value: &str, proof: &str) -> String {
    let end = format!(",\"randomness\":\"{value}\",\"randomnessProof\":\"{proof}\"}}");
    HEADER.replace('}', &end)
}

#[test]
fn randomness_stands_at_the_end_of_a_header_with_its_proof() {
    let text = with_randomness(&"05".repeat(32), &"06".repeat(80));
    assert_eq!(header_of_v7(2).payload(), text);
    let name = "482b35aa480c7288acd2b9c0e6ada4c79d6f30611535727e79b12c3bb9c7c6bf";
    assert_eq!(header_of_v7(2).hash().to_string(), name);
    assert_eq!(Header::parse(text.as_bytes()).unwrap(), header_of_v7(2));
    let block = Block { header: header_of_v7(2), ..block(&[5, 6]) };
    assert_eq!(UncheckedBlock::decode(&block.encode(), &limits()).unwrap().header, block.header);
}

/// The rejection of a text that is no header.
fn refused(text: &str) -> Rejection {
    match Header::parse(text.as_bytes()) {
        Err(DecodeBlockError::Header(rejection)) => rejection,
        other => panic!("{text}: {other:?}"),
    }
}

#[track_caller]
fn assert_not_canonical(text: &str) {
    let error = Header::parse(text.as_bytes()).unwrap_err();
    assert!(matches!(error, DecodeBlockError::NotCanonical), "{text}: {error}");
}

#[test]
fn randomness_without_its_proof_or_in_another_form_is_refused() {
    let (value, proof) = ("05".repeat(32), "06".repeat(80));
    let whole = with_randomness(&value, &proof);
    let cases = [
        (HEADER.replace('}', &format!(",\"randomness\":\"{value}\"}}")), "randomnessProof"),
        (HEADER.replace('}', &format!(",\"randomnessProof\":\"{proof}\"}}")), "randomness"),
        (with_randomness(&value[2..], &proof), "randomness"),
        (with_randomness(&value, &proof[2..]), "randomnessProof"),
        (with_randomness(&value, &proof.replace("06", "0A")), "randomnessProof"),
        (whole.replace(&format!("\"{value}\""), "5"), "randomness"),
    ];
    for (text, field) in cases {
        assert_eq!(refused(&text).field(), format!("header.{field}"), "{text}");
    }
    let turned = format!(",\"randomnessProof\":\"{proof}\",\"randomness\":\"{value}\"}}");
    assert_not_canonical(&HEADER.replace('}', &turned));
}

#[test]
fn a_header_has_one_written_form() {
    let not_canonical = [
        HEADER.replace(':', ": "),
        HEADER.replace('ț', "\\u021b"),
        HEADER.replace("{\"chainId\":\"ombra-ț\",", "{").replace('}', ",\"chainId\":\"ombra-ț\"}"),
        HEADER.replace('}', ",\"extra\":1}"),
        HEADER.replace("\"02020", "\"ox02020"),
    ];
    for text in not_canonical {
        assert_not_canonical(&text);
    }
}

#[test]
fn what_is_no_header_is_refused_by_field() {
    let cases = [
        (HEADER.replace("\"index\":7,", ""), "header.index", "missing"),
        (HEADER.replace("\"index\":7", "\"index\":7.0"), "header.index", "7.0"),
        (
            HEADER.replace("\"index\":7", "\"index\":9007199254740992"),
            "header.index",
            "9007199254740992",
        ),
        (HEADER.replace("\"100\"", "\"0100\""), "header.tokensBurned", "0100"),
        (HEADER.replace("\"100\"", "100"), "header.tokensBurned", "a number"),
        (HEADER.replace("0303", "03"), "header.txRoot", "03"),
        ("[]".to_owned(), "header", "an array"),
        (String::new(), "header", "expected a JSON value at byte 0"),
        (HEADER.replace('7', "[[]]"), "header", "nesting deeper than 1 at byte 30"),
    ];
    for (text, field, got) in cases {
        let rejection = refused(&text);
        assert_eq!(rejection.field(), field, "{text}");
        assert!(rejection.got().starts_with(got), "{rejection}");
    }
}

#[test]
fn a_block_is_its_header_and_its_transactions_one_after_the_other() {
    let block = block(&[5, 6]);
    let bytes = block.encode();
    let mut expected = u32::try_from(HEADER.len()).unwrap().to_le_bytes().to_vec();
    expected.extend_from_slice(HEADER.as_bytes());
    for tx in &block.transactions {
        tx.encode(&mut expected);
    }
    assert_eq!(bytes, expected);

    let decoded = UncheckedBlock::decode(&bytes, &limits()).unwrap();
    assert_eq!(decoded.header, block.header);
    assert!(decoded.transactions.iter().eq(block.transactions.iter().map(|tx| &**tx)));
}

#[test]
fn bytes_that_are_no_whole_block_are_refused() {
    let bytes = block(&[5, 6, 0]).encode();
    for length in 0..bytes.len() {
        let error = UncheckedBlock::decode(&bytes[..length], &limits()).unwrap_err();
        let is_known = match error {
            DecodeBlockError::Length { bytes } => bytes == length,
            DecodeBlockError::Transaction { position, .. } => position < 3,
            DecodeBlockError::Header(_)
            | DecodeBlockError::NotCanonical
            | DecodeBlockError::Entry { .. } => false,
        };
        assert!(is_known, "{length}");
    }
    for extra in [vec![0], vec![0; 68], vec![0xff; 100]] {
        let longer = [bytes.clone(), extra].concat();
        let error = UncheckedBlock::decode(&longer, &limits()).unwrap_err();
        assert!(matches!(error, DecodeBlockError::Transaction { position: 3, .. }), "{error}");
    }
}

#[test]
fn the_header_says_how_many_transactions_there_are() {
    for claimed in [0, 1, 3, u64::from(u32::MAX)] {
        let block = Block { header: header(claimed), ..block(&[5, 6]) };
        let error = UncheckedBlock::decode(&block.encode(), &limits()).unwrap_err();
        assert!(matches!(error, DecodeBlockError::Length { .. }), "{error}");
    }
}

#[test]
fn merkle_roots_are_those_of_certificate_transparency() {
    let leaves = [
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    ]
    .map(|leaf| const_hex::decode(leaf).unwrap());
    let roots = [
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];
    for (count, expected) in roots.iter().enumerate() {
        assert_eq!(root(&leaves[..count], Vec::as_slice).to_string(), *expected, "{count}");
    }
}

#[test]
fn the_order_and_number_of_leaves_matter() {
    let [a, b, c] = [1, 2, 3].map(|byte| Hash::new([byte; 32]));
    let lists: [&[Hash]; 8] =
        [&[], &[a], &[a, a], &[a, b], &[b, a], &[a, b, c], &[a, b, c, c], &[a, c, b]];
    let mut roots: Vec<_> = lists.iter().map(|leaves| merkle_root(leaves)).collect();
    roots.sort_unstable();
    roots.dedup();
    assert_eq!(roots.len(), lists.len());
}

proptest! {
    #[test]
    fn any_bytes_are_a_block_or_refused(bytes in any::<Vec<u8>>()) {
        drop(UncheckedBlock::decode(&bytes, &limits()));
    }

    #[test]
    fn a_spoilt_block_is_refused_or_encodes_to_the_same_bytes(
        kinds in vec(0..11_usize, 0..4), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut bytes = block(&kinds).encode();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(UncheckedBlock { header, transactions }) = UncheckedBlock::decode(&bytes, &limits()) {
            let transactions = transactions.into_iter().map(CheckedTx::trust).collect();
            prop_assert_eq!(Block { header, transactions }.encode(), bytes);
        }
    }
}
