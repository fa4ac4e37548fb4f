//! The grammar and the order of Semantic Versioning 2.0.0.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::{Version, VersionError};

fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

#[test]
fn versions_by_the_grammar_are_read() {
    // Among them the examples at semver.org.
    let good = "0.0.0 0.0.4 1.2.3 10.20.30 1.1.2-prerelease+meta 1.1.2+meta 1.1.2+meta-valid \
                1.0.0-alpha 1.0.0-beta 1.0.0-alpha.beta.1 1.0.0-alpha.1 1.0.0-alpha0.valid \
                1.0.0-alpha.0valid 1.0.0-rc.1+build.1 2.0.0-rc.1+build.123 1.2.3-beta \
                10.2.3-DEV-SNAPSHOT 1.2.3-SNAPSHOT-123 2.0.1-alpha.1227 1.0.0-alpha+beta \
                1.2.3----RC-SNAPSHOT.12.9.1--.12+788 1.2.3----R-S.12.9.1--.12 \
                1.0.0+0.build.1-rc.10000aaa-kk-0.1 1.0.0-0A.is.legal 1.0.0-- 1.0.0-0 1.0.0+00 \
                1.0.0+- 99999999999999999999999.999999999999999999.99999999999999999";
    for text in good.split_whitespace() {
        assert!(Version::parse(text).is_ok(), "{text}");
    }
}

#[test]
fn what_is_no_version_by_the_grammar_is_refused() {
    let bad = "1 1.2 1.2.3-0123 1.2.3-0123.0123 1.1.2+.123 +invalid -invalid -invalid+invalid \
               alpha alpha.beta 1.0.0-alpha_beta 1.0.0-alpha. 1.0.0-alpha.. 1.0.0-alpha..1 01.1.1 \
               1.01.1 1.1.01 1.2.3.DEV 1.2-SNAPSHOT 1.2.31.2.3 -1.0.3-gamma+b7718 +justmeta \
               9.8.7+meta+meta 9.8.7-whatever+meta+meta 1.0.0- 1.0.0+ 1.0.0-+a v1.0.0 1.0.0-é 1..0 \
               1.0. ٣.0.0";
    let others = ["", " 1.0.0", "1.0.0 ", "1.0.0\n"];
    for text in bad.split_whitespace().chain(others) {
        assert_eq!(Version::parse(text), Err(VersionError), "{text:?}");
    }
}

#[test]
fn a_version_has_at_most_64_bytes() {
    assert!(Version::parse(&format!("1.0.0-{}", "a".repeat(58))).is_ok());
    assert_eq!(Version::parse(&format!("1.0.0-{}", "a".repeat(59))), Err(VersionError));
}

#[test]
fn precedence_is_that_of_the_specification() {
    let rising = "0.0.0-0 0.0.0 0.0.1 0.9.10 0.10.9 1.0.0-1 1.0.0-2 1.0.0-10 \
                  1.0.0-18446744073709551616 1.0.0-99999999999999999999 1.0.0-- 1.0.0-alpha \
                  1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0-rc.1 \
                  1.0.0 2.0.0 2.1.0 2.1.1 9.0.0 10.0.0 18446744073709551616.0.0 \
                  99999999999999999999.0.0";
    let rising: Vec<Version> = rising.split_whitespace().map(version).collect();
    for (index, left) in rising.iter().enumerate() {
        for (other, right) in rising.iter().enumerate() {
            assert_eq!(left.precedence(right), index.cmp(&other), "{left:?} {right:?}");
        }
    }
}

#[test]
fn build_metadata_has_no_precedence_and_makes_another_version() {
    for (left, right) in [("1.0.0+a", "1.0.0"), ("1.0.0-a+1", "1.0.0-a+2"), ("1.0.0+-", "1.0.0")] {
        let (left, right) = (version(left), version(right));
        assert_eq!(left.precedence(&right), Ordering::Equal);
        assert_ne!(left, right);
    }
    assert_eq!(version("1.0.0+a").precedence(&version("1.0.0-a")), Ordering::Greater);
}

proptest! {
    #[test]
    fn precedence_is_an_order(
        texts in proptest::array::uniform3("[0-2]\\.[0-2]\\.[0-2](-(0|1|10|a|B|-)(\\.(0|9|10|a|b)){0,2})?(\\+0)?")
    ) {
        let [a, b, c] = texts.map(|text| Version::parse(&text).unwrap());
        prop_assert_eq!(a.precedence(&b), b.precedence(&a).reverse());
        if a.precedence(&b).is_le() && b.precedence(&c).is_le() {
            prop_assert!(a.precedence(&c).is_le());
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[0-9a.+-]{0,12}|\\PC{0,12}") {
        if let Ok(version) = Version::parse(&text) {
            prop_assert_eq!(version.precedence(&version), Ordering::Equal);
            prop_assert_eq!(version.as_str(), text);
        }
    }
}
