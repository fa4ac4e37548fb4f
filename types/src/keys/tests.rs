//! The signature rule against published edge cases and against its own definition, single and in
//! batches.

use curve25519_dalek::constants::{ED25519_BASEPOINT_POINT, EIGHT_TORSION};
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::IsIdentity;
use proptest::prelude::*;
use sha2::Sha512;

use super::{Claim, Digest, Keypair, PublicKey, Signature, verify_batch};
use crate::Hash;
use crate::json::Json;
use crate::testing::{add_order, fixture, golden_key, items, member, text_of};

/// A claim that owns its message.
#[derive(Clone)]
struct Case {
    key: PublicKey,
    signature: Signature,
    message: Vec<u8>,
}

impl Case {
    fn claim(&self) -> Claim<'_> {
        Claim { key: self.key, signature: self.signature, message: &self.message }
    }

    fn single(&self) -> bool {
        self.key.verify(&self.message, &self.signature)
    }

    /// ZIP-215, written out: points decoded with any encoding, `s` canonical, and
    /// `[8][s]B = [8]R + [8][k]A`.
    fn zip215(&self) -> bool {
        let (r, s) = self.signature.0.split_at(32);
        let r: [u8; 32] = r.try_into().unwrap();
        let decode = |bytes| CompressedEdwardsY(bytes).decompress();
        let s: Option<Scalar> = Scalar::from_canonical_bytes(s.try_into().unwrap()).into();
        let (Some(a), Some(big_r), Some(s)) = (decode(self.key.0), decode(r), s) else {
            return false;
        };
        let k = challenge(&r, &self.key, &self.message);
        (s * ED25519_BASEPOINT_POINT - big_r - k * a).mul_by_cofactor().is_identity()
    }

    /// The chain's rule, written out.
    fn rule(&self) -> bool {
        let key = CompressedEdwardsY(self.key.0).decompress();
        self.zip215() && key.is_some_and(|point| !point.is_small_order())
    }
}

/// The answers of one batch.
fn batch(cases: &[Case]) -> Vec<bool> {
    verify_batch(&cases.iter().map(Case::claim).collect::<Vec<_>>())
}

fn challenge(r: &[u8; 32], key: &PublicKey, message: &[u8]) -> Scalar {
    let hash = Sha512::new().chain_update(r).chain_update(key.0).chain_update(message);
    Scalar::from_bytes_mod_order_wide(&hash.finalize().into())
}

fn joined(r: [u8; 32], s: [u8; 32]) -> Signature {
    let mut bytes = [0; 64];
    bytes[..32].copy_from_slice(&r);
    bytes[32..].copy_from_slice(&s);
    Signature(bytes)
}

fn honest(number: usize) -> Case {
    let seed = Hash::digest(&number.to_le_bytes());
    let key = Keypair::from_seed(seed.as_bytes());
    let message = format!("message {number}").into_bytes();
    Case { key: key.public_key(), signature: key.sign(&message), message }
}

/// Bytes that begin with one and end with another, and are all ones between.
fn ones(first: u8, last: u8) -> [u8; 32] {
    let mut bytes = [0xff; 32];
    (bytes[0], bytes[31]) = (first, last);
    bytes
}

/// The fourteen encodings of the points of small order: eight canonical, six not.
fn small_order_encodings() -> Vec<[u8; 32]> {
    let mut encodings: Vec<[u8; 32]> =
        EIGHT_TORSION.iter().map(|point| point.compress().to_bytes()).collect();
    let [mut one, mut minus_one] = [encodings[0], encodings[4]];
    one[31] |= 0x80;
    minus_one[31] |= 0x80;
    encodings.extend([one, minus_one]);
    encodings.extend([0xed, 0xee].into_iter().flat_map(|it| [ones(it, 0x7f), ones(it, 0xff)]));
    encodings.sort_unstable();
    encodings.dedup();
    assert_eq!(encodings.len(), 14);
    encodings
}

/// Every way to write a `y` that is not below the field's prime.
fn encodings_over_the_prime() -> Vec<[u8; 32]> {
    (0xed..=0xff).flat_map(|first| [ones(first, 0x7f), ones(first, 0xff)]).collect()
}

#[test]
fn the_table_of_small_order_is_that_of_the_curve_library() {
    let random = (0..5_000_u32).map(|number| *Hash::digest(&number.to_le_bytes()).as_bytes());
    let honest_keys = (0..200).map(|number| honest(number).key.0);
    let candidates = small_order_encodings()
        .into_iter()
        .chain(encodings_over_the_prime())
        .chain(random)
        .chain(honest_keys);
    for bytes in candidates {
        let point = CompressedEdwardsY(bytes).decompress();
        let is_small = point.is_some_and(|point| point.is_small_order());
        assert_eq!(PublicKey::new(bytes).is_small_order(), is_small, "{bytes:02x?}");
    }
    for bytes in small_order_encodings() {
        assert!(PublicKey::new(bytes).is_small_order(), "{bytes:02x?}");
    }
}

#[test]
fn the_twelve_cases_of_taming_the_many_eddsas() {
    let golden = fixture(include_str!("../../fixtures/ed25519.json"));
    let cases = items(member(&golden, "cases"));
    assert_eq!(cases.len(), 12);
    let boolean = |case, key| matches!(member(case, key), Json::Bool(true));
    let mut all = Vec::new();
    let mut accepted = Vec::new();
    for case in cases {
        let owned = Case {
            key: text_of(case, "key").parse().unwrap(),
            signature: text_of(case, "signature").parse().unwrap(),
            message: const_hex::decode(text_of(case, "message")).unwrap(),
        };
        assert_eq!(owned.zip215(), boolean(case, "zip215"), "published");
        assert_eq!(owned.claim().item().verify_single().is_ok(), boolean(case, "zip215"));
        assert_eq!(owned.single(), boolean(case, "accepted"));
        assert_eq!(verify_batch(&[owned.claim()]), [boolean(case, "accepted")]);
        accepted.push(boolean(case, "accepted"));
        all.push(owned);
    }
    assert_eq!(batch(&all), accepted);
}

#[test]
fn the_196_cases_of_small_order_are_valid_in_zip215_and_refused_here() {
    let mut cases = vec![honest(0)];
    for key in small_order_encodings() {
        for r in small_order_encodings() {
            let key = PublicKey::new(key);
            let signature = joined(r, [0; 32]);
            let case = Case { key, signature, message: b"Zcash".to_vec() };
            assert!(case.zip215());
            assert!(case.claim().item().verify_single().is_ok(), "the library says so too");
            assert!(!case.single(), "a key of small order signs everything");
            cases.push(case);
        }
    }
    assert_eq!(cases.len(), 197);
    cases.push(honest(1));
    let expected: Vec<_> = (0..198).map(|index| index == 0 || index == 197).collect();
    assert_eq!(batch(&cases), expected);
}

/// Signatures of a key with a torsion part, by hand: `A = aB + T`, `R = rB + U`, `s = r + ka`,
/// where `r` may be zero, so that R is any of the fourteen encodings.
fn mixed_order_cases() -> Vec<Case> {
    let a = Scalar::from(0x1234_5678_9abc_u64);
    let mut commitments: Vec<(Scalar, [u8; 32])> =
        small_order_encodings().into_iter().map(|bytes| (Scalar::ZERO, bytes)).collect();
    for (number, torsion) in (1_u64..).zip(EIGHT_TORSION) {
        let r = Scalar::from(number << 20);
        commitments.push((r, (r * ED25519_BASEPOINT_POINT + torsion).compress().to_bytes()));
    }
    let mut cases = Vec::new();
    for torsion in EIGHT_TORSION {
        let key: EdwardsPoint = a * ED25519_BASEPOINT_POINT + torsion;
        let key = PublicKey::new(key.compress().to_bytes());
        for (r, encoding) in &commitments {
            let message = b"mixed order".to_vec();
            let s = r + challenge(encoding, &key, &message) * a;
            cases.push(Case { key, signature: joined(*encoding, s.to_bytes()), message });
        }
    }
    cases
}

#[test]
fn keys_and_commitments_with_a_torsion_part_pass_alone_and_in_every_batch() {
    let cases = mixed_order_cases();
    assert_eq!(cases.len(), 8 * 22);
    for case in &cases {
        assert!(case.rule() && case.single());
        assert_eq!(verify_batch(&[case.claim()]), [true]);
    }
    for size in [2, 3, 17, 176] {
        for some in cases.chunks(size) {
            assert_eq!(batch(some), vec![true; some.len()]);
        }
    }
}

/// Ways to spoil an honest signature or key.
fn spoilt(case: &Case, way: usize) -> Case {
    let mut case = case.clone();
    match way {
        0 => case.signature.0[0] ^= 1,
        1 => case.signature.0[40] ^= 1,
        2 => case.message.push(0),
        3 => case.key.0 = [1; 32],
        4 => case.key.0 = small_order_encodings()[0],
        5 => case.signature = joined([0xff; 32], [0; 32]),
        // s + L: the same scalar, not canonical.
        _ => add_order(&mut case.signature.0[32..]),
    }
    case
}

#[test]
fn one_bad_signature_is_found_at_every_position_of_a_batch() {
    for size in [1, 2, 3, 5, 8, 9, 16, 33] {
        let good: Vec<_> = (0..size).map(honest).collect();
        for position in 0..size {
            let mut cases = good.clone();
            cases[position] = spoilt(&cases[position], position % 7);
            assert!(!cases[position].single() && !cases[position].rule());
            let expected: Vec<_> = (0..size).map(|index| index != position).collect();
            assert_eq!(batch(&cases), expected, "{position} of {size}");
        }
    }
}

#[test]
fn an_empty_batch_has_no_answers() {
    assert_eq!(verify_batch(&[]), Vec::<bool>::new());
}

#[test]
fn the_first_signatures_of_rfc_8032() {
    let cases = [
        (
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        ),
        (
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "72",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        ),
    ];
    for (seed, key, message, signature) in cases {
        let pair = Keypair::from_seed(Hash::parse(seed).unwrap().as_bytes());
        let message = const_hex::decode(message).unwrap();
        assert_eq!(pair.public_key().to_string(), key);
        assert_eq!(pair.sign(&message).to_string(), signature);
        assert!(pair.public_key().verify(&message, &signature.parse().unwrap()));
        assert_eq!(pair.seed(), *Hash::parse(seed).unwrap().as_bytes());
    }
}

#[test]
fn a_secret_is_not_printed() {
    let key = golden_key();
    assert_eq!(format!("{key:?}"), format!("Keypair({})", key.address()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_batch_says_what_single_checks_say(
        choices in prop::collection::vec((0..40_usize, 0..12_usize), 0..40),
    ) {
        let mixed = mixed_order_cases();
        let cases: Vec<Case> = choices
            .iter()
            .map(|(number, way)| match way {
                0..=2 => honest(*number),
                3..=9 => spoilt(&honest(*number), way - 3),
                10 => mixed[*number].clone(),
                _ => spoilt(&mixed[*number], number % 7),
            })
            .collect();
        let expected: Vec<bool> = cases.iter().map(Case::single).collect();
        let by_definition: Vec<bool> = cases.iter().map(Case::rule).collect();
        prop_assert_eq!(&expected, &by_definition);
        prop_assert_eq!(batch(&cases), expected);
    }

    #[test]
    fn any_bytes_get_the_answer_of_the_rule(
        key in any::<[u8; 32]>(), r in any::<[u8; 32]>(), s in any::<[u8; 32]>(),
        message in any::<Vec<u8>>(),
    ) {
        let case = Case { key: PublicKey::new(key), signature: joined(r, s), message };
        prop_assert_eq!(case.single(), case.rule());
        prop_assert_eq!(verify_batch(&[case.claim(), honest(0).claim()]), [case.rule(), true]);
    }
}
