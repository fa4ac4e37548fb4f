//! A tape says what the text says; faults stand where they are said to be, and a text has one exactly if
//! it cannot be read.

use proptest::prelude::*;

use super::{Located, Manner, parse_tape};
use crate::json::{Json, JsonError, Value, parse};

/// Four arrays and objects, and keys of one byte that mean something.
const DEPTH: Manner = Manner { depth_max: 4, known: &[&[""], &["a", "b", "c"]] };

fn fault(source: &str) -> Located {
    parse_tape(source.as_bytes(), DEPTH).unwrap_err()
}

fn path(source: &str) -> String {
    fault(source).path
}

/// Whether a value of a tape is the value that the other reader has, as far as its keys are known.
fn is(value: Value<'_>, other: &Json<'_>) -> bool {
    match other {
        Json::Null | Json::Bool(_) => value.kind() == other.kind(),
        Json::Number(literal) => value.as_number() == Some(*literal),
        Json::String(text) => value.as_str() == Some(text),
        Json::Array(items) => value.items().is_some_and(|it| {
            it.len() == items.len() && it.zip(items).all(|(value, other)| is(value, other))
        }),
        Json::Object(members) => {
            let known = |key: &str| DEPTH.known.iter().any(|names| names.contains(&key));
            let members: Vec<_> = members.iter().filter(|(key, _)| known(key)).collect();
            value.members().is_some_and(|it| {
                it.count() == members.len()
                    && it
                        .zip(members)
                        .all(|(left, right)| left.0 == right.0 && is(left.1, &right.1))
            })
        }
    }
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
    let utf8 = parse_tape(b"{\"a\":1,\"a\":\"\xff\"}", DEPTH).unwrap_err();
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

#[test]
fn keys_that_mean_nothing_are_left_out_and_what_is_in_them_with_them() {
    let source = r#"{"x":[{"a":1}],"a":{"y":2,"\u0062":"c\n"},"":[[],{},"\u0061"],"b":null}"#;
    let tape = parse_tape(source.as_bytes(), DEPTH).unwrap();
    let keys: Vec<_> = tape.value().members().unwrap().map(|(key, _)| key).collect();
    assert_eq!(keys, ["a", "", "b"]);
    assert!(is(tape.value(), &parse(source.as_bytes(), 4).unwrap()));
    let inner = tape.value().members().unwrap().find("a").unwrap();
    assert_eq!(inner.members().unwrap().find("b").unwrap().as_str(), Some("c\n"));
}

#[test]
fn of_many_keys_the_first_that_occurs_again_is_told() {
    for width in [1, 7, 8, 9, 20] {
        let keys: Vec<_> = (0..60).map(|at| format!("{at:0width$}")).collect();
        for (first, second, later) in [(0, 1, 59), (58, 59, 59), (3, 40, 50), (3, 40, 41)] {
            let mut text = keys.clone();
            text.insert(second, keys[first].clone());
            text.insert(later + 2, keys[second].clone());
            let members: Vec<_> = text.iter().map(|key| format!("\"{key}\":[]")).collect();
            let source = format!("[{{{}}}]", members.join(","));
            assert_eq!(path(&source), format!("/0/{}", keys[first]), "{source}");
        }
    }
}

proptest! {
    #[test]
    fn a_text_is_read_as_the_other_reader_reads_it(
        source in "(\\{\"a\":|\\{\"x\":|\\[|\"\\\\ud83d\\\\ude00é\"|\"\\\\u0061b\"|,\"b\":|,\"\":|,\"y\":|\\}|\\]|1e5|true|null| |,){0,16}",
    ) {
        if let Ok(other) = parse(source.as_bytes(), 4) {
            let tape = parse_tape(source.as_bytes(), DEPTH).unwrap();
            prop_assert!(is(tape.value(), &other));
        }
    }

    #[test]
    fn a_text_has_a_place_of_a_fault_exactly_if_it_cannot_be_read(
        source in "[\\[\\]{}:,\"\\\\ud8319ae]{0,16}|(\\{\"a\":|\\[|\"\\\\ud83d\"|,\"b\":|\\}|\\]|1|,){0,14}",
        depth_max in 1_usize..5,
    ) {
        let manner = Manner { depth_max, ..DEPTH };
        match (parse(source.as_bytes(), depth_max), parse_tape(source.as_bytes(), manner)) {
            (Ok(_), Ok(_)) => {}
            (Err(error), Err(located)) => {
                if matches!(located.error, JsonError::Unexpected { .. }) {
                    prop_assert_eq!(located.path, "");
                } else {
                    prop_assert_ne!(&error, &JsonError::Utf8 { at: 0 });
                }
            }
            (parsed, read) => prop_assert!(false, "{source}: {parsed:?}, {read:?}"),
        }
    }
}
