//! The reader against what is and is not JSON, the writer against ECMAScript's, and both against
//! each other.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Bounds, Json, JsonError, parse, parse_canonical, write_string};
use crate::testing::{fixture, items, text, written};

const BOUNDS: Bounds = Bounds { depth_max: 8, values_max: 1_000 };

fn canonical(source: &str) -> String {
    parse_canonical(source.as_bytes(), BOUNDS, &[]).unwrap().1
}

fn refused(source: &[u8]) -> JsonError {
    let error = parse(source, 8).unwrap_err();
    let canonical_error = parse_canonical(source, BOUNDS, &[]).unwrap_err();
    assert_eq!(canonical_error, error, "{source:?}");
    error
}

#[test]
fn strings_are_written_as_ecmascript_writes_them() {
    let golden = fixture(include_str!("../../fixtures/stringify.json"));
    for pair in items(&golden) {
        let [Json::Number(point), hex] = items(pair) else { panic!("{pair:?}") };
        let character = char::from_u32(point.parse().unwrap()).unwrap();
        let expected = String::from_utf8(const_hex::decode(text(hex)).unwrap()).unwrap();

        let mut out = String::new();
        write_string(&character.to_string(), &mut out);
        assert_eq!(out, expected, "U+{:04X}", u32::from(character));
        assert_eq!(canonical(&expected), expected);
        assert_eq!(
            parse(expected.as_bytes(), 1).unwrap(),
            Json::String(character.to_string().into())
        );
    }
}

#[test]
fn escapes_mean_their_characters() {
    let cases = [
        (r#""\u0041\u00e9\u2028\ud83d\uDE00""#, "\"Aé\u{2028}😀\""),
        (r#""\/\b\f\n\r\t\"\\""#, r#""/\b\f\n\r\t\"\\""#),
        (r#""\u0008\u000C\u000a\u000D\u0009\u0022\u005c\u002F""#, r#""\b\f\n\r\t\"\\/""#),
        (r#""\u0000\u001F\u007f""#, "\"\\u0000\\u001f\u{7f}\""),
        (r#""before\u0020after \\u0041""#, r#""before after \\u0041""#),
    ];
    for (source, expected) in cases {
        assert_eq!(canonical(source), expected);
        assert_eq!(written(&parse(source.as_bytes(), 1).unwrap()), expected);
    }
}

#[test]
fn white_space_goes_and_everything_else_stays_in_its_order() {
    let source = "\r\n\t { \"b\" : [ 1 , -0 , 1.50e+3 , { } , [ ] ] ,\n \"a\" : { \"z\" : null , \
                  \"y\" : true , \"\" : false } , \"10\" : \" a b \" } \n";
    let expected = r#"{"b":[1,-0,1.50e+3,{},[]],"a":{"z":null,"y":true,"":false},"10":" a b "}"#;
    assert_eq!(canonical(source), expected);
    assert_eq!(written(&parse(source.as_bytes(), 3).unwrap()), expected);
}

#[test]
fn named_members_are_left_out_of_the_outermost_object_only() {
    let cases = [
        (r#"{"hash":1,"a":{"hash":2},"signature":3}"#, r#"{"a":{"hash":2}}"#),
        (r#"{ "hash" : 1 , "signature" : [ 2 ] , "a" : 3 , "b" : 4 }"#, r#"{"a":3,"b":4}"#),
        (r#"{"a":1,"hash":2,"b":3,"signature":4,"c":5}"#, r#"{"a":1,"b":3,"c":5}"#),
        (r#"{"a":1 , "hash" : "\u0041" , "b" : 3 }"#, r#"{"a":1,"b":3}"#),
        (r#"{"\u0068ash":1,"a":"\u0041"}"#, r#"{"a":"A"}"#),
        (r#"{"hash":1}"#, "{}"),
        (r#"{"hash":1,"signature":2}"#, "{}"),
        (r#"[{"hash":1}]"#, r#"[{"hash":1}]"#),
        ("{ }", "{}"),
    ];
    for (source, expected) in cases {
        let (value, canonical) =
            parse_canonical(source.as_bytes(), BOUNDS, &["hash", "signature"]).unwrap();
        assert_eq!(canonical, expected, "{source}");
        assert_eq!(value, parse(source.as_bytes(), 8).unwrap(), "nothing is missing in the value");
    }
}

#[test]
fn what_is_not_json_is_refused_with_its_place() {
    let unexpected = |expected, at| JsonError::Unexpected { expected, at };
    let string = "a string without raw control characters, ended by '\"'";
    let cases: [(&[u8], JsonError); 33] = [
        (b"", unexpected("a JSON value", 0)),
        (b" ", unexpected("a JSON value", 1)),
        (b"\xef\xbb\xbf{}", unexpected("a JSON value", 0)),
        (b"{}{}", unexpected("the end of the text", 2)),
        (b"{} x", unexpected("the end of the text", 3)),
        (b"1\0", unexpected("the end of the text", 1)),
        (b"01", unexpected("the end of the text", 1)),
        (b"0x1", unexpected("the end of the text", 1)),
        (b"-", unexpected("a digit", 1)),
        (b"+1", unexpected("a JSON value", 0)),
        (b".5", unexpected("a JSON value", 0)),
        (b"1.", unexpected("a digit", 2)),
        (b"1.e3", unexpected("a digit", 2)),
        (b"1e", unexpected("a digit", 2)),
        (b"1e+", unexpected("a digit", 3)),
        (b"NaN", unexpected("a JSON value", 0)),
        (b"nul", unexpected("true, false or null", 0)),
        (b"truE", unexpected("true, false or null", 0)),
        (b"[1,]", unexpected("a JSON value", 3)),
        (b"[1 2]", unexpected("',' or ']'", 3)),
        (b"[", unexpected("a JSON value", 1)),
        (b"{\"a\":1,}", unexpected("a key in double quotes", 7)),
        (b"{a:1}", unexpected("a key in double quotes", 1)),
        (b"{'a':1}", unexpected("a key in double quotes", 1)),
        (b"{\"a\" 1}", unexpected("':'", 5)),
        (b"{\"a\":1 \"b\":2}", unexpected("',' or '}'", 7)),
        (b"{\"a\":1", unexpected("',' or '}'", 6)),
        (b"\"a\nb\"", unexpected(string, 2)),
        (b"\"a\x00b\"", unexpected(string, 2)),
        (b"\"abc", unexpected(string, 4)),
        (b"\"\\x41\"", unexpected("an escape of JSON", 2)),
        (b"\"\\u12g4\"", unexpected("four hex digits", 3)),
        (b"\"a\xff\"", JsonError::Utf8 { at: 2 }),
    ];
    for (source, expected) in cases {
        assert_eq!(refused(source), expected, "{:?}", String::from_utf8_lossy(source));
    }
}

#[test]
fn comments_are_not_json() {
    for source in ["/**/1", "1 //", "{/**/}", "[1/**/]"] {
        assert!(matches!(refused(source.as_bytes()), JsonError::Unexpected { .. }), "{source}");
    }
}

#[test]
fn half_a_surrogate_pair_is_refused() {
    let cases = [
        r#""\ud83d""#,
        r#""\ude00""#,
        r#""\ud83d\ud83d""#,
        r#""\ude00\ud83d""#,
        r#""\ud83dA""#,
        r#""\ud83d\n""#,
        r#""\ud83d\u0041""#,
        r#""\ud83d \ude00""#,
        r#""ok \ud83d\ude00 \udfff""#,
    ];
    for source in cases {
        assert!(matches!(refused(source.as_bytes()), JsonError::Surrogate { .. }), "{source}");
    }
    let at = JsonError::Surrogate { at: 3 };
    assert_eq!(refused(br#"["\ud83d"]"#), JsonError::Surrogate { at: 2 });
    assert_eq!(refused(br#"[" \ud83d"]"#), at);
    // Encoded as bytes they are not even UTF-8.
    assert_eq!(refused(b"\"\xed\xa0\xbd\""), JsonError::Utf8 { at: 1 });
    assert_eq!(
        refused(br#""\ud83d\u12""#),
        JsonError::Unexpected { expected: "four hex digits", at: 9 }
    );
}

#[test]
fn duplicate_keys_are_refused_at_any_depth() {
    let many: String = (0..100).map(|index| format!("\"k{index}\":0,")).collect();
    let cases = [
        (r#"{"a":1,"b":2,"a":1}"#.to_owned(), "a"),
        (r#"{"a":1,"\u0061":2}"#.to_owned(), "a"),
        (r#"{"x":[{"y":{"":1,"":2}}]}"#.to_owned(), ""),
        (r#"{"hash":1,"hash":1}"#.to_owned(), "hash"),
        (format!("{{{many}\"k57\":1}}"), "k57"),
        (format!("[{{\"o\":{{{many}\"k0\":1}}}}]"), "k0"),
    ];
    for (source, key) in cases {
        let expected = JsonError::DuplicateKey { key: key.to_owned() };
        assert_eq!(refused(source.as_bytes()), expected);
        assert_eq!(
            parse_canonical(source.as_bytes(), BOUNDS, &["hash"]).unwrap_err(),
            expected,
            "a key that is left out is still there"
        );
    }
    // The same key in different objects, and keys that only look alike.
    for source in [r#"{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}"#, r#"{"a":1,"A":2,"a ":3}"#] {
        assert_eq!(canonical(source), source);
    }
}

#[test]
fn nesting_is_bounded() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let nested = |depth| format!("{}0{}", open.repeat(depth), close.repeat(depth));
        assert_eq!(canonical(&nested(8)), nested(8));
        let at = open.len() * 8;
        assert_eq!(refused(nested(9).as_bytes()), JsonError::Depth { max: 8, at });
        assert_eq!(refused(nested(100_000).as_bytes()), JsonError::Depth { max: 8, at });
        let unclosed = open.repeat(1_000_000);
        assert_eq!(refused(unclosed.as_bytes()), JsonError::Depth { max: 8, at });
    }
}

#[test]
fn the_number_of_values_is_bounded() {
    let array = |items: usize| format!("[{}]", vec!["0"; items].join(","));
    let parse = |source: String| parse_canonical(source.as_bytes(), BOUNDS, &[]).map(|_| ());
    assert_eq!(parse(array(999)), Ok(()));
    assert_eq!(parse(array(1_000)), Err(JsonError::TooMany { max: 1_000, at: 1_999 }));
}

#[test]
fn long_strings_are_read_whole_whatever_stands_where() {
    for length in 0..70 {
        for special in ["", "\\n", "\\u0041", "é", "😀"] {
            for at in 0..=length {
                let source = format!("\"{}{special}{}\"", "a".repeat(at), "b".repeat(length - at));
                let value: String = serde_json::from_str(&source).unwrap();
                assert_eq!(parse(source.as_bytes(), 1).unwrap(), Json::String(value.into()));
            }
        }
    }
}

fn any_json() -> impl Strategy<Value = String> {
    let number = "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,5})?([eE][+-]?[0-9]{1,2})?";
    let string = any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap());
    let escaped = vec(any::<char>(), 0..8).prop_map(|characters| {
        let mut units = [0; 2];
        let escape = |unit: &mut u16| format!("\\u{unit:04X}");
        let escapes = characters.iter().map(|character| {
            character.encode_utf16(&mut units).iter_mut().map(escape).collect::<String>()
        });
        format!("\"{}\"", escapes.collect::<String>())
    });
    let space = "[ \t\r\n]{0,2}";
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        number,
        string,
        escaped,
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        let array = (vec((space, inner.clone()), 0..6), space).prop_map(|(items, end)| {
            let items: Vec<String> =
                items.into_iter().map(|(space, item)| space.clone() + &item + &space).collect();
            format!("[{}{end}]", items.join(","))
        });
        let object = (vec((space, inner), 0..6), space).prop_map(|(items, end)| {
            let members = items.into_iter().enumerate();
            let members: Vec<String> = members
                .map(|(index, (space, value))| format!("{space}\"k{index}\"{space}:{value}{space}"))
                .collect();
            format!("{{{}{end}}}", members.join(","))
        });
        prop_oneof![array, object]
    })
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in any::<Vec<u8>>()) {
        drop(parse(&bytes, 8));
    }

    #[test]
    fn almost_json_is_read_as_serde_json_reads_it(source in "[\\[\\]{}:,\"\\\\a0-9.eE+\\- ntrufalse]{0,12}") {
        let ours = parse(source.as_bytes(), 64);
        let theirs = serde_json::from_str::<&serde_json::value::RawValue>(&source);
        match (&ours, &theirs) {
            (Ok(_), Ok(_)) | (Err(_), Err(_)) => {}
            (Err(JsonError::DuplicateKey { .. } | JsonError::Surrogate { .. }), Ok(_)) => {}
            _ => prop_assert!(false, "{source:?}: {ours:?} but {theirs:?}"),
        }
    }

    #[test]
    fn reading_writing_and_reading_again_changes_nothing(source in any_json()) {
        let value = parse(source.as_bytes(), 8).unwrap();
        let text = written(&value);
        prop_assert_eq!(&parse(text.as_bytes(), 8).unwrap(), &value);
        prop_assert_eq!(&written(&parse(text.as_bytes(), 8).unwrap()), &text);

        // Made while reading, the canonical form is the same, and it is a fixed point.
        prop_assert_eq!(&canonical(&source), &text);
        prop_assert_eq!(&canonical(&text), &text);

        // It means the same to another reader.
        let theirs: serde_json::Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(theirs, serde_json::from_str::<serde_json::Value>(&source).unwrap());
    }

    #[test]
    fn leaving_out_members_is_the_same_as_writing_the_others(source in any_json()) {
        let (value, text) = parse_canonical(source.as_bytes(), BOUNDS, &["k0", "k2", "k3"]).unwrap();
        let others = if let Json::Object(mut members) = value {
            members.retain(|(key, _)| !["k0", "k2", "k3"].contains(&&**key));
            Json::Object(members)
        } else {
            value
        };
        prop_assert_eq!(text, written(&others));
    }
}
