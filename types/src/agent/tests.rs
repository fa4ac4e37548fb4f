//! Agents that are good, each rule broken by itself, and the order in which faults are told.

mod draft;
mod faults;

use super::{
    Document, Executor, Metadata, MetadataFault, Pending, Question, ROYALTY_MAX, Tool, Version,
};
use crate::{Amount, Code, Hash, Rejection};
use draft::Draft;
use faults::{many, text};

const SELECTOR: &str = include_str!("../../fixtures/agents/json-selector.json");
const INFERENCE: &str = include_str!("../../fixtures/agents/llm-inference.json");
const PORTFOLIO: &str = include_str!("../../fixtures/agents/portfolio.json");
const MANIFEST: &str = "b179c9523d0e5f2f6bd18c9adbbf8e4c4fbb5d3a6f0c27d1e95c8a7b6d4f3e21";

/// Every good document with its name.
fn good() -> [(&'static str, Draft); 3] {
    [("selector", SELECTOR), ("inference", INFERENCE), ("portfolio", PORTFOLIO)]
        .map(|(name, text)| (name, Draft::of(text)))
}

/// The smallest good document.
fn smallest() -> Draft {
    Draft::of(
        r#"{"name":"a","description":"b","container_image":"ipfs://c","version":"0.0.0",
        "abi":[{"type":"function","name":"d","inputs":[],"outputs":[]}]}"#,
    )
}

fn outcome(text: &str) -> Result<Metadata, MetadataFault> {
    Document::read(text.as_bytes())?.check(ROYALTY_MAX).outcome
}

fn accepted(draft: &Draft) -> Metadata {
    outcome(&draft.text()).unwrap_or_else(|fault| panic!("{fault}"))
}

/// Path and rule of the fault that is told.
fn told(draft: &Draft) -> (String, u8) {
    let fault = outcome(&draft.text()).expect_err("there is a fault");
    let sentence = fault.to_string();
    assert!(!fault.expected.is_empty() && !fault.found.is_empty(), "{sentence}");
    (fault.path, fault.rule)
}

fn at(path: &str, rule: u8) -> (String, u8) {
    (path.to_owned(), rule)
}

fn pending(text: &str) -> Vec<Pending> {
    Document::read(text.as_bytes()).unwrap().check(ROYALTY_MAX).pending
}

fn methods(metadata: &Metadata) -> Vec<(String, String, String)> {
    let method = |method: &crate::abi::Method| {
        (method.selector().to_string(), method.signature(), method.answers())
    };
    metadata.methods.iter().map(method).collect()
}

fn strings(rows: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
    rows.iter().map(|(a, b, c)| ((*a).to_owned(), (*b).to_owned(), (*c).to_owned())).collect()
}

#[test]
fn a_selector_of_json_in_a_container_is_read() {
    let metadata = outcome(SELECTOR).unwrap();
    assert_eq!(metadata.name, "json-selector");
    assert_eq!(metadata.version.as_str(), "1.4.0+build.7");
    let image = "registry.example.org:5000/agents/json-selector:1.4.0@sha256:\
                 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    let hash = Hash::digest(image.as_bytes());
    assert_eq!(metadata.executor, Executor::Container { image: hash });
    assert_eq!(metadata.executor.to_string(), format!("container:{hash}"));
    assert!(!metadata.is_deterministic(), "nobody knows what is in a container");
    assert_eq!((metadata.tools.as_slice(), metadata.royalty), (&[][..], Amount::ZERO));
    let expected = [
        ("0xe003c22e", "fetchString(string,string)", "(string)"),
        ("0x3bbc1302", "fetchUint(string,string,uint8)", "(uint256)"),
        ("0xe05c9c8b", "fetchStringArray(string,string)", "(string[])"),
    ];
    assert_eq!(methods(&metadata), strings(&expected));
}

#[test]
fn a_language_model_with_four_methods_is_read() {
    let metadata = outcome(INFERENCE).unwrap();
    assert_eq!(metadata.executor.to_string(), format!("model-1:{MANIFEST}"));
    assert!(metadata.is_deterministic());
    let tools: Vec<_> = metadata.tools.iter().map(ToString::to_string).collect();
    assert_eq!(tools, ["math_eval", "date_parse", "date_diff", "regex_match"]);
    assert_eq!(metadata.royalty, Amount::new(250));
    let expected = [
        ("0xfe7ca098", "inferString(string,string,bool,string[])", "(string)"),
        ("0xc6833c3d", "inferNumber(string,string,int256,int256,bool)", "(int256)"),
        ("0xbee8d139", "inferChat(string[],string[],bool)", "(string)"),
        (
            "0xd0683905",
            "inferToolsChat(string[],string[],string[],(string,string)[],uint256,bool)",
            "(string,string,string[],string[],string[],bytes[])",
        ),
    ];
    assert_eq!(methods(&metadata), strings(&expected));
}

#[test]
fn a_program_with_tuples_in_tuples_and_an_agent_as_tool_is_read() {
    let metadata = outcome(PORTFOLIO).unwrap();
    assert_eq!(metadata.name, "portfolio 😀");
    assert_eq!(metadata.executor.to_string(), format!("wasm-1:{MANIFEST}"));
    assert!(metadata.is_deterministic());
    let expected = [
        ("0x5fb9e23d", "rebalance(bytes32,(bytes))", "(bool,(address,(uint128,int64[2][]))[4][])"),
        ("0xd5ce3389", "from()", "()"),
    ];
    assert_eq!(methods(&metadata), strings(&expected));
    let without_model = Draft::of(PORTFOLIO).without("/executor/model");
    assert_eq!(accepted(&without_model).executor.to_string(), "wasm-1");
}

#[test]
fn what_only_the_state_knows_is_listed_in_the_order_of_the_rules() {
    let id =
        Hash::parse("1b4487d453171a7aef80e84332f036be145416b9b47621f4a27fce8fe47ba91b").unwrap();
    let newer = |text| Question::Newer(Version::parse(text).unwrap());
    let version = Version::parse("2.0.0-rc.1").unwrap();
    let of = |path: &str, rule, question| Pending { path: path.to_owned(), rule, question };
    assert_eq!(pending(SELECTOR), [of("/version", 2, newer("1.4.0+build.7"))]);
    // Within rule 6 in the order of the text: the tools of this one stand before the program.
    let expected = [
        of("/version", 2, newer("3.0.0")),
        of("/executor/tools/0", 6, Question::Nested { id, version }),
        of("/executor/blobId", 6, Question::Program { blob_id: "portfolio_v3-wasm".to_owned() }),
    ];
    assert_eq!(pending(PORTFOLIO), expected);
    for question in expected.map(|pending| pending.question.to_string()) {
        assert!(!question.is_empty());
    }
}

#[test]
fn what_only_the_state_knows_is_listed_as_far_as_it_comes_before_the_fault() {
    let draft = Draft::of(PORTFOLIO);
    let paths = |draft: &Draft| -> Vec<_> {
        pending(&draft.text()).into_iter().map(|pending| pending.path).collect()
    };
    let (version, tool, blob) = ("/version", "/executor/tools/0", "/executor/blobId");
    assert_eq!(paths(&draft.with("/royalty", "1")), [version, tool, blob]);
    assert_eq!(paths(&draft.with("/executor/model", "1")), [version, tool, blob]);
    assert_eq!(paths(&draft.with("/container_image", "\"x\"")), [version, tool, blob]);
    assert_eq!(paths(&draft.with("/executor/runtime", "1")), [version, tool]);
    assert_eq!(paths(&draft.with("/executor/tools/1", "\"now\"")), [version, tool]);
    assert_eq!(paths(&draft.without("/executor/runtime")), [version]);
    assert_eq!(paths(&draft.with("/abi/1/inputs", "[1]")), [version]);
    // The name stands behind the version, the description of another text before it.
    assert_eq!(paths(&draft.with("/name", "1")), [version]);
    assert_eq!(paths(&Draft::of(SELECTOR).with("/name", "1")), [""; 0]);
    assert_eq!(paths(&draft.without("/name")), [""; 0]);
}

#[test]
fn the_name_is_known_before_any_other_rule_is_looked_at() {
    let name =
        |text: &'static str| Document::read(text.as_bytes()).unwrap().name().map(ToOwned::to_owned);
    assert_eq!(name(r#"{"abi":7,"name":"a|b"}"#), Some("a|b".to_owned()));
    assert_eq!(name(r#"{"name":7}"#), None);
    assert_eq!(name("{}"), None);
}

#[test]
fn unknown_keys_are_kept_and_mean_nothing() {
    let draft = Draft::of(INFERENCE);
    let before = accepted(&draft);
    let objects = draft
        .pointers()
        .into_iter()
        .filter(|pointer| matches!(draft.clone().at(pointer), Draft::Object(_)));
    for pointer in objects {
        let more = draft.with(&format!("{pointer}/more"), "[{\"type\":1.5},null]");
        assert_eq!(accepted(&more), before, "{pointer}");
    }
    // Those of other kinds of executors, too.
    let selector = Draft::of(SELECTOR)
        .with("/executor", r#"{"kind":"container","tools":["now"],"model":1,"blobId":2}"#);
    assert_eq!(accepted(&selector), outcome(SELECTOR).unwrap());
}

#[test]
fn limits_can_be_reached() {
    let url = format!("\"ipfs://{}\"", "x".repeat(505));
    let draft = smallest()
        .with("/name", &format!("\"{}ăé\"", "x".repeat(60)))
        .with("/description", &text(4_096))
        .with("/container_image", &url)
        .with("/version", &format!("\"1.0.0-{}\"", "1".repeat(58)))
        .with("/image", &url)
        .with("/author", &text(128))
        .with("/homepage", "\"https://x\"")
        .with("/tags", &many(&text(32), 16))
        .with("/attributes", &many(r#"{"trait_type":"","value":-0}"#, 32))
        .with("/abi/0/inputs", &many(r#"{"name":"","type":"bool[1024][1][][]"}"#, 32))
        .with("/royalty", "\"1000000\"");
    assert_eq!(accepted(&draft).royalty, ROYALTY_MAX);
    let empty = smallest().with("/author", "\"\"").with("/tags", "[]").with("/attributes", "[]");
    accepted(&empty.with("/name", "\"x\"").with("/royalty", "\"0\""));
    let methods: Vec<_> = (0..64)
        .map(|index| format!(r#"{{"type":"function","name":"f{index}","inputs":[],"outputs":[]}}"#))
        .collect();
    assert_eq!(
        accepted(&smallest().with("/abi", &format!("[{}]", methods.join(",")))).methods.len(),
        64
    );
    let model = Draft::of(INFERENCE);
    accepted(
        &model.with("/executor/maxIterations", "64").with("/executor/maxOutputTokens", "4096"),
    );
    accepted(&model.with("/executor/maxIterations", "1").with("/executor/maxOutputTokens", "1"));
    accepted(&model.with("/executor/tools", "[]").with("/executor/basePrompt", "\"\""));
    accepted(&model.with("/executor/tools", &many("\"math_eval\"", 16)));
}

#[test]
fn a_fault_is_refused_with_its_rule_and_its_path_as_far_as_that_is_short() {
    let key = "ă".repeat(2_000);
    let text = format!("{{\"{key}\":1,\"{key}\":2}}");
    let rejection = Rejection::from(outcome(&text).unwrap_err());
    assert_eq!(rejection.code(), Code::AgentMetadata);
    let path = format!("/{}…", "ă".repeat(511));
    assert!(rejection.extra().eq([("path", path.as_str()), ("rule", "1")]), "{rejection:?}");
    let rejection = Rejection::from(outcome(&smallest().with("/name", "7").text()).unwrap_err());
    assert!(rejection.extra().eq([("path", "/name"), ("rule", "2")]), "{rejection:?}");
}

#[test]
fn a_text_has_at_most_65536_bytes() {
    let text = smallest().text();
    let padded = |bytes: usize| format!("{text}{}", " ".repeat(bytes - text.len()));
    assert!(outcome(&padded(65_536)).is_ok());
    let fault = outcome(&padded(65_537)).unwrap_err();
    assert_eq!((fault.path.as_str(), fault.rule), ("", 1));
    assert_eq!(
        fault.to_string(),
        "the document: expected at most 65536 bytes, found 65537 bytes (rule 1)"
    );
}

#[test]
fn tuples_nest_eight_deep_and_no_deeper() {
    let nested = |depth: usize| {
        let open = r#"{"name":"","type":"tuple","components":["#.repeat(depth);
        format!("[{open}{{\"name\":\"\",\"type\":\"bool\"}}{}]", "]}".repeat(depth))
    };
    let method = accepted(&smallest().with("/abi/0/inputs", &nested(8))).methods.remove(0);
    assert_eq!(method.signature(), format!("d{}bool{}", "(".repeat(9), ")".repeat(9)));
    let ninth = format!("/abi/0/inputs/0{}/type", "/components/0".repeat(8));
    assert_eq!(told(&smallest().with("/abi/0/inputs", &nested(9))), at(&ninth, 5));
    assert_eq!(told(&smallest().with("/abi/0/inputs", &nested(13))), at(&ninth, 5));
    // Deeper, rule 1 is broken.
    let (path, rule) = told(&smallest().with("/abi/0/inputs", &nested(40)));
    assert_eq!((path.matches("/components/0").count(), rule), (14, 1));
}

#[test]
fn two_methods_with_one_selector_are_told_as_rule_4_after_rule_5() {
    let twins = r#"[{"type":"function","name":"burn","inputs":[{"name":"a","type":"uint"}],"outputs":[]},
        {"type":"function","name":"collate_propagate_storage","inputs":[{"name":"","type":"bytes16"}],"outputs":[]}]"#;
    let draft = smallest().with("/abi", twins);
    assert_eq!(told(&draft), at("/abi/1", 4));
    let fault = outcome(&draft.text()).unwrap_err();
    assert_eq!(fault.found, "0x42966c68, that of burn");
    let mut draft = Draft::of(&draft.text());
    assert_eq!(told(&draft.with("/abi/1/outputs", "[1]")), at("/abi/1/outputs/0", 5));
    draft = draft.with("/royalty", "1").with("/executor", "1");
    assert_eq!(told(&draft), at("/abi/1", 4));
}

#[test]
fn the_first_fault_is_that_of_the_lowest_rule_and_then_the_first_in_the_text() {
    // One fault of each rule, from the last to the first: each newcomer is told.
    let mut draft = Draft::of(INFERENCE);
    for (path, raw, rule) in [
        ("/royalty", "1", 7),
        ("/executor/maxOutputTokens", "0", 6),
        ("/executor/maxIterations", "1.0", 6),
        ("/container_image", "\"x\"", 6),
        ("/abi/3/inputs/3/components/1/type", "\"x\"", 5),
        ("/abi/3/inputs/0/name", "\"1\"", 5),
        ("/abi/0/outputs/0/type", "null", 5),
        ("/abi/3/type", "\"event\"", 4),
        ("/abi/0/inputs", "{}", 4),
        ("/tags", "1", 3),
    ] {
        draft = draft.with(path, raw);
        assert_eq!(told(&draft), at(path, rule));
    }
    draft = draft.with("/description", "\"\"");
    assert_eq!(told(&draft), at("/description", 2));
    draft = draft.with("/version", "\"1\"");
    assert_eq!(told(&draft), at("/version", 2), "it stands before the description");
    draft = draft.without("/abi");
    assert_eq!(told(&draft), at("/abi", 2));
    draft = draft.without("/name");
    assert_eq!(told(&draft), at("/name", 2));
    let twice = draft.text().replacen("\"version\"", "\"royalty\":\"1\",\"version\"", 1);
    let fault = outcome(&twice).unwrap_err();
    assert_eq!((fault.path.as_str(), fault.rule), ("/royalty", 1));
}

#[test]
fn what_is_missing_in_an_object_is_told_before_what_is_wrong_in_it() {
    let method = r#"{"inputs":1,"name":"1","outputs":[{}]}"#;
    assert_eq!(told(&smallest().with("/abi/0", method)), at("/abi/0/type", 4));
    let method = r#"{"type":"function","name":"a","inputs":[{"type":1}],"outputs":[]}"#;
    assert_eq!(told(&smallest().with("/abi/0", method)), at("/abi/0/inputs/0/name", 5));
    let tuple = r#"[{"name":"1","type":"tuple[]"}]"#;
    assert_eq!(told(&smallest().with("/abi/0/inputs", tuple)), at("/abi/0/inputs/0/components", 5));
    let attribute = smallest().with("/attributes", r#"[{"value":1.5}]"#);
    assert_eq!(told(&attribute), at("/attributes/0/trait_type", 3));
    // Of the executor even before an image that stands in front of it and does not agree.
    let model = Draft::of(INFERENCE).with("/container_image", "\"x\"").without("/executor/tools");
    assert_eq!(told(&model), at("/executor/tools", 6));
}

#[test]
fn the_image_is_judged_in_its_place_of_the_text() {
    let faulty = |draft: &Draft| told(&draft.with("/container_image", "\"ombra-blob:other\""));
    let inference = Draft::of(INFERENCE).with("/executor/maxIterations", "65");
    assert_eq!(faulty(&inference), at("/container_image", 6));
    let portfolio = Draft::of(PORTFOLIO);
    assert_eq!(faulty(&portfolio), at("/container_image", 6));
    assert_eq!(
        faulty(&portfolio.with("/executor/runtime", "\"wasm-2\"")),
        at("/executor/runtime", 6)
    );
    // What the image has to agree with must be well-formed first.
    assert_eq!(faulty(&inference.with("/executor/model", "\"x\"")), at("/executor/model", 6));
    assert_eq!(faulty(&inference.with("/executor/kind", "\"x\"")), at("/executor/kind", 6));
    assert_eq!(faulty(&inference.with("/executor", "[]")), at("/executor", 6));
}

#[test]
fn a_tool_is_built_in_or_another_agent_with_its_version() {
    let id = "1b4487d453171a7aef80e84332f036be145416b9b47621f4a27fce8fe47ba91b";
    let written = format!("agent:{id}@1.0.0-a+b");
    assert_eq!(Tool::parse(&written).unwrap().to_string(), written);
    for text in [
        "",
        "now",
        "Math_eval",
        "math_eval ",
        "agent:",
        "agent:llm@1.0.0",
        &format!("agent:{id}"),
        &format!("agent:{id}@"),
        &format!("agent:{id}@1"),
        &format!("agent:{id}@1.0.0@"),
        &format!("agent: {id}@1.0.0"),
        &format!("agent:ox{id}@1.0.0"),
        "chain_get_balance",
    ] {
        assert_eq!(Tool::parse(text), None, "{text}");
    }
}
