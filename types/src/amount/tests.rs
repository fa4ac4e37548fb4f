//! Amounts as text, as bytes, and in sums.

use proptest::prelude::*;

use super::Amount;
use crate::codec::{decode, encode};

#[test]
fn plain_decimal_strings_are_amounts() {
    for (text, micro) in [
        ("0", 0),
        ("1", 1),
        ("1000000", 1_000_000),
        ("9007199254740993", 9_007_199_254_740_993),
        ("18446744073709551615", u64::MAX),
    ] {
        assert_eq!(Amount::parse(text), Ok(Amount::new(micro)));
        assert_eq!(text.parse(), Ok(Amount::new(micro)));
        assert_eq!(Amount::new(micro).to_string(), text);
    }
}

#[test]
fn anything_else_is_refused_with_the_rule() {
    let bad = "00 01 +1 -1 -0 1.0 1e3 0x1 1_000 １ 18446744073709551616 99999999999999999999 \
               000000000000000000001 184467440737095516150";
    let others = ["", " ", " 1", "1 "];
    for text in bad.split_whitespace().chain(others) {
        let error = Amount::parse(text).unwrap_err();
        assert_eq!(error.got, text);
        assert!(error.expected.contains("without sign or leading zero"), "{error}");
    }
}

#[test]
fn sums_that_do_not_fit_are_no_sums() {
    let one = Amount::new(1);
    assert_eq!(Amount::MAX.checked_add(one), None);
    assert_eq!(Amount::ZERO.checked_sub(one), None);
    assert_eq!(Amount::MAX.checked_mul(2), None);
    assert_eq!(one.checked_add(one), Some(Amount::new(2)));
    assert_eq!(one.checked_sub(one), Some(Amount::ZERO));
    assert_eq!(Amount::new(3).checked_mul(100), Some(Amount::new(300)));
    assert!(Amount::ZERO.is_zero() && !one.is_zero());
}

#[test]
fn people_see_six_decimals() {
    assert_eq!(Amount::new(1_500_000).ombra(), "1.500000");
    assert_eq!(Amount::new(1).ombra(), "0.000001");
    assert_eq!(Amount::MAX.ombra(), "18446744073709.551615");
}

#[test]
fn json_is_a_string_and_binary_is_eight_bytes() {
    let amount = Amount::new(258);
    assert_eq!(serde_json::to_string(&amount).unwrap(), "\"258\"");
    assert_eq!(serde_json::from_str::<Amount>("\"258\"").unwrap(), amount);
    for json in ["258", "\"0258\"", "258.0", "null", "\"-1\""] {
        assert!(serde_json::from_str::<Amount>(json).is_err(), "{json}");
    }
    assert_eq!(encode(&amount), [2, 1, 0, 0, 0, 0, 0, 0]);
}

proptest! {
    #[test]
    fn every_amount_is_read_back(micro in any::<u64>()) {
        let amount = Amount::new(micro);
        prop_assert_eq!(Amount::parse(&amount.to_string()), Ok(amount));
        prop_assert_eq!(decode::<Amount>(&encode(&amount)).unwrap(), amount);
    }

    #[test]
    fn a_text_is_an_amount_only_if_it_is_the_amounts_own_text(text in "[0-9+\\- .e]{0,22}") {
        if let Ok(amount) = Amount::parse(&text) {
            prop_assert_eq!(amount.to_string(), text);
        }
    }
}
