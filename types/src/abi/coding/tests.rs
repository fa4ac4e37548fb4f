//! Values against those of another implementation, what is refused, and how little hostile bytes cost.

use alloy_dyn_abi::{DynSolType, DynSolValue};
use proptest::collection::vec;
use proptest::prelude::*;

use super::super::{Base, Dimension, Method, Parameter, Type, TypeName};
use super::ValueError;
use crate::json::parse;
use crate::testing::{items, member, written};

/// Bytes from which a case is made, and then zeros.
struct Source<'s>(std::slice::Iter<'s, u8>);

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or_default()
    }

    fn below(&mut self, bound: u8) -> u8 {
        self.byte() % bound
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }
}

fn of_type(name: &str, components: Vec<Parameter>) -> Type {
    Type::new(TypeName::parse(name).unwrap(), components).unwrap()
}

fn parameter(name: &str, of_type: Type) -> Parameter {
    Parameter { name: name.to_owned(), of_type }
}

fn taking(inputs: Vec<Parameter>) -> Method {
    Method { name: "f".to_owned(), inputs, outputs: Vec::new() }
}

fn answering(outputs: Vec<Parameter>) -> Method {
    Method { name: "f".to_owned(), inputs: Vec::new(), outputs }
}

fn unnamed(types: &[&str]) -> Vec<Parameter> {
    types.iter().map(|name| parameter("", of_type(name, Vec::new()))).collect()
}

fn inputs(types: &[&str]) -> Method {
    taking(unnamed(types))
}

/// A type, at most so many tuples deep.
fn some_type(source: &mut Source<'_>, depth: u8) -> Type {
    let names =
        ["string", "bytes", "bool", "address", "uint8", "int24", "uint256", "int256", "bytes3"];
    let mut name = names[usize::from(source.below(9))].to_owned();
    let mut components = Vec::new();
    if depth > 0 && source.below(3) == 0 {
        "tuple".clone_into(&mut name);
        let is_named = source.below(2) == 0;
        for index in 0..=source.below(3) {
            let name = if is_named { format!("c{index}") } else { String::new() };
            components.push(parameter(&name, some_type(source, depth - 1)));
        }
    }
    for _ in 0..source.below(3) {
        name.push_str(["[]", "[2]"][usize::from(source.below(2))]);
    }
    of_type(&name, components)
}

/// A value of a type: the JSON that reading writes, and another implementation's value.
fn some_value(source: &mut Source<'_>, of_type: &Type) -> (String, DynSolValue) {
    arrays(source, of_type, of_type.name().dimensions())
}

fn arrays(
    source: &mut Source<'_>,
    of_type: &Type,
    dimensions: &[Dimension],
) -> (String, DynSolValue) {
    let Some((outermost, dimensions)) = dimensions.split_last() else {
        return plain(source, of_type);
    };
    let count = match outermost {
        Dimension::Any => source.below(4),
        Dimension::Fixed(count) => u8::try_from(*count).unwrap(),
    };
    let (texts, values): (Vec<_>, Vec<_>) =
        (0..count).map(|_| arrays(source, of_type, dimensions)).unzip();
    let value = match outermost {
        Dimension::Any => DynSolValue::Array(values),
        Dimension::Fixed(_) => DynSolValue::FixedArray(values),
    };
    (format!("[{}]", texts.join(",")), value)
}

fn plain(source: &mut Source<'_>, of_type: &Type) -> (String, DynSolValue) {
    let quoted = |text: String| format!("\"{text}\"");
    match of_type.name().base() {
        Base::String => {
            let count = usize::from(source.below(70));
            let text: String =
                source.bytes(count).into_iter().map(|byte| char::from(byte % 26 + b'a')).collect();
            (quoted(text.clone()), DynSolValue::String(text))
        }
        Base::Bytes => {
            let count = usize::from(source.below(70));
            let bytes = source.bytes(count);
            (quoted(const_hex::encode_prefixed(&bytes)), DynSolValue::Bytes(bytes))
        }
        Base::Bool => {
            let is_true = source.below(2) == 1;
            (is_true.to_string(), DynSolValue::Bool(is_true))
        }
        Base::Address => {
            let bytes: [u8; 20] = source.bytes(20).try_into().unwrap();
            (quoted(const_hex::encode(bytes)), DynSolValue::Address(bytes.into()))
        }
        Base::Uint(bits) => {
            let mut word = [0; 32];
            let size = usize::from(bits / 8);
            word[32 - size..].copy_from_slice(&source.bytes(size));
            let value = alloy_dyn_abi::Word::from(word).into();
            (quoted(format!("{value}")), DynSolValue::Uint(value, usize::from(bits)))
        }
        Base::Int(bits) => {
            let size = usize::from(bits / 8);
            let own = source.bytes(size);
            let mut word = [if own[0] >= 0x80 { 0xff } else { 0 }; 32];
            word[32 - size..].copy_from_slice(&own);
            let value = DynSolType::Int(usize::from(bits)).abi_decode(&word).unwrap();
            let (number, _) = value.as_int().unwrap();
            (quoted(number.to_string()), value)
        }
        Base::FixedBytes(count) => {
            let bytes = source.bytes(usize::from(count));
            let mut word = [0; 32];
            word[..bytes.len()].copy_from_slice(&bytes);
            let value = DynSolValue::FixedBytes(word.into(), usize::from(count));
            (quoted(const_hex::encode_prefixed(&bytes)), value)
        }
        Base::Tuple => {
            let components = of_type.components();
            let (texts, values): (Vec<_>, Vec<_>) =
                components.iter().map(|it| some_value(source, &it.of_type)).unzip();
            let is_named = !components[0].name.is_empty();
            let member = |(text, it): (String, &Parameter)| match is_named {
                true => format!("\"{}\":{text}", it.name),
                false => text,
            };
            let texts: Vec<_> = texts.into_iter().zip(components).map(member).collect();
            let [open, close] = if is_named { ["{", "}"] } else { ["[", "]"] };
            (format!("{open}{}{close}", texts.join(",")), DynSolValue::Tuple(values))
        }
    }
}

/// The values of an answer without names and types.
fn values_of(decoded: &str) -> Vec<String> {
    let json = parse(decoded.as_bytes(), 64).unwrap();
    items(&json).iter().map(|entry| written(member(entry, "value"))).collect()
}

proptest! {
    #[test]
    fn values_have_the_bytes_of_another_implementation_and_come_back(
        bytes in vec(any::<u8>(), 0..600),
    ) {
        let mut source = Source(bytes.iter());
        let types: Vec<Type> =
            (0..source.below(4)).map(|_| some_type(&mut source, 3)).collect();
        let (texts, values): (Vec<_>, Vec<_>) =
            types.iter().map(|it| some_value(&mut source, it)).unzip();
        let method = answering(types.into_iter().map(|it| parameter("", it)).collect());
        let theirs = DynSolValue::Tuple(values).abi_encode_params();
        prop_assume!(theirs.len() <= 16_384);
        let ours = method.encode_answer(&format!("[{}]", texts.join(","))).unwrap();
        prop_assert_eq!(const_hex::encode(&ours), const_hex::encode(theirs));
        let decoded = method.decode_answer(&ours).unwrap();
        prop_assert_eq!(values_of(&decoded), texts);
    }

    #[test]
    fn whatever_is_read_is_written_so_and_nothing_panics(
        shape in vec(any::<u8>(), 0..40),
        noise in vec(prop_oneof![Just(0), Just(0x20), any::<u8>()], 0..400),
    ) {
        let mut source = Source(shape.iter());
        let method = answering(vec![parameter("", some_type(&mut source, 3))]);
        if let Ok(decoded) = method.decode_answer(&noise) {
            let again = format!("[{}]", values_of(&decoded).join(","));
            prop_assert_eq!(method.encode_answer(&again).unwrap(), noise);
        }
    }
}

#[test]
fn a_made_up_name_never_stands_for_two_arguments() {
    let number = || of_type("uint8", Vec::new());
    let method = taking(vec![parameter("arg1", number()), parameter("", number())]);
    let by_name = method.encode_arguments("{\"arg1\":1,\"arg1_\":2}").unwrap();
    assert_eq!(by_name, method.encode_arguments("[1,2]").unwrap());
    let missing = rejection(&method, "{\"arg1\":1}");
    assert!(missing.starts_with("/arg1_: expected an integer"), "{missing}");
}

fn rejection(method: &Method, arguments: &str) -> String {
    method.encode_arguments(arguments).unwrap_err().to_string()
}

#[test]
fn arguments_are_given_by_position_or_by_name() {
    let order = vec![
        parameter("to", of_type("address", Vec::new())),
        parameter("amount", of_type("uint256", Vec::new())),
    ];
    let method = taking(vec![
        parameter("orders", of_type("tuple[]", order)),
        parameter("", of_type("bool", Vec::new())),
    ]);
    let address = "11".repeat(20);
    let by_position = format!("[[[\"{address}\",7]],true]");
    let by_name =
        format!("{{\"arg1\":true,\"orders\":[{{\"amount\":\"007\",\"to\":\"0x{address}\"}}]}}");
    let chain_form = format!("[[[\"ox{address}\",\"7\"]],true]");
    let payload = method.encode_arguments(&by_position).unwrap();
    assert_eq!(payload, method.encode_arguments(&by_name).unwrap());
    assert_eq!(payload, method.encode_arguments(&chain_form).unwrap());
    assert_eq!(
        method.decode_arguments(&payload).unwrap(),
        format!(
            "[{{\"name\":\"orders\",\"type\":\"(address,uint256)[]\",\"value\":\
             [{{\"to\":\"{address}\",\"amount\":\"7\"}}]}},\
             {{\"name\":\"\",\"type\":\"bool\",\"value\":true}}]"
        )
    );
    let says = |arguments: &str, says: &str| {
        assert_eq!(rejection(&method, arguments), says);
    };
    says("[[]]", ": expected 2 values, found 1 values");
    says("{\"orders\":[]}", "/arg1: expected true or false, found nothing");
    says(
        "{\"orders\":[],\"arg1\":true,\"x\":1}",
        "/x: expected only orders, arg1, found this name",
    );
    says(
        "[[{\"to\":\"0x11\",\"amount\":1}],true]",
        "/0/0/to: expected 40 lowercase hex characters, or 0x and 40 hex characters, found \"0x11\"",
    );
    says("[[7],true]", "/0/0: expected an array of 2 values, or an object, found 7");
    says("7", ": expected an array of 2 values, or an object, found 7");
    assert!(
        rejection(&method, "[").starts_with(": expected a JSON array or object, found expected")
    );
}

#[test]
fn integers_are_exact_to_256_bits_and_nothing_else() {
    let word = |name: &str, given: &str| {
        let method = inputs(&[name]);
        let payload = method.encode_arguments(&format!("[{given}]"))?;
        Ok::<_, ValueError>(const_hex::encode(&payload[4..]))
    };
    let largest = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
    assert_eq!(word("uint", largest), Ok("f".repeat(64)), "plain digits keep every bit");
    assert_eq!(word("uint", &format!("\"{largest}\"")), Ok("f".repeat(64)));
    assert_eq!(word("int8", "-128"), Ok(format!("{}80", "f".repeat(62))));
    assert_eq!(word("int8", "\"-0\""), Ok("0".repeat(64)));
    let least = "-57896044618658097711785492504343953926634992332820282019728792003956564819968";
    assert_eq!(word("int256", least), Ok(format!("8{}", "0".repeat(63))));
    let refused = [
        ("uint", format!("{}6", &largest[..77])),
        ("uint", "1e3".into()),
        ("uint", "1.0".into()),
        ("uint", "-1".into()),
        ("uint", "\"+1\"".into()),
        ("uint", "\"0x1\"".into()),
        ("uint", "\"\"".into()),
        ("uint", "1.1579208923731620e77".into()),
        ("uint8", "256".into()),
        ("uint24", "16777216".into()),
        ("int8", "128".into()),
        ("int8", "-129".into()),
        ("int256", format!("{}9", &least[..77])),
        ("int256", least.replace('-', "")),
        ("uint8", "true".into()),
    ];
    for (name, given) in refused {
        let error = word(name, &given).unwrap_err();
        assert_eq!(error.place, "/0", "{name} {given}");
        assert!(error.expected.starts_with("an integer"), "{error}");
    }
}

#[test]
fn an_answer_has_one_form() {
    let word = |last: u8| format!("{last:064x}");
    let text = format!("{}{}{}", word(32), word(2), "6869".to_owned() + &"0".repeat(60));
    let read = |types: &[&str], hex: &str| {
        let decoded = answering(unnamed(types)).decode_answer(&const_hex::decode(hex).unwrap());
        decoded.map_err(|error| error.to_string())
    };
    let one = "[{\"name\":\"\",\"type\":\"string\",\"value\":\"hi\"}]";
    assert_eq!(read(&["string"], &text), Ok(one.to_owned()));
    assert_eq!(read(&[], ""), Ok("[]".to_owned()));
    let refused = [
        (&["string"], text[..126].to_owned(), "/0: expected at least 32 bytes, found 31 bytes"),
        (&["string"], text.clone() + &word(0), ": expected 96 bytes, found 128 bytes"),
        (&["string"], text.replacen("20", "40", 1), "/0: expected the place 32, found 64"),
        (&["string"], text.replace("6869", "ff69"), "/0: expected UTF-8, found invalid utf-8"),
        (
            &["string"],
            text.replace("68690", "68691"),
            "/0: expected zeros after the last byte, found 0x1000",
        ),
        (
            &["string"],
            format!("{}{}", word(32), "f".repeat(64)),
            "/0: expected a number of at most 32, found 115792089237316195423570985008687907853",
        ),
        (&["bool"], word(2), "/0: expected 0 or 1, found 0x000000"),
        (&["uint8"], format!("1{}", &word(0)[1..]), "/0: expected an integer without a sign of 8"),
        (&["int8"], word(0x80), "/0: expected an integer of 8 bits, found 0x"),
        (&["address"], "f".repeat(64), "/0: expected an address of 20 bytes, found 0xffff"),
        (&["bytes1"], "f".repeat(64), "/0: expected 1 bytes and zeros, found 0xffff"),
        (&["uint8"], String::new(), ": expected at least 32 bytes, found 0 bytes"),
    ];
    for (types, hex, says) in refused {
        let error = read(types, &hex).unwrap_err();
        assert!(error.starts_with(says), "{error}\nis not: {says}");
    }
}

#[test]
fn a_payload_is_of_a_method_and_has_a_size() {
    let method = inputs(&["bytes"]);
    let arguments = |bytes: usize| format!("[\"0x{}\"]", "ab".repeat(bytes));
    // The selector, a place, a number, and whole words.
    let most = 16_384 - 4 - 64 - 28;
    let payload = method.encode_arguments(&arguments(most)).unwrap();
    assert_eq!((payload.len(), &payload[..4]), (16_356, method.selector().0.as_slice()));
    assert_eq!(
        rejection(&method, &arguments(most + 1)),
        "/0: expected at most 16380 bytes in all, found more"
    );
    let error = inputs(&["bool"]).decode_arguments(&payload).unwrap_err();
    assert!(error.expected.starts_with("to begin with 0x"), "{error}");
    assert!(method.decode_arguments(&[1]).is_err());
    let long = format!("[\"{}\"]", "a".repeat(super::VALUES_BYTES_MAX));
    assert!(rejection(&method, &long).contains("bytes of JSON"));
}

#[test]
fn types_of_any_size_and_places_that_meet_take_no_more_than_their_bytes() {
    // Other implementations make room for 2^40 values here.
    let vast = "uint8[1024][1024][1024][1024]";
    assert!(rejection(&inputs(&[vast]), "[[]]").contains("at most 16380 bytes"));
    let method = inputs(&["uint8[1024][1024][1024][]"]);
    assert_eq!(method.encode_arguments("[[]]").unwrap().len(), 4 + 64);
    assert!(rejection(&method, "[[[]]]").contains("at most 16380 bytes"));

    // Every array's places lead to one array: 170^4 values if they were followed.
    let bomb = answering(unnamed(&["uint8[][][][]"]));
    let mut bytes = vec![0; 31];
    bytes.push(32);
    for _ in 0..3 {
        bytes.extend([0; 31]);
        bytes.push(100);
        for _ in 0..100 {
            bytes.extend([0; 30]);
            bytes.extend(3_200_u16.to_be_bytes());
        }
    }
    bytes.extend([0; 32]);
    let error = bomb.decode_answer(&bytes).unwrap_err();
    assert_eq!(error.to_string(), "/0/0/0/1: expected the place 3232, found 3200");
}
