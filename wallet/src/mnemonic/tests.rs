//! The golden wallet, and words that must be refused.

use super::{Phrase, WordCount};
use crate::WalletError;

const GOLDEN: &str =
    "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about";

fn phrase(text: &str) -> Phrase {
    Phrase::parse(text).unwrap()
}

#[test]
fn the_golden_mnemonic_gives_the_golden_keys() {
    let first = phrase(GOLDEN).derive(0).unwrap();
    assert_eq!(
        "2b5159fc0ec5030712e9ff87b9b83b4ae0ae7d50a601a9aaa44837f8038f37fb",
        const_hex::encode(first.seed())
    );
    assert_eq!(
        "ed5509fe8b726488ca7bd896040755bb1fe6377fc30cfa595f4d223ca1976f67",
        first.public_key().to_string()
    );
    assert_eq!("94bfbb5fbd2fea4c67be283d36528a3cfd1cfda3", first.address().to_string());
    let second = phrase(GOLDEN).derive(1).unwrap();
    assert_eq!("0412c31884ffd42ec7e31b02e36ecac168b0a59b", second.address().to_string());
}

#[test]
fn a_mnemonic_of_24_words_gives_the_key_that_the_python_sdk_derives() {
    let words = format!("{} art", ["abandon"; 23].join(" "));
    let third = phrase(&words).derive(2).unwrap();
    assert_eq!("a6d9d3e4d55f482bbf05e1846dd7f3d8b7d9ce83", third.address().to_string());
}

#[test]
fn white_space_around_and_between_words_does_not_matter() {
    let spaced = GOLDEN.replace(' ', " \n\t ");
    assert_eq!(GOLDEN, phrase(&format!("  {spaced}\n")).expose());
}

#[test]
fn wrong_words_are_refused() {
    let bad_checksum = ["abandon"; 12].join(" ");
    let unknown_word = GOLDEN.replace("about", "ombra");
    for text in [bad_checksum.as_str(), unknown_word.as_str(), "", "abandon"] {
        assert!(matches!(Phrase::parse(text), Err(WalletError::BadMnemonic(_))), "{text}");
    }
    let fifteen = format!("{} address", ["abandon"; 14].join(" "));
    assert!(matches!(Phrase::parse(&fifteen), Err(WalletError::WordCount(15))));
}

#[test]
fn an_index_for_hardened_keys_is_refused() {
    let refused = phrase(GOLDEN).derive(1 << 31);
    assert!(matches!(refused, Err(WalletError::IndexTooHigh(0x8000_0000))));
}

#[test]
fn new_mnemonics_have_the_asked_words_and_differ() {
    for (count, words) in [(WordCount::Twelve, 12), (WordCount::TwentyFour, 24)] {
        let (one, other) = (Phrase::generate(count).unwrap(), Phrase::generate(count).unwrap());
        assert_eq!(words, one.expose().split(' ').count());
        assert_ne!(one, other);
        assert_eq!(one, phrase(one.expose()));
    }
}

#[test]
fn debug_output_hides_the_words() {
    assert_eq!("Phrase(hidden)", format!("{:?}", phrase(GOLDEN)));
}
