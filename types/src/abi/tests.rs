//! Names, canonical texts and selectors: the published ones, and those of another implementation.

use alloy_dyn_abi::DynSolType;
use alloy_json_abi::Function;
use proptest::collection::vec;
use proptest::prelude::*;

use super::{
    Base, Dimension, Method, Parameter, TUPLES_MAX, Type, TypeError, TypeName, TypeNameError,
    is_identifier, is_reserved, keccak256,
};
use crate::testing::{MARKET, fixture, items, member, text_of};

fn named(name: &str, of_type: Type) -> Parameter {
    Parameter { name: name.to_owned(), of_type }
}

fn type_name(name: &str) -> TypeName {
    TypeName::parse(name).unwrap()
}

fn plain(name: &str) -> Type {
    Type::new(type_name(name), Vec::new()).unwrap()
}

fn tuple(name: &str, components: Vec<Type>) -> Result<Type, TypeError> {
    let components = components.into_iter().map(|of_type| named("", of_type)).collect();
    Type::new(type_name(name), components)
}

fn method(name: &str, inputs: Vec<Type>) -> Method {
    let inputs = inputs.into_iter().map(|of_type| named("", of_type)).collect();
    Method { name: name.to_owned(), inputs, outputs: Vec::new() }
}

#[test]
fn keccak_gives_the_hashes_of_the_vectors() {
    let vectors = fixture(MARKET);
    for vector in items(member(&vectors, "keccak256")) {
        let hash = keccak256(text_of(vector, "text").as_bytes());
        assert_eq!(const_hex::encode(hash), text_of(vector, "hash"));
    }
}

#[test]
fn published_signatures_have_their_selectors() {
    let strings = || plain("string[]");
    let transfer = method("transfer", vec![plain("address"), plain("uint")]);
    assert_eq!(transfer.signature(), "transfer(address,uint256)");
    assert_eq!(transfer.selector().to_string(), "0xa9059cbb");
    let request = method("request", vec![plain("string"), strings(), strings()]);
    assert_eq!(request.selector().to_string(), "0xa31b4644");
    let analyze = method("analyze", vec![plain("bytes")]);
    assert_eq!(analyze.selector().to_string(), "0x8171a6ef");
}

#[test]
fn a_signature_has_tuples_with_their_components_and_no_names() {
    let order = tuple("tuple[2][]", vec![plain("int"), plain("bytes4[3]")]).unwrap();
    let pair = tuple("tuple", vec![order, plain("bool")]).unwrap();
    let mut asked = method("ask", vec![pair, plain("string")]);
    assert_eq!(asked.signature(), "ask(((int256,bytes4[3])[2][],bool),string)");
    asked.outputs = vec![named("a", plain("uint8")), named("b", plain("address[][4]"))];
    assert_eq!(asked.answers(), "(uint8,address[][4])");
    assert_eq!(method("nothing", Vec::new()).signature(), "nothing()");
}

#[test]
fn a_name_of_a_type_is_read_with_its_dimensions() {
    let read = |text: &str| {
        let name = TypeName::parse(text).unwrap();
        (name.base(), name.dimensions().to_vec())
    };
    assert_eq!(read("uint"), (Base::Uint(256), vec![]));
    assert_eq!(read("int8"), (Base::Int(8), vec![]));
    assert_eq!(read("bytes32[]"), (Base::FixedBytes(32), vec![Dimension::Any]));
    let four = vec![Dimension::Fixed(1_024), Dimension::Any, Dimension::Fixed(1), Dimension::Any];
    assert_eq!(read("tuple[1024][][1][]"), (Base::Tuple, four));
    assert_eq!(TypeName::parse("int[3][]").unwrap().to_string(), "int256[3][]");
}

#[test]
fn what_is_no_type_is_refused_with_what_was_expected() {
    let no_bases = "str String uint7 uint0 uint08 uint264 uint-8 uint+8 int257 int٨ bytes0 bytes33 \
                    bytes01 byte fixed ufixed128x18 function tuple() (uint256) uint256_ bool1 [ [] \
                    [3]";
    let others = ["", " ", "string ", " string", "address payable"];
    for name in no_bases.split_whitespace().chain(others) {
        assert_eq!(TypeName::parse(name), Err(TypeNameError::Base), "{name:?}");
    }
    let no_dimensions = "bool[ bool] bool[]] bool[0] bool[01] bool[1025] bool[-1] bool[+1] \
                         bool[1][ bool[][x] bool[]x bool[[]] bool[99999999999999999999] \
                         bool[65537]";
    let others = ["bool[] ", "bool[ ]"];
    for name in no_dimensions.split_whitespace().chain(others) {
        let expected = if name == "bool]" { TypeNameError::Base } else { TypeNameError::Dimension };
        assert_eq!(TypeName::parse(name), Err(expected), "{name:?}");
    }
    assert_eq!(TypeName::parse("bool[][][][][]"), Err(TypeNameError::Dimensions));
    let long = format!("bool{}", "[]".repeat(30_000));
    assert_eq!(TypeName::parse(&long), Err(TypeNameError::Dimensions));
}

#[test]
fn tuples_and_nothing_else_have_components_and_nest_to_a_limit() {
    assert_eq!(tuple("tuple", Vec::new()), Err(TypeError::NoComponents));
    assert_eq!(tuple("bool", vec![plain("bool")]), Err(TypeError::NoTuple));
    let mut nested = plain("bool");
    for _ in 0..TUPLES_MAX {
        nested = tuple("tuple[]", vec![plain("string"), nested]).unwrap();
    }
    assert_eq!(tuple("tuple", vec![nested]), Err(TypeError::Depth));
}

#[test]
fn identifiers_are_those_of_solidity() {
    let good = "a _ $ a1 _1$ from error revert global layout transient at";
    for name in good.split_whitespace() {
        assert!(is_identifier(name) && !is_reserved(name), "{name}");
    }
    for name in ["", "1a", "a-b", "a b", "ă", "a.b", "a\n"] {
        assert!(!is_identifier(name), "{name:?}");
    }
    for name in [
        "abstract", "event", "ether", "years", "function", "uint", "bytes", "bytes1", "bytes32",
        "int8", "int256", "uint8", "uint256", "unicode", "_",
    ] {
        assert_eq!(is_reserved(name), name != "_", "{name}");
    }
    for name in ["bytes0", "bytes33", "uint7", "uint264", "int", "tuple", "string1", "Uint8"] {
        assert_eq!(is_reserved(name), name == "int", "{name}");
    }
}

/// A name of a type, most of them good.
fn any_name() -> impl Strategy<Value = String> {
    let base = prop_oneof![
        Just("string".to_owned()),
        Just("bytes".to_owned()),
        Just("bool".to_owned()),
        Just("address".to_owned()),
        "u?int(|[0-9]{1,3})",
        "bytes[0-9]{1,2}",
        "(function|byte|fixed|ufixed|uint 8|Bool|string_)",
    ];
    let dimension = prop_oneof![
        3 => Just("[]".to_owned()),
        3 => "\\[[0-9]{1,4}\\]",
        1 => "[\\[\\]0-9 x]{1,2}",
    ];
    (base, vec(dimension, 0..6)).prop_map(|(base, dimensions)| base + &dimensions.concat())
}

/// What the other implementation takes and the chain does not: functions, other numbers of elements
/// and dimensions, and numbers that are not in their shortest form.
fn is_beyond_the_chain(name: &str) -> bool {
    let elements = name.split('[').skip(1).filter_map(|it| it.split(']').next());
    let is_other = |it: &str| it.starts_with('0') || it.parse::<u32>().is_ok_and(|it| it > 1_024);
    let base = name.split('[').next().unwrap_or_default();
    let size = base.trim_start_matches(char::is_alphabetic);
    base == "function"
        || size.starts_with('0')
        || name.matches('[').count() > 4
        || elements.into_iter().any(|it| !it.is_empty() && is_other(it))
}

/// A good type and its JSON as a parameter of that name.
fn any_parameter() -> impl Strategy<Value = (Type, String)> {
    let leaf = "(string|bytes|bool|address|uint|int|u?int(8|64|248|256)|bytes(1|20|32))(|\\[\\]|\\[[1-9]\\]){0,4}";
    let leaf = leaf.prop_filter_map("four dimensions", |name| {
        let of_type = Type::new(TypeName::parse(&name).ok()?, Vec::new()).unwrap();
        // The other implementation keeps `uint` as it is written.
        let name = of_type.to_string();
        Some((of_type, format!("{{\"name\":\"\",\"type\":\"{name}\"}}")))
    });
    leaf.prop_recursive(6, 24, 4, |inner| {
        let dimensions = vec("(\\[\\]|\\[[1-9][0-9]{0,2}\\])", 0..4).prop_map(|it| it.concat());
        (vec(inner, 1..5), dimensions).prop_map(|(components, dimensions)| {
            let (types, texts): (Vec<_>, Vec<_>) = components.into_iter().unzip();
            let of_type = tuple(&format!("tuple{dimensions}"), types).unwrap();
            let texts = texts.join(",");
            let text = format!(
                "{{\"name\":\"\",\"type\":\"tuple{dimensions}\",\"components\":[{texts}]}}"
            );
            (of_type, text)
        })
    })
}

proptest! {
    #[test]
    fn the_types_that_are_taken_are_those_of_another_implementation(name in any_name()) {
        let theirs = DynSolType::parse(&name);
        match TypeName::parse(&name) {
            Ok(ours) => {
                let theirs = theirs.expect("the other implementation takes it");
                prop_assert_eq!(ours.to_string(), theirs.sol_type_name());
            }
            Err(_) => prop_assert!(theirs.is_err() || is_beyond_the_chain(&name), "{}", name),
        }
    }

    #[test]
    fn signatures_and_selectors_are_those_of_another_implementation(
        name in "[a-zA-Z_$][a-zA-Z0-9_$]{0,8}",
        parameters in vec(any_parameter(), 0..5),
    ) {
        let (types, texts): (Vec<_>, Vec<_>) = parameters.into_iter().unzip();
        let ours = method(&name, types);
        let text = format!(
            "{{\"type\":\"function\",\"name\":\"{name}\",\"stateMutability\":\"view\",\
             \"inputs\":[{}],\"outputs\":[]}}",
            texts.join(",")
        );
        let theirs: Function = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(ours.signature(), theirs.signature());
        prop_assert_eq!(ours.selector().0, theirs.selector().0);
    }
}
