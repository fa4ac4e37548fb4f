//! The function against the vectors of RFC 9381, and proofs that are made to be refused.

use curve25519_dalek::constants::EIGHT_TORSION;
use proptest::prelude::*;

use super::*;
use crate::testing::add_order;

/// Seed, public key, message, proof and output.
type Vector = [&'static str; 5];

/// RFC 9381 appendix B.3, examples 16 to 18.
const VECTORS: [Vector; 3] = [
    [
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "8657106690b5526245a92b003bb079ccd1a92130477671f6fc01ad16f26f723f\
         26f8a57ccaed74ee1b190bed1f479d97\
         27d2d0f9b005a6e456a35d4fb0daab1268a1b0db10836d9826a528ca76567805",
        "90cf1df3b703cce59e2a35b925d411164068269d7b2d29f3301c03dd757876ff\
         66b71dda49d2de59d03450451af026798e8f81cd2e333de5cdf4f3e140fdd8ae",
    ],
    [
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "f3141cd382dc42909d19ec5110469e4feae18300e94f304590abdced48aed593\
         3bf0864a62558b3ed7f2fea45c92a465\
         301b3bbf5e3e54ddf2d935be3b67926da3ef39226bbc355bdc9850112c8f4b02",
        "eb4440665d3891d668e7e0fcaf587f1b4bd7fbfe99d0eb2211ccec90496310eb\
         5e33821bc613efb94db5e5b54c70a848a0bef4553a41befc57663b56373a5031",
    ],
    [
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "9bc0f79119cc5604bf02d23b4caede71393cedfbb191434dd016d30177ccbf80\
         96bb474e53895c362d8628ee9f9ea3c0\
         e52c7a5c691b6c18c9979866568add7a2d41b00b05081ed0f58ee5e31b3a970e",
        "645427e5d00c62a23fb703732fa5d892940935942101e456ecca7bb217c61c45\
         2118fec1219202a0edcf038bb6373241578be7217ba85a2687f7a0310b2df19f",
    ],
];

fn key() -> Keypair {
    Keypair::from_seed(&[7; 32])
}

fn bytes<const N: usize>(text: &str) -> [u8; N] {
    decode_lower_hex(text).unwrap()
}

#[test]
fn the_vectors_of_the_rfc_are_met() {
    for [seed, public, message, proof, output] in VECTORS {
        let key = Keypair::from_seed(&bytes(seed));
        let message = const_hex::decode(message).unwrap();
        assert_eq!(key.public_key().to_string(), public);
        let (proved, given) = prove(&key, &message);
        assert_eq!(proved.to_string(), proof);
        assert_eq!(given, bytes(output));
        assert_eq!(verify(&key.public_key(), &message, &proved), Some(given));
    }
}

#[test]
fn a_proof_with_any_bit_changed_proves_nothing() {
    let (proof, _) = prove(&key(), b"message");
    for bit in 0..PROOF_BYTES * 8 {
        let mut changed = proof;
        changed.0[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(verify(&key().public_key(), b"message", &changed), None, "bit {bit}");
    }
}

/// The same number in another form: with the group's order added as often as it fits.
#[test]
fn a_number_beyond_the_order_is_no_second_form_of_a_proof() {
    let (proof, _) = prove(&key(), b"message");
    let (gamma, challenge, mut response) = proof.split().unwrap();
    for _ in 0..7 {
        add_order(&mut response);
        let again = Proof::join((gamma, challenge, response));
        assert_eq!(verify(&key().public_key(), b"message", &again), None);
    }
}

#[test]
fn a_point_has_one_form() {
    let identity = {
        let mut one = [0; 32];
        one[0] = 1;
        one
    };
    assert!(decode(&identity).is_some());
    // The same with a sign that it has not, and with the prime added to it.
    let mut signed = identity;
    signed[31] = 0x80;
    let mut more = [0xff; 32];
    (more[0], more[31]) = (0xee, 0x7f);
    for second in [signed, more] {
        assert!(CompressedEdwardsY(second).decompress().is_some(), "the curve library takes it");
        assert_eq!(decode(&second), None);
    }
}

#[test]
fn keys_of_small_order_and_keys_that_are_no_points_prove_nothing() {
    let (proof, _) = prove(&key(), b"message");
    let mut keys: Vec<[u8; 32]> =
        EIGHT_TORSION.iter().map(|point| point.compress().to_bytes()).collect();
    let no_point = (0..=u8::MAX).map(|byte| [byte; 32]).find(|it| decode(it).is_none()).unwrap();
    keys.extend([no_point, [0xff; 32]]);
    for key in keys {
        assert_eq!(verify(&PublicKey::new(key), b"message", &proof), None, "{key:?}");
    }
    // A proof without secrets, which a verifier that takes such a key would believe: every product with
    // the key is the identity.
    let identity = EIGHT_TORSION[0];
    let key = PublicKey::new(identity.compress().to_bytes());
    let point = encode_to_curve(&key, b"message").unwrap();
    let one = Scalar::ONE;
    let challenge =
        challenge(&key, [&point, &identity, &EdwardsPoint::mul_base(&one), &(one * point)]);
    let forged = Proof::join((identity.compress().to_bytes(), challenge, one.to_bytes()));
    assert_eq!(verify(&key, b"message", &forged), None);
}

proptest! {
    #[test]
    fn no_bytes_are_too_strange_to_be_refused(
        key in any::<[u8; 32]>(),
        message in proptest::collection::vec(any::<u8>(), 0..100),
        proof in proptest::collection::vec(any::<u8>(), PROOF_BYTES),
    ) {
        let proof = Proof::new(proof.try_into().unwrap());
        prop_assert_eq!(verify(&PublicKey::new(key), &message, &proof), None);
        prop_assert_eq!(proof.to_string().parse(), Ok(proof));
    }

    #[test]
    fn what_a_key_proves_is_believed(
        seed in any::<[u8; 32]>(),
        message in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let key = Keypair::from_seed(&seed);
        let (proof, output) = prove(&key, &message);
        prop_assert_eq!(verify(&key.public_key(), &message, &proof), Some(output));
    }
}
