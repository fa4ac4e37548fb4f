//! Signatures, calls of them as models write them, and calldata.

use alloy_primitives::U256;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::methods::tests::{text_of, vectors_of};

impl Functions {
    /// The selector of each function.
    pub(in crate::methods) fn selectors(&self) -> Vec<String> {
        let selectors = self.0.iter().map(|function| function.abi.selector());
        selectors.map(const_hex::encode_prefixed).collect()
    }
}

fn declare(signatures: &[&str]) -> Result<Functions, Refused> {
    let declarations: Vec<_> = signatures
        .iter()
        .map(|signature| Declaration {
            signature: (*signature).to_owned(),
            description: "does it".to_owned(),
        })
        .collect();
    Functions::parse("f", &declarations)
}

fn one(signature: &str) -> Functions {
    declare(&[signature]).unwrap()
}

fn encode(signature: &str, arguments: &Value) -> Result<String, String> {
    let functions = one(signature);
    let name = signature.split('(').next().unwrap();
    functions.encode(name, arguments.as_object().unwrap()).map(const_hex::encode_prefixed)
}

const TOKEN: &str = "0x00000000000000000000000000000000000000aA";

#[test]
fn functions_are_what_the_vectors_say() {
    for vector in vectors_of("selectors") {
        let signature = text_of(&vector, "signature");
        assert_eq!(one(signature).selectors(), [text_of(&vector, "selector")], "{signature}");
    }
    for vector in vectors_of("calls") {
        let (signature, calldata) = (text_of(&vector, "signature"), text_of(&vector, "calldata"));
        let encoded = encode(signature, &vector["arguments"]);
        assert_eq!(encoded.as_deref(), Ok(calldata), "{signature}");
        let decoded = one(signature).decode(&const_hex::decode(calldata).unwrap()).unwrap();
        let expected = vector["decoded"].as_object().expect("an object");
        assert_eq!(&decoded.arguments, expected, "{signature}");
    }
    for vector in vectors_of("wrongCalls") {
        let signature = text_of(&vector, "signature");
        assert!(encode(signature, &vector["arguments"]).is_err(), "{vector}");
    }
    for vector in vectors_of("wrongCalldata") {
        let calldata = const_hex::decode(text_of(&vector, "calldata")).unwrap();
        assert!(one(text_of(&vector, "signature")).decode(&calldata).is_err(), "{vector}");
    }
}

#[test]
fn what_is_not_a_signature_is_refused() {
    let long = format!("f({})", "uint256,".repeat(200));
    let nested = format!("f({}uint256{})", "(".repeat(400), ")".repeat(400));
    let arrays = format!("f(uint256{})", "[]".repeat(400));
    let vectors = vectors_of("wrongSignatures");
    let known = vectors.iter().map(|vector| vector.as_str().expect("a text"));
    for signature in known.chain([&*long, &*nested, &*arrays]) {
        let refused = declare(&[signature]).expect_err(signature);
        assert_eq!(refused.field, "f[0].signature", "{signature}");
    }
}

/// The vectors have more signatures, with their selectors.
#[test]
fn types_are_taken_as_far_as_the_table_goes() {
    for of_type in [
        "string", "bool", "address", "uint8", "uint256", "int8", "int256", "int", "bytes",
        "string[]", "bytes[1]",
    ] {
        assert_eq!(declare(&[&format!("f({of_type})")]).map(|f| f.len()), Ok(1), "{of_type}");
    }
}

#[test]
fn limits_of_a_declaration_are_held() {
    let many: Vec<_> = (0..=FUNCTIONS_MAX).map(|number| format!("f{number}()")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    assert_eq!(declare(&many[..FUNCTIONS_MAX]).unwrap().len(), FUNCTIONS_MAX);
    assert_eq!(declare(&many).unwrap_err().expected, "at most 64 entries");

    let parameters = |count: usize| format!("f({})", vec!["bool"; count].join(","));
    assert!(declare(&[&parameters(PARAMETERS_MAX)]).is_ok());
    let refused = declare(&[&parameters(PARAMETERS_MAX + 1)]).unwrap_err();
    assert_eq!(refused.expected, "at most 32 entries");

    let name = "f".repeat(NAME_BYTES_MAX);
    assert!(declare(&[&format!("{name}()")]).is_ok());

    let padded = |bytes: usize| format!("f({})", " ".repeat(bytes - 3));
    assert!(declare(&[&padded(SIGNATURE_BYTES_MAX)]).is_ok());
    let refused = declare(&[&padded(SIGNATURE_BYTES_MAX + 1)]).unwrap_err();
    assert_eq!(refused.expected, "at most 1024 bytes");

    let described = |bytes| {
        let description = "d".repeat(bytes);
        Functions::parse("f", &[Declaration { signature: "f()".to_owned(), description }])
    };
    assert!(described(DESCRIPTION_BYTES_MAX).is_ok());
    let refused = described(DESCRIPTION_BYTES_MAX + 1).unwrap_err();
    assert_eq!((&*refused.field, &*refused.expected), ("f[0].description", "at most 4096 bytes"));
}

#[test]
fn two_functions_of_one_name_or_one_selector_are_refused() {
    let refused = declare(&["f(bool)", "g()", "f(string)"]).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "f[2].signature: expected another name and another selector than f(bool), got f(string)"
    );
    // Both are 0xa9059cbb.
    let refused = declare(&["transfer(address,uint256)", "func_2093253501(bytes)"]).unwrap_err();
    assert_eq!(refused.field, "f[1].signature");
}

#[test]
fn the_model_sees_the_types_as_a_schema() {
    let functions =
        one("act(string note, bool now, address, uint8 n, int256 i, bytes b, uint256[2] xs)");
    let spec = functions.specs().remove(0);
    assert_eq!((spec.name.as_str(), spec.description.as_str()), ("act", "does it"));
    let schema = &spec.parameters;
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["required"], json!(["note", "now", "arg2", "n", "i", "b", "xs"]));
    let of = |name: &str| &schema["properties"][name];
    assert_eq!(of("note"), &json!({ "type": "string" }));
    assert_eq!(of("now"), &json!({ "type": "boolean" }));
    assert_eq!(of("arg2")["pattern"], "^0x[0-9a-fA-F]{40}$");
    assert_eq!(of("n")["pattern"], "^[0-9]+$");
    assert_eq!(of("i")["pattern"], "^-?[0-9]+$");
    assert_eq!(of("b")["pattern"], "^0x([0-9a-fA-F]{2})*$");
    assert_eq!(of("xs")["items"]["pattern"], "^[0-9]+$");
    assert_eq!((&of("xs")["minItems"], &of("xs")["maxItems"]), (&json!(2), &json!(2)));
}

#[test]
fn arguments_that_do_not_encode_are_told_to_the_model() {
    let uint8 = "a decimal string, an unsigned integer of 8 bits";
    let int8 = "a decimal string, a signed integer of 8 bits";
    let address = "a string of 0x and 40 hex characters";
    let bytes = "a string of 0x and two hex characters for each byte";
    let cases = [
        ("uint8", json!("256"), uint8),
        ("uint8", json!("-1"), uint8),
        ("uint8", json!("1 ether"), uint8),
        ("uint8", json!("0x10"), uint8),
        ("uint8", json!("1_0"), uint8),
        ("uint8", json!("+1"), uint8),
        ("uint8", json!(1.5), uint8),
        ("uint8", json!(1.0), uint8),
        ("uint8", json!(256), uint8),
        ("uint8", json!(null), uint8),
        ("int8", json!("128"), int8),
        ("int8", json!("-129"), int8),
        ("bool", json!("true"), "true or false"),
        ("bool", json!(1), "true or false"),
        ("string", json!(1), "a string"),
        ("address", json!("0xaa"), address),
        ("address", json!("00000000000000000000000000000000000000aa"), address),
        ("address", json!("0x0x000000000000000000000000000000000000aa"), address),
        ("bytes", json!("0xabc"), bytes),
        ("bytes", json!("0xgg"), bytes),
        ("bytes", json!("0x0xab"), bytes),
        ("bytes", json!("ab"), bytes),
        ("bool[]", json!(true), "an array, each element true or false"),
        ("bool[2]", json!([true]), "an array of 2 elements, each true or false"),
    ];
    for (of_type, given, expected) in cases {
        let refused = encode(&format!("f({of_type} x)"), &json!({ "x": given })).unwrap_err();
        assert_eq!(refused, format!("x is {given}; expected {expected}"), "{of_type}");
    }
    let (list, two) = ("f(bool[] x)", "f(bool x, bool y)");
    for (signature, arguments, expected) in [
        (list, json!({ "x": [true, false, 3] }), "x[2] is 3; expected true or false"),
        (two, json!({ "x": true }), "y is missing; expected true or false"),
        (two, json!({ "x": true, "y": true, "z": 1 }), "f has no argument \"z\"; it has x, y"),
    ] {
        assert_eq!(encode(signature, &arguments).unwrap_err(), expected);
    }
    assert_eq!(one("f()").encode("g", &Map::new()).unwrap_err(), "there is no function \"g\"");
}

#[test]
fn integers_encode_exactly_up_to_the_bounds_of_their_type() {
    let top = |bits: usize| U256::MAX.wrapping_shr(256 - bits).to_string();
    for bits in [8_usize, 64, 128, 248, 256] {
        let uint = format!("f(uint{bits} x)");
        let int = format!("f(int{bits} x)");
        let half = U256::ONE.wrapping_shl(bits - 1).to_string();
        assert!(encode(&uint, &json!({ "x": top(bits) })).unwrap().ends_with("ff"), "{bits}");
        assert!(encode(&int, &json!({ "x": format!("-{half}") })).is_ok(), "{bits}");
        assert!(encode(&int, &json!({ "x": half })).is_err(), "{bits}");
        if bits < 256 {
            let above = U256::ONE.wrapping_shl(bits).to_string();
            assert!(encode(&uint, &json!({ "x": above })).is_err(), "{bits}");
        }
    }
    let above = format!("1{}", "0".repeat(78));
    assert!(encode("f(uint256 x)", &json!({ "x": above })).is_err());
    for zero in [json!("0"), json!("-0"), json!("000"), json!(0)] {
        assert!(encode("f(uint8 x)", &json!({ "x": zero })).unwrap().ends_with("00"), "{zero}");
    }
    assert!(
        encode("f(uint64 x)", &json!({ "x": u64::MAX })).unwrap().ends_with("ffffffffffffffff")
    );
}

#[test]
fn a_call_is_at_most_65536_bytes_long() {
    let bytes = |count: usize| json!({ "x": format!("0x{}", "00".repeat(count)) });
    // The selector, an offset and a length, and whole words.
    let room = (CALLDATA_BYTES_MAX - 4 - 64) / 32 * 32;
    assert!(encode("f(bytes x)", &bytes(room)).is_ok());
    let refused = encode("f(bytes x)", &bytes(room + 1)).unwrap_err();
    assert_eq!(refused, "the call takes 65540 bytes; expected at most 65536");
}

#[test]
fn calldata_is_read_back_only_as_it_is_written() {
    let functions = declare(&["ping()", "f(string s, uint8[] xs, address a)"]).unwrap();
    let arguments = json!({ "s": "é", "xs": ["1", "255"], "a": TOKEN.to_lowercase() });
    let arguments = arguments.as_object().unwrap().clone();
    let calldata = functions.encode("f", &arguments).unwrap();
    let call = DecodedCall { name: "f".to_owned(), arguments };
    assert_eq!(functions.decode(&calldata), Ok(call));

    let expected = |calldata: &[u8]| functions.decode(calldata).unwrap_err().expected;
    assert_eq!(expected(&calldata[..3]), "a selector of 4 bytes");
    assert_eq!(expected(&[0; 68]), "the selector of a declared function");
    let cut = &calldata[..calldata.len() - 1];
    assert_eq!(expected(cut), "the arguments of f(string,uint8[],address)");
    let trailing = [calldata.as_slice(), &[0]].concat();
    assert_eq!(expected(&trailing), "the arguments of f(string,uint8[],address)");
    assert_eq!(expected(&vec![0; CALLDATA_BYTES_MAX + 1]), "at most 65536 bytes");
    // uint8 300: two bytes where one is meant.
    let arguments = json!({ "s": "", "xs": ["44"], "a": TOKEN });
    let mut wide = functions.encode("f", arguments.as_object().unwrap()).unwrap();
    let last = wide.len() - 2;
    wide[last] = 1;
    assert_eq!(expected(&wide), "the arguments of f(string,uint8[],address)");
}

/// Types of parameters, and arguments that fit them.
fn any_argument() -> impl Strategy<Value = (String, Value)> {
    let plain = prop_oneof![
        any::<String>().prop_map(|text| ("string", json!(text))),
        any::<bool>().prop_map(|value| ("bool", json!(value))),
        any::<[u8; 20]>().prop_map(|bytes| ("address", json!(const_hex::encode_prefixed(bytes)))),
        any::<u8>().prop_map(|value| ("uint8", json!(value.to_string()))),
        any::<i128>().prop_map(|value| ("int128", json!(value.to_string()))),
        any::<[u64; 4]>()
            .prop_map(|limbs| { ("uint256", json!(U256::from_limbs(limbs).to_string())) }),
        vec(any::<u8>(), 0..70)
            .prop_map(|bytes| ("bytes", json!(const_hex::encode_prefixed(bytes)))),
    ];
    (plain, 0..4_usize, 0..3_u8).prop_map(|((of_type, value), count, shape)| match shape {
        0 => (of_type.to_owned(), value),
        1 => (format!("{of_type}[]"), json!(vec![value; count])),
        _ => (format!("{of_type}[{}]", count + 1), json!(vec![value; count + 1])),
    })
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(arguments in vec(any_argument(), 0..6)) {
        let types: Vec<_> = arguments.iter().map(|(of_type, _)| of_type.as_str()).collect();
        let functions = one(&format!("f({})", types.join(",")));
        let values = arguments.iter().enumerate();
        let arguments: Map<_, _> =
            values.map(|(index, (_, value))| (format!("arg{index}"), value.clone())).collect();
        let calldata = functions.encode("f", &arguments).unwrap();
        prop_assert_eq!(calldata.len() % 32, 4);
        prop_assert_eq!(functions.decode(&calldata), Ok(DecodedCall { name: "f".to_owned(), arguments }));
    }

    #[test]
    fn a_call_with_a_changed_byte_encodes_the_same_or_is_refused(
        xs in vec(any::<u8>(), 0..3), yes: bool, at: prop::sample::Index, byte: u8,
    ) {
        let functions = one("f(uint8[] xs, int16 y, bool z, string s)");
        let xs: Vec<_> = xs.iter().map(u8::to_string).collect();
        let arguments = json!({ "xs": xs, "y": "-3", "z": yes, "s": "text" });
        let mut calldata = functions.encode("f", arguments.as_object().unwrap()).unwrap();
        let at = at.index(calldata.len());
        calldata[at] = byte;
        if let Ok(call) = functions.decode(&calldata) {
            prop_assert_eq!(functions.encode("f", &call.arguments), Ok(calldata));
        }
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in vec(prop_oneof![Just(0_u8), Just(32), any::<u8>()], 0..400)) {
        let functions = one("f(string,uint8[],bytes[2],bool)");
        let calldata = [functions.0[0].abi.selector().as_slice(), &bytes].concat();
        if let Ok(call) = functions.decode(&calldata) {
            prop_assert_eq!(functions.encode("f", &call.arguments), Ok(calldata));
        }
    }

    #[test]
    fn any_words_are_decoded_exactly_if_they_are_values(
        words in vec(prop_oneof![0..3_u64, 250..260_u64, any::<u64>()], 2..5),
    ) {
        let functions = one("f(uint8[2],bool)");
        let bytes: Vec<_> =
            words.iter().flat_map(|word| U256::from(*word).to_be_bytes::<32>()).collect();
        let calldata = [functions.0[0].abi.selector().as_slice(), &bytes].concat();
        let decoded = functions.decode(&calldata);
        prop_assert_eq!(decoded.is_ok(), matches!(words[..], [0..=255, 0..=255, 0 | 1]));
        if let Ok(call) = decoded {
            prop_assert_eq!(functions.encode("f", &call.arguments), Ok(calldata));
        }
    }

    #[test]
    fn any_signature_is_declared_or_refused(text in "[a-z]{1,5}\\((uint|int|bytes|string|bool|address|x)?[0-9]{0,4}(\\[[0-9]{0,4}\\])? ?[a-z]{0,6}\\)|\\PC{0,30}") {
        if let Ok(functions) = declare(&[&text]) {
            prop_assert_eq!(functions.specs().len(), 1);
        }
    }
}
