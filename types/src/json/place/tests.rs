//! Faults stand where they are said to be, and a text has one exactly if it cannot be read.

use proptest::prelude::*;

use super::{Located, Place, Walk, parse_located};
use crate::json::{JsonError, parse};

fn fault(source: &str) -> Located {
    parse_located(source.as_bytes(), 4).unwrap_err()
}

fn path(source: &str) -> String {
    fault(source).path
}

#[test]
fn a_pointer_names_each_step_and_escapes_it() {
    let (abi, slash) = (Place::OUTERMOST.key("abi"), "a/b~c");
    let first = abi.index(10);
    assert_eq!(Place::OUTERMOST.pointer(), "");
    assert_eq!(first.key("name").pointer(), "/abi/10/name");
    assert_eq!(Place::OUTERMOST.key(slash).pointer(), "/a~1b~0c");
    assert_eq!(Place::OUTERMOST.key("").pointer(), "/");
}

#[test]
fn what_is_no_json_is_told_at_the_outermost_value_and_first() {
    for source in ["", "{", "[1,]", "{\"a\":1,}", "{\"a\":[1}", "nul", "1 2", "{\"a\" 1}", "{,}"] {
        let told = fault(source);
        assert_eq!(told.path, "", "{source}");
        assert_eq!(Err(told.error), parse(source.as_bytes(), 4).map(drop), "{source}");
    }
    // Behind a fault of the limits, too.
    for source in [r#"{"a":1,"a":2"#, r#"["\ud83d",]"#, "[[[[[1,]]]]]", r#"{"a":[[[["]]]]}"#] {
        assert_eq!(path(source), "", "{source}");
        assert!(matches!(fault(source).error, JsonError::Unexpected { .. }), "{source}");
    }
    let utf8 = parse_located(b"{\"a\":1,\"a\":\"\xff\"}", 4).unwrap_err();
    assert_eq!(utf8, Located { path: String::new(), error: JsonError::Utf8 { at: 12 } });
}

#[test]
fn a_key_that_occurs_twice_is_told_at_its_second_member() {
    let cases = [
        (r#"{"a":1,"b":2,"a":3}"#, "/a"),
        (r#"{"a":1,"\u0061":3}"#, "/a"),
        (r#"[0,{"x/y":{"":1,"":2}}]"#, "/1/x~1y/"),
        (r#"{"a":{"b":1},"c":{"b":1,"d":[],"d":{}},"a":2}"#, "/c/d"),
        (r#"{"a":1,"a":{"b":1,"b":2}}"#, "/a"),
    ];
    for (source, expected) in cases {
        assert_eq!(path(source), expected, "{source}");
        assert!(matches!(fault(source).error, JsonError::DuplicateKey { .. }), "{source}");
    }
}

#[test]
fn half_of_a_pair_is_told_at_its_string_or_its_member() {
    let cases = [
        (r#""\ud83d""#, ""),
        (r#"{"a":["x","\ude00\ud83d\ude00"]}"#, "/a/1"),
        (r#"{"a":{"\ud83dx":1}}"#, "/a/\u{fffd}x"),
        (r#"{"a":"\ud83d","a":1}"#, "/a"),
    ];
    for (source, expected) in cases {
        assert_eq!(path(source), expected, "{source}");
        assert!(matches!(fault(source).error, JsonError::Surrogate { .. }), "{source}");
    }
}

#[test]
fn nesting_is_told_at_the_value_that_is_too_deep_and_costs_no_stack() {
    assert_eq!(path("[[[[0,[]]]]]"), "/0/0/0/1");
    assert_eq!(path(r#"{"a":[{"b":{"c":{}}}],"a":1}"#), "/a/0/b/c");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(path(&deep), "/0/0/0/0");
    assert_eq!(path(&"{\"a\":".repeat(100_000)), "");
}

proptest! {
    #[test]
    fn a_text_has_a_place_of_a_fault_exactly_if_it_cannot_be_read(
        source in "[\\[\\]{}:,\"\\\\ud8319ae]{0,16}|(\\{\"a\":|\\[|\"\\\\ud83d\"|,\"b\":|\\}|\\]|1|,){0,14}",
        depth_max in 1_usize..5,
    ) {
        let walked = Walk::new(&source, depth_max).walk();
        match parse(source.as_bytes(), depth_max) {
            Ok(_) => prop_assert_eq!(walked, Ok(None)),
            Err(error) => {
                prop_assert_ne!(&walked, &Ok(None));
                let located = parse_located(source.as_bytes(), depth_max).unwrap_err();
                if matches!(located.error, JsonError::Unexpected { .. }) {
                    prop_assert_eq!(located.path, "");
                } else {
                    prop_assert_ne!(&error, &JsonError::Utf8 { at: 0 });
                }
            }
        }
    }
}
