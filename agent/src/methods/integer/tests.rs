//! Reading numbers, exactly at the edges, and finding them in what a model says.

use proptest::prelude::*;

use super::*;

const MAX: &str = "57896044618658097711785492504343953926634992332820282019728792003956564819967";
const MIN: &str = "-57896044618658097711785492504343953926634992332820282019728792003956564819968";
const ABOVE: &str = "57896044618658097711785492504343953926634992332820282019728792003956564819968";
const BELOW: &str =
    "-57896044618658097711785492504343953926634992332820282019728792003956564819969";

#[test]
fn numbers_are_read_up_to_their_bounds_and_no_further() {
    assert_eq!(Integer::parse(MAX), Some(Integer::MAX));
    assert_eq!(Integer::parse(MIN), Some(Integer::MIN));
    assert_eq!(Integer::parse(ABOVE), None);
    assert_eq!(Integer::parse(BELOW), None);
    assert_eq!(Integer::parse(&"9".repeat(78)), None);
    assert_eq!(Integer::parse(&"9".repeat(100_000)), None);
    assert_eq!((Integer::MAX.to_string(), Integer::MIN.to_string()), (MAX.into(), MIN.into()));
}

#[test]
fn leading_zeros_and_a_negative_zero_are_in_the_pattern() {
    for text in ["0", "-0", "00", "-000"] {
        assert_eq!(Integer::parse(text), Some(Integer::ZERO), "{text}");
    }
    let padded = format!("-{}7", "0".repeat(500));
    assert_eq!(Integer::parse(&padded).map(|seven| seven.to_string()), Some("-7".to_owned()));
}

#[test]
fn what_is_not_in_the_pattern_is_no_number() {
    let texts = [
        "", "-", "+1", " 1", "1 ", "1.0", "1e3", "0x1f", "1_000", "--1", "1-", "٣", "−1", "1 ether",
    ];
    for text in texts {
        assert_eq!(Integer::parse(text), None, "{text:?}");
    }
}

#[test]
fn an_integer_that_does_not_fit_is_taken_to_the_nearest_that_does() {
    assert_eq!(Integer::first_in(ABOVE), Some(Integer::MAX));
    assert_eq!(Integer::first_in(BELOW), Some(Integer::MIN));
    assert_eq!(Integer::first_in(&format!("it is -{}.", "9".repeat(300))), Some(Integer::MIN));
    assert_eq!(Integer::first_in(MAX), Some(Integer::MAX));
    assert_eq!(Integer::first_in(MIN), Some(Integer::MIN));
}

proptest! {
    #[test]
    fn a_number_that_stands_alone_is_found(number: i128, before in "[a-z ]{0,20} ", after in "( [a-z0-9]{0,20})?") {
        let found = Integer::first_in(&format!("{before}{number}{after}"));
        prop_assert_eq!(found.map(|found| found.to_string()), Some(number.to_string()));
    }

    #[test]
    fn a_number_with_thousands_separators_is_found_whole(number in 0..u64::MAX) {
        let digits = number.to_string();
        let mut grouped = String::new();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index) % 3 == 0 {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        prop_assert_eq!(Integer::first_in(&grouped).map(|found| found.to_string()), Some(digits));
    }

    #[test]
    fn what_is_written_is_read_back(limbs: [u64; 4]) {
        let number = Integer(I256::from_limbs(limbs));
        prop_assert_eq!(Integer::parse(&number.to_string()), Some(number));
    }

    #[test]
    fn any_text_has_an_integer_within_the_bounds_or_none(text in "[-−0-9.,_a0-9٣² ]{0,40}|\\PC{0,40}") {
        if let Some(number) = Integer::first_in(&text) {
            prop_assert!((Integer::MIN..=Integer::MAX).contains(&number));
            prop_assert!(text.bytes().any(|byte| byte.is_ascii_digit()));
        }
    }
}
