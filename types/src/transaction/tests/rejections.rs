//! Every way to be MALFORMED, with the field, the value and the expectation.

use crate::testing::{self, Draft, bodies, body, limits};
use crate::{Body, Code, Rejection, SizeLimits, Transaction};

const INTEGER: &str = "an integer from 0 to 9007199254740991 in plain digits";
const HEX_64: &str = "64 lowercase hex characters";
const HEX_128: &str = "128 lowercase hex characters";
const ADDRESS: &str = "40 lowercase hex characters, or \"ox\" and 40 lowercase hex characters";
const AMOUNT: &str = "a decimal string of micro-OMBRA from \"0\" to \"18446744073709551615\" without sign or leading zero";

fn rejection(text: &str) -> Rejection {
    let rejection = Transaction::parse(text.as_bytes(), &limits()).unwrap_err();
    assert_eq!(rejection.code(), Code::Malformed, "{rejection}");
    rejection
}

fn assert_refused(draft: &Draft, field: &str, got: &str, expected: &str) {
    let rejection = rejection(&draft.text());
    assert_eq!((rejection.field(), rejection.got(), rejection.expected()), (field, got, expected));
    let message = format!("Malformed transaction: {field} is {got}, expected {expected}");
    assert_eq!(rejection.message(), message);
}

/// A member and what it must be.
type Member = (&'static str, &'static str);

/// The members of a kind: required, then optional.
fn members(type_name: &str) -> (Vec<Member>, Vec<Member>) {
    let [required, optional] = testing::members(type_name);
    let read = |half: Vec<Member>| half.into_iter().map(member).collect();
    (read(required), read(optional))
}

fn member((key, kind): Member) -> Member {
    let rule = match kind {
        "hash" => HEX_64,
        "signature" => HEX_128,
        "text" => "a string",
        "list" => "an array",
        "object" => "an object",
        "boolean" => "true or false",
        "integer" => INTEGER,
        "amount" => AMOUNT,
        "address" => ADDRESS,
        other => panic!("{other}"),
    };
    (key, rule)
}

/// Members that every transaction has.
const UNIVERSAL: [(&str, &str); 7] = [
    ("type", "a string"),
    ("from", ADDRESS),
    ("nonce", INTEGER),
    ("timestamp", INTEGER),
    ("publicKey", HEX_64),
    ("hash", HEX_64),
    ("signature", HEX_128),
];

/// What a value of another JSON type is told: the type for texts, the whole rule for integers.
fn expected_type(expectation: &'static str) -> &'static str {
    match expectation {
        INTEGER | "an array" | "an object" | "true or false" => expectation,
        _ => "a string",
    }
}

#[test]
fn a_missing_member_is_named() {
    for kind in bodies() {
        let draft = Draft::of(&kind);
        let universal =
            UNIVERSAL.into_iter().filter(|(key, _)| !["hash", "signature"].contains(key));
        for (key, expectation) in members(kind.type_name()).0.into_iter().chain(universal) {
            let spoilt = draft.clone().without(key);
            assert_refused(&spoilt, key, "missing", expected_type(expectation));
        }
    }
    let text = Draft::of(&body("TRANSFER")).text();
    for key in ["hash", "signature"] {
        let spoilt = text.replace(&format!("\"{key}\""), "\"other\"");
        let rejection = rejection(&spoilt);
        assert_eq!((rejection.field(), rejection.got()), (key, "missing"));
    }
}

#[test]
fn a_member_of_another_type_is_named_and_optional_members_are_never_null() {
    for kind in bodies() {
        let draft = Draft::of(&kind);
        let (required, optional) = members(kind.type_name());
        for (key, expectation) in required.into_iter().chain(optional).chain(UNIVERSAL) {
            let expected = expected_type(expectation);
            for (raw, got) in [
                ("null", "null"),
                ("true", "a boolean"),
                ("7", "a number"),
                ("\"7\"", "a string"),
                ("[]", "an array"),
                ("{}", "an object"),
            ] {
                let is_right_type = match expected {
                    INTEGER => raw == "7",
                    "an array" => raw == "[]",
                    "an object" => raw == "{}",
                    "true or false" => raw == "true",
                    _ => raw == "\"7\"",
                };
                if !is_right_type {
                    assert_refused(&draft.clone().with(key, raw), key, got, expected);
                }
            }
        }
        assert_refused(&draft.clone().with("chainId", "7"), "chainId", "a number", "a string");
    }
}

#[test]
fn integers_are_plain_digits_up_to_two_to_the_53_minus_1() {
    let keys = |kind: &Body| {
        let own = members(kind.type_name()).0;
        let integers = own.into_iter().chain(UNIVERSAL).filter(|(_, rule)| *rule == INTEGER);
        integers.map(|(key, _)| key).collect::<Vec<_>>()
    };
    for kind in bodies() {
        let draft = Draft::of(&kind);
        for key in keys(&kind) {
            for raw in ["0", "1", "9007199254740991"] {
                assert!(draft.clone().with(key, raw).parse().is_ok(), "{key} {raw}");
            }
            let others = "-0 -1 1.0 0.0 1e3 1E3 1e-1 9007199254740992 18446744073709551615 \
                          18446744073709551616 1e400";
            for raw in others.split_whitespace() {
                assert_refused(&draft.clone().with(key, raw), key, raw, INTEGER);
            }
            let long = "9".repeat(100_000);
            let rejection = rejection(&draft.clone().with(key, &long).text());
            assert_eq!(rejection.got(), format!("{}…", "9".repeat(80)), "values are shortened");
        }
    }
    for raw in ["00", "007", "+1", ".5", "5.", "0x10", "1_000", "NaN", "Infinity"] {
        let rejection = rejection(&Draft::of(&body("TRANSFER")).with("nonce", raw).text());
        assert_eq!(rejection.field(), "transaction", "{raw} is not JSON");
    }
}

#[test]
fn amounts_are_plain_decimal_strings() {
    for kind in bodies() {
        let draft = Draft::of(&kind);
        for (key, rule) in members(kind.type_name()).0 {
            if rule != AMOUNT {
                continue;
            }
            for text in ["0", "1", "18446744073709551615"] {
                assert!(draft.clone().with(key, &format!("\"{text}\"")).parse().is_ok());
            }
            let bad = "+1 -1 00 01 1.0 1e3 0x1 1_000 ١ 18446744073709551616 99999999999999999999 \
                       100000000000000000000";
            let others = ["", " 1", "1 "];
            for text in bad.split_whitespace().chain(others) {
                assert_refused(&draft.clone().with(key, &format!("\"{text}\"")), key, text, AMOUNT);
            }
        }
    }
}

#[test]
fn hashes_keys_and_addresses_are_lowercase_hex_of_their_length() {
    for kind in bodies() {
        let draft = Draft::of(&kind);
        let (required, optional) = members(kind.type_name());
        for (key, rule) in required.into_iter().chain(optional).chain(UNIVERSAL) {
            let digits = match rule {
                HEX_64 => 64,
                HEX_128 => 128,
                ADDRESS => 40,
                _ => continue,
            };
            for text in [
                String::new(),
                "a".repeat(digits - 1),
                "a".repeat(digits + 1),
                "a".repeat(digits + 2),
                "A".repeat(digits),
                "g".repeat(digits),
                format!("0x{}", "a".repeat(digits)),
                format!("0x{}", "a".repeat(digits - 2)),
                format!("oxox{}", "a".repeat(digits)),
                format!("OX{}", "a".repeat(digits)),
                format!(" {}", "a".repeat(digits - 1)),
            ] {
                let got = crate::text::shorten(&text);
                assert_refused(&draft.clone().with(key, &format!("\"{text}\"")), key, &got, rule);
            }
        }
    }
}

#[test]
fn nested_objects_are_named_by_their_place() {
    let step = Draft::of(&body("AGENT_STEP"));
    let call = |ok: &str, hash: &str| {
        format!(
            "{{\"name\":\"a\",\"argsHash\":\"{hash}\",\"resultHash\":\"{hash}\",\"durationMs\":1{ok}}}"
        )
    };
    let hash = "0".repeat(64);
    let good = call(",\"ok\":false", &hash);
    let calls = |second: &str| step.clone().with("toolCalls", &format!("[{good},{second}]"));
    assert!(calls(&good).parse().is_ok());
    assert!(calls(&call(",\"ok\":true,\"extra\":1.5", &hash)).parse().is_ok());
    assert_refused(&calls("7"), "toolCalls[1]", "a number", "an object");
    assert_refused(&calls(&call("", &hash)), "toolCalls[1].ok", "missing", "true or false");
    assert_refused(
        &calls(&call(",\"ok\":0", &hash)),
        "toolCalls[1].ok",
        "a number",
        "true or false",
    );
    assert_refused(&calls(&call(",\"ok\":true", "00")), "toolCalls[1].argsHash", "00", HEX_64);
    let float = good.replace("\"durationMs\":1", "\"durationMs\":1.5");
    assert_refused(&calls(&float), "toolCalls[1].durationMs", "1.5", INTEGER);

    let turn = Draft::of(&body("CHAT_TURN")).with("attachments", "[{\"type\":\"image\"}]");
    assert_refused(&turn, "attachments[0].blobId", "missing", "a string");
    for (kind, key) in [("AGENT_REQUEST", "toolsWhitelist"), ("MINER_REGISTER", "capabilities")] {
        let list = Draft::of(&body(kind)).with(key, "[\"a\",1]");
        assert_refused(&list, key, "an array with a number", "an array of strings");
    }
}

#[test]
fn chunks_are_standard_base64_with_padding() {
    let chunk = Draft::of(&body("SOCIAL_BLOB_CHUNK"));
    for text in ["", "AA==", "+/+/", "AAA="] {
        assert!(chunk.clone().with("chunkDataBase64", &format!("\"{text}\"")).parse().is_ok());
    }
    for text in ["A", "AA", "AA=", "AB==", "-_-_", "AA==AA==", "AAAA\\n", "=AAA", "AA= ="] {
        let rejection =
            rejection(&chunk.clone().with("chunkDataBase64", &format!("\"{text}\"")).text());
        assert_eq!(rejection.field(), "chunkDataBase64", "{text}");
        assert_eq!(rejection.expected(), "standard base64 with padding");
    }
}

#[test]
fn texts_that_are_no_transaction_are_refused_as_json() {
    let text = Draft::of(&body("CHAT_TURN")).text();
    let deep = |depth: usize| {
        let value = format!("{}{}", "[".repeat(depth - 1), "]".repeat(depth - 1));
        Draft::of(&body("CHAT_TURN")).with("extra", &value).text()
    };
    assert!(Transaction::parse(deep(8).as_bytes(), &limits()).is_ok());
    let cases = [
        (String::new(), "expected a JSON value at byte 0"),
        (format!("{text}{text}"), "expected the end of the text at byte"),
        (format!("{text},"), "expected the end of the text at byte"),
        (text.replace("\"content\"", "\"role\""), "duplicate key \"role\""),
        (text.replace("\"hash\"", "\"type\""), "duplicate key \"type\""),
        (text.replace("😀", "\\ud83d"), "unpaired surrogate escape at byte"),
        (deep(9), "nesting deeper than 8 at byte"),
        (deep(100_000), "nesting deeper than 8 at byte"),
        (text.replace("țară", "\n"), "expected a string without raw control characters"),
    ];
    for (text, got) in cases {
        let rejection = rejection(&text);
        assert_eq!(rejection.field(), "transaction");
        assert!(rejection.got().starts_with(got), "{rejection}");
        assert_eq!(rejection.expected(), "one flat JSON object");
    }
    for (text, got) in
        [("[]", "an array"), ("null", "null"), ("\"a\"", "a string"), ("1", "a number")]
    {
        let rejection = rejection(text);
        let said = (rejection.field(), rejection.got(), rejection.expected());
        assert_eq!(said, ("transaction", got, "an object"));
    }
    let invalid = Transaction::parse(b"{\"type\":\"\xff\"}", &limits()).unwrap_err();
    assert_eq!(invalid.got(), "invalid UTF-8 at byte 9");
}

#[test]
fn size_is_measured_in_canonical_form() {
    let padded = |kind: &str, bytes: usize| {
        let draft = Draft::of(&body(kind));
        let empty = draft.clone().with("pad", "\"\"").text().len();
        draft.with(
            "pad",
            &format!(
                "\"{}\"",
                "é".repeat((bytes - empty) / 2) + if (bytes - empty) % 2 == 1 { "a" } else { "" }
            ),
        )
    };
    for (kind, max) in
        [("CHAT_TURN", 131_072), ("TRANSFER", 131_072), ("SOCIAL_BLOB_CHUNK", 786_432)]
    {
        let largest = padded(kind, max).text();
        assert_eq!(largest.len(), max);
        let tx = Transaction::parse(largest.as_bytes(), &limits()).unwrap();
        assert_eq!(tx.signed_bytes(), max);

        let escaped = largest.replace('é', "\\u00e9").replace("\":", "\" : ");
        assert!(escaped.len() > 2 * max, "escapes and white space do not count");
        assert_eq!(Transaction::parse(escaped.as_bytes(), &limits()).unwrap(), tx);

        let expected = format!("at most {max} bytes");
        assert_refused(
            &padded(kind, max + 1),
            "transaction",
            &format!("{} bytes", max + 1),
            &expected,
        );
    }
}

#[test]
fn nothing_longer_than_the_wire_limit_is_looked_at() {
    let small = SizeLimits { tx_bytes: 100, chunk_tx_bytes: 200 };
    let rejection = Transaction::parse(&[b'x'; 1_201], &small).unwrap_err();
    assert_eq!((rejection.code(), rejection.got()), (Code::Malformed, "1201 bytes"));
    assert_eq!(rejection.expected(), "at most 1200 bytes");

    let zeros = format!("[{}0]", "0,".repeat(2_000_000));
    let rejection = self::rejection(&zeros);
    assert!(rejection.got().starts_with("more than 393216 values at byte"), "{rejection}");
}

#[test]
fn malformed_comes_before_unsupported() {
    let unsupported = Draft::of(&body("TRANSFER")).with("type", "\"BURN\"");
    let code = |draft: &Draft| draft.parse().unwrap_err().code();
    assert_eq!(code(&unsupported), Code::UnsupportedType);
    assert_eq!(code(&unsupported.clone().with("type", "\"\"")), Code::UnsupportedType);
    assert_eq!(code(&unsupported.clone().with("type", "\"transfer\"")), Code::UnsupportedType);
    for (key, raw) in [
        ("from", "\"\""),
        ("nonce", "1.0"),
        ("timestamp", "\"1\""),
        ("publicKey", "\"\""),
        ("chainId", "null"),
        ("hash", "\"\""),
        ("signature", "\"\""),
        ("pad", &format!("\"{}\"", "a".repeat(131_072))),
    ] {
        assert_eq!(code(&unsupported.clone().with(key, raw)), Code::Malformed, "{key}");
    }
}
