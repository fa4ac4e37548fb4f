//! Both written forms of an address.

use super::Address;
use crate::codec::{decode, encode};
use crate::testing::{VECTORS, fixture, golden_key, member, text_of};

#[test]
fn the_golden_wallet_has_its_published_address() {
    let vectors = fixture(VECTORS);
    let wallet = member(member(&vectors, "wallet"), "index0");
    let key = golden_key().public_key();
    assert_eq!(key.to_string(), text_of(wallet, "publicKey"));
    assert_eq!(Address::from_public_key(&key).to_string(), text_of(wallet, "address"));
    assert_eq!(key.address(), golden_key().address());
}

#[test]
fn both_forms_are_the_same_address_and_the_bare_one_is_printed() {
    let bare = "94bfbb5fbd2fea4c67be283d36528a3cfd1cfda3";
    let address = Address::parse(bare).unwrap();
    assert_eq!(Address::parse(&format!("ox{bare}")), Ok(address));
    assert_eq!(address.to_string(), bare);
    assert_eq!(format!("{address:?}"), bare);
    assert_eq!(serde_json::to_string(&address).unwrap(), format!("\"{bare}\""));
    let prefixed = format!("\"ox{bare}\"");
    assert_eq!(serde_json::from_str::<Address>(&prefixed).unwrap(), address);
    assert_eq!(encode(&address), address.as_bytes());
    assert_eq!(decode::<Address>(address.as_bytes()).unwrap(), address);
}

#[test]
fn other_texts_are_refused_whole() {
    let bare = "94bfbb5fbd2fea4c67be283d36528a3cfd1cfda3";
    for text in [
        String::new(),
        "ox".to_owned(),
        bare.to_uppercase(),
        format!("0x{bare}"),
        format!("OX{bare}"),
        format!("oxox{bare}"),
        format!("{bare} "),
        format!(" {bare}"),
        format!("{bare}00"),
        bare[..39].to_owned(),
        bare[..38].to_owned(),
        format!("ox{}", &bare[..38]),
        format!("0x{}", &bare[..38]),
    ] {
        assert_eq!(Address::parse(&text).unwrap_err().got, text);
    }
}
