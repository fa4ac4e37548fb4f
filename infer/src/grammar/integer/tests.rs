//! Tests.

use regex::Regex;

use super::{MAGNITUDE_MAX, MAGNITUDE_MIN, UNSIGNED_MAX, pattern};
use crate::error::GrammarError;

fn matcher(min: Option<&str>, max: Option<&str>) -> Regex {
    Regex::new(&format!("^(?:{})$", pattern(min, max).unwrap())).unwrap()
}

#[test]
fn a_pattern_has_the_numbers_between_the_bounds_and_no_other() {
    let bounds =
        [-1_000, -999, -120, -101, -100, -99, -10, -9, -1, 0, 1, 7, 9, 10, 11, 99, 100, 455, 1_000];
    for low in bounds {
        for high in bounds.into_iter().filter(|high| *high >= low) {
            let regex = matcher(Some(&low.to_string()), Some(&high.to_string()));
            for number in -1_100..1_100 {
                let expected = (low..=high).contains(&number);
                assert_eq!(regex.is_match(&number.to_string()), expected, "{number}: {low} {high}");
            }
        }
    }
}

#[test]
fn a_number_has_one_written_form() {
    let regex = matcher(Some("-99"), Some("99"));
    for other in ["-0", "+1", "01", "-01", "", "-", " 1", "1 ", "1.0", "1e1", "100"] {
        assert!(!regex.is_match(other), "{other:?}");
    }
}

#[test]
fn the_bounds_are_those_of_256_bits() {
    let regex = matcher(None, None);
    let lowest = format!("-{MAGNITUDE_MIN}");
    assert!(regex.is_match(&lowest) && regex.is_match(MAGNITUDE_MAX));
    assert!(!regex.is_match(MAGNITUDE_MIN));
    assert!(!regex.is_match(&lowest.replace("968", "969")));
    assert!(matcher(Some(&lowest), Some(MAGNITUDE_MAX)).is_match("0"));
    let whole = matcher(Some("0"), Some(UNSIGNED_MAX));
    let beyond = UNSIGNED_MAX.replace("935", "936");
    assert!(whole.is_match(UNSIGNED_MAX) && !whole.is_match(&beyond) && !whole.is_match("-1"));
    let refused = pattern(None, Some(&beyond)).unwrap_err();
    assert_eq!(refused, GrammarError::Bound { bound: "maximum", text: beyond });
}

#[test]
fn a_bound_is_a_whole_number_in_decimal() {
    for text in ["", "-", "1.5", "0x10", " 1", "1e3", "+1", "--1"] {
        let error = pattern(Some(text), None).unwrap_err();
        assert_eq!(error, GrammarError::Bound { bound: "minimum", text: text.to_owned() });
    }
    assert!(matcher(Some("-0"), Some("007")).is_match("7"));
    let error = pattern(Some("5"), Some("4")).unwrap_err();
    assert_eq!(error, GrammarError::NoNumber { min: "5".to_owned(), max: "4".to_owned() });
}
