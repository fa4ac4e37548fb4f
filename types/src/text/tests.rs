//! Fixed-size bytes as text and in binary, and values in messages.

use super::{Quoted, QuotedChar, escaped, is_unsafe, printable, shorten};
use crate::codec::{decode, encode};
use crate::{Address, Hash, PublicKey, Signature};

#[test]
fn messages_show_80_characters_and_nothing_that_drives_a_terminal() {
    assert_eq!(shorten(""), "");
    assert_eq!(shorten(&"ț".repeat(80)), "ț".repeat(80));
    assert_eq!(shorten(&"ț".repeat(81)), format!("{}…", "ț".repeat(80)));
    assert_eq!(shorten("a\n\x1b[2Jb\u{85}"), "a\u{fffd}\u{fffd}[2Jb\u{fffd}");
}

#[test]
fn quoted_texts_are_the_same_with_every_compiler() {
    let ascii: String = (0..0x80).map(char::from).collect();
    assert_eq!(Quoted(&ascii).to_string(), format!("{ascii:?}"));
    for character in ascii.chars() {
        assert_eq!(QuotedChar(character).to_string(), format!("{character:?}"));
    }
    // No letter yet, for private use, not seen by itself: compilers escape these, or did.
    let others = "\u{378}\u{e000}\u{301}";
    assert_eq!(Quoted(others).to_string(), format!("\"{others}\""));
    assert_eq!(QuotedChar('\u{301}').to_string(), "'\u{301}'");
    assert_eq!(Quoted("é\u{202e}\u{2028}").to_string(), r#""é\u{202e}\u{2028}""#);
}

#[test]
fn hashes_keys_and_signatures_are_hex_in_json_and_plain_bytes_in_binary() {
    let hash = Hash::new([0xab; 32]);
    let key = PublicKey::new([0xcd; 32]);
    let signature = Signature::new([0xef; 64]);
    assert_eq!(serde_json::to_string(&hash).unwrap(), format!("\"{}\"", "ab".repeat(32)));
    assert_eq!(serde_json::to_string(&key).unwrap(), format!("\"{}\"", "cd".repeat(32)));
    assert_eq!(serde_json::to_string(&signature).unwrap(), format!("\"{}\"", "ef".repeat(64)));
    assert_eq!(
        encode(&(hash, key, signature)),
        [[0xab; 32], [0xcd; 32], [0xef; 32], [0xef; 32]].concat()
    );
    assert_eq!(decode::<Signature>(&[0xef; 64]).unwrap(), signature);
    assert!(decode::<Signature>(&[0xef; 63]).is_err());

    assert_eq!(serde_json::from_str::<Hash>(&format!("\"{hash}\"")).unwrap(), hash);
    for json in [format!("\"{}\"", "AB".repeat(32)), format!("\"0x{hash}\""), "1".to_owned()] {
        assert!(serde_json::from_str::<Hash>(&json).is_err(), "{json}");
    }
    assert_eq!(hash.to_hex().as_slice(), hash.to_string().as_bytes());
}

#[test]
fn every_byte_keeps_its_place_in_binary() {
    // Twenty bytes are no whole number of words.
    let bytes: Vec<u8> = (1..=52).collect();
    let (address, hash) = bytes.split_at(20);
    let address = Address::new(address.try_into().unwrap());
    let hash = Hash::new(hash.try_into().unwrap());
    assert_eq!(encode(&(address, hash)), bytes);
    assert_eq!(decode::<(Address, Hash)>(&bytes).unwrap(), (address, hash));
    assert!(decode::<(Address, Hash)>(&bytes[..51]).is_err());
    assert!(decode::<Address>(&bytes[..19]).is_err());
}

#[test]
fn what_drives_a_terminal_or_hides_is_shown_as_such() {
    let hidden = "\0\u{7}\u{8}\r\u{1b}\u{7f}\u{85}\u{9b}\u{9f}\u{61c}\u{200b}\u{200d}\u{200f}\
                  \u{2028}\u{2029}\u{202a}\u{202e}\u{2060}\u{2066}\u{2069}\u{feff}\u{e0041}\
                  \u{115f}\u{1160}\u{2800}\u{3164}\u{fe00}\u{ffa0}\u{e0100}\u{e01ef}";
    for hidden in hidden.chars() {
        assert!(is_unsafe(hidden), "{hidden:?}");
        assert_eq!("a\u{fffd}b", shorten(&format!("a{hidden}b")));
        assert_eq!("a\u{fffd}b", printable(&format!("a{hidden}b")));
        assert!(!escaped(&format!("a{hidden}b")).contains(hidden), "{hidden:?}");
    }
    for plain in ["a b\n\tc", "Grüße, 你好, שלום, مرحبا, 👍, ⚠️", "\u{a0}"] {
        assert_eq!((plain.to_owned(), plain.to_owned()), (printable(plain), escaped(plain)));
    }
}

#[test]
fn json_that_is_escaped_for_a_terminal_says_the_same() {
    let said: String = ('\0'..='\u{2100}').chain(['\u{feff}', '\u{e0041}', '\u{1f44d}']).collect();
    let value = serde_json::json!({ "said": said, "\u{202e}key": ["\u{9b}2J"] });
    let text = serde_json::to_string(&value).unwrap();
    let shown = escaped(&format!("{{\r\n\t\"wrapped\":{text}}}"));
    assert!(!shown.chars().any(|it| is_unsafe(it) && !matches!(it, '\n' | '\t')), "{shown}");
    let read: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(value, read["wrapped"]);
    assert_eq!("\\udb40\\udc41", escaped("\u{e0041}"));
}
