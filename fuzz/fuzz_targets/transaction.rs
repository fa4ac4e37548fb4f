//! Any bytes are a transaction or refused; a transaction keeps its meaning through its binary
//! form, its JSON text and the builder.
#![no_main]

use libfuzzer_sys::fuzz_target;
use types::build::{Envelope, Unsigned};
use types::check::{StaticRules, verify_one, verify_unsigned};
use types::{Forks, Params, SizeLimits, Transaction};

fuzz_target!(|bytes: &[u8]| {
    let params = Params::default();
    let limits = SizeLimits::from(&params);
    if let Ok((tx, rest)) = Transaction::decode(bytes, &limits) {
        let mut encoded = Vec::new();
        tx.encode(&mut encoded);
        assert_eq!([encoded.as_slice(), rest].concat(), bytes, "one binary form");
    }
    let Ok(tx) = Transaction::parse_unsigned(bytes, &limits) else {
        assert!(Transaction::parse(bytes, &limits).is_err());
        return;
    };
    same_after_binary_form(&tx, &limits);
    same_after_json(&tx, &limits);
    same_after_building(&tx, &limits);

    let all = Forks { validator_vote: Some(0), v7: Some(0), v8: Some(0), ..Forks::default() };
    for forks in [Forks::default(), all] {
        let rules = StaticRules { chain_id: "fuzz", params: &params, forks, height: 1 };
        let is_good = verify_one(tx.clone(), &rules).is_ok();
        assert!(!is_good || verify_unsigned(tx.clone(), &rules).is_ok());
    }
});

fn same_after_binary_form(tx: &Transaction, limits: &SizeLimits) {
    let mut encoded = Vec::new();
    tx.encode(&mut encoded);
    assert_eq!(encoded.len(), tx.encoded_bytes());
    let (decoded, rest) = Transaction::decode(&encoded, limits).expect("it was encoded");
    assert!(rest.is_empty());
    assert_eq!(decoded.payload(), tx.payload());
    assert_eq!((decoded.hash(), decoded.signature()), (tx.hash(), tx.signature()));
    assert_eq!(decoded.body(), tx.body());
}

fn same_after_json(tx: &Transaction, limits: &SizeLimits) {
    let text = tx.to_json();
    assert_eq!(text.len(), tx.signed_bytes());
    let parsed = Transaction::parse(text.as_bytes(), limits).expect("its own text");
    assert_eq!(parsed.payload(), tx.payload());
    assert_eq!(parsed.stated_hash(), tx.hash());
    assert_eq!(parsed.to_json(), text);
}

fn same_after_building(tx: &Transaction, limits: &SizeLimits) {
    let chain_id = tx.chain_id().map(str::to_owned);
    let envelope = Envelope::new(tx.nonce(), tx.timestamp(), chain_id);
    let built = Unsigned::build(tx.body(), &tx.from_text(), &tx.public_key(), &envelope);
    let rebuilt = Transaction::parse_unsigned(built.payload().as_bytes(), limits)
        .expect("a built payload is no longer than the one it came from");
    assert_eq!(rebuilt.body(), tx.body());
    assert_eq!(rebuilt.payload(), built.payload());
    assert_eq!((rebuilt.from(), rebuilt.public_key()), (tx.from(), tx.public_key()));
}
