//! Parsing: the published vectors, what real clients send, every way to be MALFORMED, and the
//! binary form.

mod clients;
mod rejections;

use proptest::prelude::*;

use super::{DecodeTxError, SealedTx, SizeLimits, Transaction, read_json};
use crate::build::{Envelope, Unsigned};
use crate::json::Json;
use crate::testing::{
    Draft, Generated as _, VECTORS, bodies, fixture, golden_key, limits, member, text_of, written,
};
use crate::{Body, Code, Hash, Params, PublicKey, Signature};

/// The vectors of one section: name and flat signed JSON.
fn vectors(section: &str) -> Vec<(String, String)> {
    let vectors = fixture(VECTORS);
    let Json::Object(members) = member(&vectors, section) else { panic!("no object") };
    members.iter().map(|(name, value)| (name.to_string(), written(value))).collect()
}

/// Whether a vector is of a kind of this chain.
fn is_ours((name, _): &(String, String)) -> bool {
    name == "TRANSFER" || name == "MINER_REGISTER"
}

/// The binary form.
fn bytes_of(tx: &Transaction) -> Vec<u8> {
    let mut bytes = Vec::new();
    tx.encode(&mut bytes);
    bytes
}

#[test]
fn vectors_of_supported_kinds_parse_verify_and_build_again() {
    let published = vectors("sdk_generated").into_iter().filter(is_ours);
    let cases: Vec<_> = published.chain(vectors("inferred_v6")).collect();
    assert_eq!(cases.len(), 8);

    for (name, text) in cases {
        let tx = Transaction::parse(text.as_bytes(), &limits()).unwrap();
        assert_eq!(tx.hash(), tx.stated_hash(), "{name}");
        assert!(tx.public_key().verify(&tx.hash().to_hex(), &tx.signature()), "{name}");
        assert_eq!(tx.from(), tx.public_key().address(), "{name}");
        assert_eq!(tx.to_json(), text, "{name}");

        let envelope = Envelope::new(tx.nonce(), tx.timestamp(), None);
        let built = Unsigned::build(tx.body(), &tx.from_text(), &tx.public_key(), &envelope);
        assert_eq!(built.sign(&golden_key()), text, "{name}");
    }
}

#[test]
fn vectors_of_other_kinds_verify_over_the_payload_and_are_unsupported() {
    let published = vectors("sdk_generated").into_iter();
    let others: Vec<_> = published.filter(|case| !is_ours(case)).collect();
    assert_eq!(others.len(), 10);

    for (name, text) in others {
        let (value, payload) = read_json(text.as_bytes(), &limits()).unwrap();
        let hash = Hash::digest(payload.as_bytes());
        assert_eq!(hash.to_string(), text_of(&value, "hash"), "{name}");
        let key: PublicKey = text_of(&value, "publicKey").parse().unwrap();
        let signature: Signature = text_of(&value, "signature").parse().unwrap();
        assert!(key.verify(&hash.to_hex(), &signature), "{name}");

        let rejection = Transaction::parse(text.as_bytes(), &limits()).unwrap_err();
        assert_eq!(rejection.code(), Code::UnsupportedType, "{name}");
        assert_eq!(rejection.field(), "type");
        assert_eq!(rejection.got(), format!("{:?}", text_of(&value, "type")));
        assert!(rejection.message().contains("AGENT_REQUEST"), "{}", rejection.message());
    }
}

#[test]
fn an_unsigned_transaction_may_lack_hash_and_signature() {
    for body in bodies() {
        let text = Draft::of(&body).text();
        let signed = Transaction::parse(text.as_bytes(), &limits()).unwrap();
        let unsigned = Transaction::parse_unsigned(signed.payload().as_bytes(), &limits()).unwrap();
        assert_eq!(unsigned.payload(), signed.payload());
        assert_eq!(unsigned.stated_hash(), signed.hash());
        assert_eq!(Transaction::parse_unsigned(text.as_bytes(), &limits()).unwrap(), signed);
    }
    let rejection = Transaction::parse_unsigned(
        Draft::of(&bodies()[5]).with("hash", "null").text().as_bytes(),
        &limits(),
    );
    assert_eq!(rejection.unwrap_err().field(), "hash", "what is there must be right");
}

#[test]
fn the_binary_form_is_length_payload_signature() {
    let tx = Draft::of(&bodies()[5]).parse().unwrap();
    let mut bytes = bytes_of(&tx);
    assert_eq!(bytes.len(), tx.encoded_bytes());

    let payload = tx.payload().as_bytes();
    let mut expected = u32::try_from(payload.len()).unwrap().to_le_bytes().to_vec();
    expected.extend_from_slice(payload);
    expected.extend_from_slice(tx.signature().as_bytes());
    assert_eq!(bytes, expected);

    bytes.extend_from_slice(b"rest");
    let (decoded, rest) = Transaction::decode(&bytes, &limits()).unwrap();
    assert_eq!((decoded, rest), (tx, b"rest".as_slice()));
}

/// The binary form of any payload, whether it is one or not.
fn encoded(payload: &str) -> Vec<u8> {
    let mut bytes = u32::try_from(payload.len()).unwrap().to_le_bytes().to_vec();
    bytes.extend_from_slice(payload.as_bytes());
    bytes.extend_from_slice(&[0; 64]);
    bytes
}

#[test]
fn cut_off_bytes_are_refused_at_every_length() {
    let bytes = bytes_of(&Draft::of(&bodies()[5]).parse().unwrap());
    for length in 0..bytes.len() {
        let error = Transaction::decode(&bytes[..length], &limits()).unwrap_err();
        assert!(matches!(error, DecodeTxError::Truncated { bytes } if bytes == length));
    }
    let huge = [0xff; 100];
    let error = Transaction::decode(&huge, &limits()).unwrap_err();
    assert!(matches!(error, DecodeTxError::Truncated { bytes: 100 }), "{error}");
}

#[test]
fn what_is_shown_of_a_stored_transaction_is_what_was_signed() {
    for body in bodies() {
        let tx = Draft::of(&body).parse().unwrap();
        let bytes = bytes_of(&tx);
        let (shown, rest) = SealedTx::decode(&bytes).unwrap();
        assert_eq!((&shown, rest), (&SealedTx::from(&tx), b"".as_slice()));
        assert_eq!((shown.to_json(), shown.hash()), (tx.to_json(), tx.hash()));
        assert_eq!(shown.signed_bytes(), shown.to_json().len());
        for length in 0..bytes.len() {
            let error = SealedTx::decode(&bytes[..length]).unwrap_err();
            assert!(matches!(error, DecodeTxError::Truncated { bytes } if bytes == length));
        }
    }
    let mut not_text = encoded("{}");
    not_text[4] = 0xff;
    assert!(matches!(SealedTx::decode(&not_text), Err(DecodeTxError::NotText(_))));
}

#[test]
fn one_transaction_has_one_binary_form() {
    let payload = Draft::of(&bodies()[0]).parse().unwrap().payload().to_owned();
    assert!(Transaction::decode(&encoded(&payload), &limits()).is_ok());
    let other_forms = [
        format!("{payload} "),
        payload.replace("\":", "\": "),
        payload.replace('ț', "\\u021b"),
        payload.replace("tool", "\\u0074ool"),
        payload.replace('}', ",\"hash\":\"\"}"),
        payload.replacen('{', "{\"signature\":0,", 1),
    ];
    for form in other_forms {
        assert_ne!(form, payload);
        let error = Transaction::decode(&encoded(&form), &limits()).unwrap_err();
        assert!(matches!(error, DecodeTxError::NotCanonical), "{form}: {error}");
    }
}

#[test]
fn stored_bytes_obey_the_rules_of_parsing() {
    let payload = Draft::of(&bodies()[5]).parse().unwrap().payload().to_owned();
    let code =
        |payload: &str, limits: &SizeLimits| match Transaction::decode(&encoded(payload), limits) {
            Err(DecodeTxError::Rejected(rejection)) => rejection.code(),
            other => panic!("{other:?}"),
        };
    assert_eq!(code(&payload.replace("AGENT", "AGENCY"), &limits()), Code::UnsupportedType);
    assert_eq!(code("[]", &limits()), Code::Malformed);
    let tx_bytes = payload.len() + super::SEAL_BYTES;
    let exact = SizeLimits { tx_bytes, chunk_tx_bytes: 786_432 };
    assert!(Transaction::decode(&encoded(&payload), &exact).is_ok());
    let tight = SizeLimits { tx_bytes: tx_bytes - 1, ..exact };
    assert_eq!(code(&payload, &tight), Code::Malformed);
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in any::<Vec<u8>>()) {
        drop(Transaction::parse(&bytes, &limits()));
        drop(Transaction::decode(&bytes, &limits()));
    }

    #[test]
    fn any_change_of_a_byte_is_refused_or_understood(
        kind in 0..11_usize, at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut bytes = Draft::of(&bodies()[kind]).text().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(tx) = Transaction::parse(&bytes, &limits()) {
            let encoded = bytes_of(&tx);
            let (decoded, _) = Transaction::decode(&encoded, &limits()).unwrap();
            prop_assert_eq!(decoded.payload(), tx.payload());
        }
    }

    #[test]
    fn what_is_built_is_parsed_and_decoded_unchanged(
        body in Body::any(),
        nonce in 0..=crate::params::INTEGER_MAX,
        timestamp in 0..=crate::params::INTEGER_MAX,
        chain_id in any::<Option<String>>(),
        has_prefix in any::<bool>(),
    ) {
        let key = golden_key();
        let from = format!("{}{}", if has_prefix { "ox" } else { "" }, key.address());
        let envelope = Envelope::new(nonce, timestamp, chain_id);
        let unsigned = Unsigned::build(&body, &from, &key.public_key(), &envelope);
        let text = unsigned.sign(&key);

        let tx = Transaction::parse(text.as_bytes(), &limits()).unwrap();
        prop_assert_eq!(tx.body(), &body);
        prop_assert_eq!(tx.from_text(), from);
        prop_assert_eq!((tx.nonce(), tx.timestamp()), (nonce, timestamp));
        prop_assert_eq!(tx.chain_id(), envelope.chain_id.as_deref());
        prop_assert_eq!(tx.payload(), unsigned.payload());
        prop_assert_eq!(tx.hash(), tx.stated_hash());
        prop_assert_eq!(tx.to_json(), text);

        let bytes = bytes_of(&tx);
        let (decoded, rest) = Transaction::decode(&bytes, &limits()).unwrap();
        prop_assert_eq!(decoded, tx);
        prop_assert!(rest.is_empty());
    }
}

#[test]
fn default_limits_are_the_documented_ones() {
    let SizeLimits { tx_bytes, chunk_tx_bytes } = SizeLimits::from(&Params::default());
    assert_eq!((tx_bytes, chunk_tx_bytes), (131_072, 786_432));
}
