//! Hashes, arguments, limits and grants: what holds for every tool.

pub(crate) mod support;

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use types::Hash;

use super::offered::Offered;
use super::toolbox::Toolbox;
use super::{
    BUILT_IN, Class, Code, Config, Failure, Grant, Limits, LimitsConfig, OFFERED_BY_DEFAULT,
    Schema, Terms, Tool, args_hash, canonical_json, result_hash,
};
use crate::messages::ToolSpec;
use support::{call, config, object, said, toolbox};

#[test]
fn canonical_json_is_that_of_rfc_8785_but_whole_numbers_keep_their_digits() {
    let cases = [
        (r#"{"b": 1, "a": [true, false, null]}"#, r#"{"a":[true,false,null],"b":1}"#),
        // By UTF-16 units the emoji (D83D…) stands before U+FB33, by code points after it.
        ("{\"\u{fb33}\": 1, \"😀\": 2, \"é\": 3}", "{\"é\":3,\"😀\":2,\"\u{fb33}\":1}"),
        (r#""\u20ac$\u000f\nA'B\"\\\/\u007f""#, "\"€$\\u000f\\nA'B\\\"\\\\/\u{7f}\""),
        (
            "[1.0, -0.0, 0.5, 1e21, 1e20, 1e-6, 1e-7, 1.5e300, -2.5e-10]",
            "[1,0,0.5,1e+21,100000000000000000000,0.000001,1e-7,1.5e+300,-2.5e-10]",
        ),
        (
            "[18446744073709551615, -9223372036854775808]",
            "[18446744073709551615,-9223372036854775808]",
        ),
    ];
    for (text, canonical) in cases {
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(canonical_json(&value), canonical);
    }
}

#[test]
fn the_hashes_are_of_the_canonical_arguments_and_of_the_results_text() {
    let arguments = object(r#"{"to": "b", "from": "a"}"#);
    assert_eq!(args_hash(&arguments), Hash::digest(br#"{"from":"a","to":"b"}"#));
    // sha256("hello"), as any other program has it.
    let hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    assert_eq!(result_hash("hello").to_string(), hello);
}

#[test]
fn arguments_that_do_not_fit_are_named_with_value_and_expectation() {
    let schema = Schema::compile(&json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1, "maximum": 9},
            "name": {"type": "string", "maxLength": 3, "pattern": "^[a-z]*$"},
            "list": {"type": "array", "items": {"type": "boolean"}},
            "kind": {"enum": ["a", "b"]},
        },
        "required": ["n"],
        "additionalProperties": false,
    }))
    .unwrap();
    let long = format!(r#"{{"n": 1, "name": "{}"}}"#, "x".repeat(500));
    let cut = format!("\"{}…", "x".repeat(79));
    let cases = [
        ("{}", "argument n is missing".to_owned()),
        (r#"{"n": "5"}"#, r#"argument n is "5": the value is not of type "integer""#.into()),
        (r#"{"n": 1.5}"#, r#"argument n is 1.5: the value is not of type "integer""#.into()),
        (r#"{"n": 10}"#, "argument n is 10: the value is greater than the maximum of 9".into()),
        (r#"{"n": 1, "m": 2}"#, "argument m is unknown: expected kind, list, n, name".into()),
        (
            r#"{"n": 1, "list": [true, 2]}"#,
            r#"argument list.1 is 2: the value is not of type "boolean""#.into(),
        ),
        (
            r#"{"n": 1, "kind": "c"}"#,
            r#"argument kind is "c": the value is not one of "a" or "b""#.into(),
        ),
        (&long, format!("argument name is {cut}: the value is longer than 3 characters")),
    ];
    for (arguments, message) in cases {
        let failure = schema.check(&object(arguments)).unwrap_err();
        assert_eq!((failure.code, failure.message), (Code::BadArguments, message));
    }
    assert_eq!(schema.check(&object(r#"{"n": 1.0, "name": "abc", "list": []}"#)), Ok(()));
}

#[test]
fn a_schema_that_cannot_be_used_is_refused() {
    let with = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
    let cases = [
        (json!({"type": "string"}), "the schema is not of an object"),
        (json!(true), "the schema is not of an object"),
        (json!({"type": "object", "$comment": "x".repeat(40_000)}), "the schema has 400"),
        (json!({"type": "object", "properties": 5}), "the schema cannot be used"),
        (with(json!({"$ref": "http://127.0.0.1:1/a.json"})), "the schema cannot be used"),
        (with(json!({"$ref": "file:///etc/passwd"})), "the schema cannot be used"),
        (with(json!({"pattern": "(?=a)b"})), "the schema cannot be used"),
        (with(json!({"pattern": "(.{1000}){1000}"})), "the schema cannot be used"),
    ];
    for (schema, fault) in cases {
        let said = Schema::compile(&schema).unwrap_err().to_string();
        assert!(said.starts_with(fault), "{schema}: {said}");
    }
}

/// A schema of 41 definitions, each of which is twice the next one.
fn doubled() -> Value {
    let next = |it: usize| json!({ "$ref": format!("#/$defs/a{}", it + 1) });
    let twice = |it: usize| (format!("a{it}"), json!({ "anyOf": [next(it), next(it)] }));
    let mut definitions: Map<String, Value> = (0..40).map(twice).collect();
    definitions.insert("a40".into(), json!({"required": ["zz"]}));
    json!({"type": "object", "allOf": [{"$ref": "#/$defs/a0"}], "$defs": definitions})
}

#[test]
fn a_schema_that_would_be_endless_work_is_refused() {
    let deep = (0..300).fold(json!({}), |inner, _| json!({ "not": inner }));
    let reference = |it: usize| json!({ "$ref": format!("#/properties/a{it}") });
    let wide: Map<String, Value> = (0..201).map(|it| (format!("a{it}"), json!({}))).collect();
    let all: Vec<_> = (0..201).map(reference).collect();
    let named = "the schema cannot be used: it refers to \"#a\": expected a place in itself";
    let anchored = json!({"type": "object", "$defs": {"a": {"$anchor": "a"}}});
    let with = |key: &str, value: Value| {
        let mut schema = anchored.clone();
        schema["properties"] = json!({ "p": { key: value } });
        schema
    };
    let cases = [
        (doubled(), "the schema has more than 20000 parts"),
        (json!({"type": "object", "not": deep}), "the schema has more than 20000 parts"),
        (json!({"type": "object", "properties": wide, "allOf": all}), "the schema has more than"),
        (with("$ref", json!("#a")), named),
        (with("$dynamicRef", json!("#a")), named),
        (with("$ref", json!("#/$defs/b")), "the schema cannot be used: it refers to \"#/$defs/b\""),
        (
            with("$id", json!("http://a/b")),
            "the schema cannot be used: a part of it has an address",
        ),
    ];
    for (schema, fault) in cases {
        let said = Schema::compile(&schema).unwrap_err().to_string();
        assert!(said.starts_with(fault), "{schema}: {said}");
    }
}

#[test]
fn a_schema_with_too_many_patterns_is_refused() {
    let many = |count: usize| {
        let one = |it: usize| (format!("a{it}"), json!({ "pattern": format!("^{it}") }));
        let some: Map<String, Value> = (0..count).map(one).collect();
        json!({"type": "object", "properties": some, "patternProperties": {"^x": {}, "^y": {}}})
    };
    assert!(Schema::compile(&many(30)).is_ok());
    let said = Schema::compile(&many(31)).unwrap_err().to_string();
    assert_eq!(said, "the schema has more than 32 patterns");
}

#[test]
fn schemas_that_refer_to_themselves_and_large_flat_ones_are_used() {
    let tree = json!({
        "$id": "http://example.org/tree",
        "type": "object",
        "properties": {
            "name": {"$ref": "#/definitions/a%20name"},
            "children": {"type": "array", "items": {"$ref": "#"}},
        },
        "required": ["name"],
        "definitions": {"a name": {"type": "string"}},
    });
    let tree = Schema::compile(&tree).unwrap();
    let fits = r#"{"name": "a", "children": [{"name": "b", "children": []}]}"#;
    assert_eq!(tree.check(&object(fits)), Ok(()));
    let failure = tree.check(&object(r#"{"name": "a", "children": [{}]}"#)).unwrap_err();
    assert_eq!(failure.message, "argument name in children.0 is missing");

    let property = |it: usize| (format!("a{it}"), json!({"type": "integer", "minimum": it}));
    let flat: Map<String, Value> = (0..700).map(property).collect();
    let flat = Schema::compile(&json!({"type": "object", "properties": flat})).unwrap();
    assert_eq!(flat.check(&object(r#"{"a7": 7}"#)), Ok(()));
    assert!(flat.check(&object(r#"{"a7": 6}"#)).is_err());
}

#[test]
fn of_faults_that_would_take_long_to_find_it_is_only_said_that_there_are_some() {
    let again = json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]});
    let schema = json!({"type": "object", "properties": {"a": again}});
    let schema = Schema::compile(&schema).unwrap();
    let nested = |inner: Value| {
        let nested = (0..24).fold(inner, |inner, _| json!({ "a": inner }));
        nested.as_object().unwrap().clone()
    };
    assert_eq!(schema.check(&nested(json!({}))), Ok(()));
    let failure = schema.check(&nested(json!(5))).unwrap_err();
    assert_eq!(failure.message, "the arguments do not fit the tool's schema");
    assert!(schema.check(&object(r#"{"a": 5}"#)).unwrap_err().message.starts_with("argument a is"));
}

fn granted(names: &[&str]) -> Grant {
    let tools = names.iter().map(|name| (*name).to_owned()).collect();
    Grant { tools, ..Grant::default() }
}

const DOCUMENT: &str = include_str!("../../../docs/miner.md");

/// The part of the document below this heading.
fn section(heading: &str) -> &'static str {
    let (_, body) = DOCUMENT.split_once(&format!("\n### {heading}\n")).expect(heading);
    body.split("\n### ").next().unwrap()
}

/// The cells of the rows of a section's table, without its head.
fn rows(section: &str) -> Vec<Vec<&str>> {
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split('|').map(|cell| cell.trim().trim_matches('`')).collect()).collect()
}

#[tokio::test]
async fn the_document_lists_the_built_in_tools_with_their_arguments_and_classes() {
    let toolbox = toolbox(&format!("allow = {BUILT_IN:?}"));
    let rows = rows(section("Built-in tools"));
    let names: Vec<_> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(names, BUILT_IN);
    for spec in toolbox.specs(&granted(BUILT_IN)) {
        let row = rows.iter().find(|row| row[0] == spec.name).unwrap();
        let class = serde_json::to_value(toolbox.terms(&spec.name).unwrap().class).unwrap();
        assert_eq!(row[2], class, "{}", spec.name);
        let arguments = spec.parameters["properties"].as_object().unwrap();
        let required = spec.parameters["required"].as_array().unwrap();
        let named = |name: &String| {
            let mark = if required.contains(&json!(name)) { "" } else { "?" };
            row[1].contains(&format!("{name}{mark}"))
        };
        assert!(arguments.keys().all(named), "{}: {}", spec.name, row[1]);
        assert_eq!(arguments.is_empty(), row[1].is_empty(), "{}", spec.name);
    }
}

#[test]
fn the_document_lists_the_words_of_failures() {
    let codes = [
        Code::BadArguments,
        Code::Failed,
        Code::Refused,
        Code::Timeout,
        Code::Transport,
        Code::Panicked,
        Code::NotGranted,
        Code::UnknownTool,
        Code::Cancelled,
    ];
    let first: Vec<_> = rows(section("Hashes")).iter().map(|row| row[0]).collect();
    let listed = first.join(" ").replace(['`', ','], "");
    assert_eq!(listed, codes.map(Code::as_str).join(" "));
    for code in codes {
        assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
    }
}

#[derive(serde::Deserialize)]
struct Settings {
    tools: Config,
}

#[test]
fn the_settings_that_the_document_shows_hold() {
    let mut shown = 0;
    let blocks = DOCUMENT.split("```toml\n").skip(1).filter_map(|block| block.split("```").next());
    for text in blocks.filter(|text| text.contains("[tools") || text.contains("[[tools")) {
        let settings: Settings = toml::from_str(text).expect(text);
        assert_eq!(settings.tools.check(), Ok(()), "{text}");
        shown += 1;
    }
    assert_eq!(shown, 3);
}

#[tokio::test]
async fn the_documents_example_of_hashes_is_so() {
    let hashes = section("Hashes");
    let arguments = r#"{"expression":"1/0"}"#;
    let said = said(&toolbox(""), "math_eval", arguments).await;
    assert!(hashes.contains(&format!("sha256({said})")), "{said}");
    assert!(hashes.contains(&format!("sha256({arguments})")));
    assert_eq!(args_hash(&object(arguments)), Hash::digest(arguments.as_bytes()));
}

/// A tool that behaves as its argument says.
#[derive(Debug)]
struct Actor {
    spec: ToolSpec,
    class: Class,
}

#[async_trait]
impl Tool for Actor {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn terms(&self) -> Terms {
        Terms { class: self.class, is_idempotent: false, limits: Limits::DEFAULT }
    }

    async fn call(&self, arguments: &Map<String, Value>) -> Result<String, Failure> {
        match arguments["act"].as_str().unwrap() {
            "hang" => std::future::pending().await,
            "panic" => panic!("at {self:p}"),
            "fail" => Err(Failure::failed("é".repeat(1000))),
            act => Ok(act.repeat(100)),
        }
    }
}

/// A toolbox that has only an [`Actor`] of this class.
fn stage(class: Class) -> Toolbox {
    let parameters = json!({"type": "object", "properties": {"act": {"type": "string"}}});
    let schema = Arc::new(Schema::compile(&parameters).unwrap());
    let (name, description) = ("act".to_owned(), String::new());
    let tool = Arc::new(Actor { spec: ToolSpec { name, description, parameters }, class });
    let limits =
        Limits { timeout: Duration::from_millis(50), input_bytes_max: 60, output_bytes_max: 300 };
    let offered = Offered { tool, schema, limits, apart: None, is_of_agent: false };
    Toolbox::of(BTreeMap::from([("act".to_owned(), offered)]))
}

#[tokio::test]
async fn a_call_that_hangs_ends_at_its_time_limit() {
    let outcome = call(&stage(Class::Pure), "act", r#"{"act": "hang"}"#).await;
    assert_eq!(outcome.result, "timeout: no result within 50 ms");
    assert!((50..5000).contains(&outcome.duration_ms), "{outcome:?}");
    assert_eq!((outcome.ok, outcome.class), (false, Class::Volatile));
}

#[tokio::test]
async fn a_panic_in_a_tool_is_a_result_that_is_the_same_every_time() {
    let outcome = call(&stage(Class::Pure), "act", r#"{"act": "panic"}"#).await;
    assert_eq!(outcome.code, Some(Code::Panicked));
    assert_eq!(outcome.result, "panicked: the tool has a fault");
}

#[tokio::test]
async fn a_result_that_is_too_long_is_cut_between_characters_and_marked() {
    let stage = stage(Class::Pure);
    let mark = "\n[cut off: the result is longer than 300 bytes]";
    for act in ["aéé", "€é", "a€€", "😀"] {
        let text = said(&stage, "act", &format!(r#"{{"act": "{act}"}}"#)).await;
        let kept = text.strip_suffix(mark).expect("a mark");
        assert!(act.repeat(100).starts_with(kept), "{text}");
        assert!((297..=300).contains(&text.len()), "{}", text.len());
    }
    let failed = said(&stage, "act", r#"{"act": "fail"}"#).await;
    assert!(failed.starts_with("failed: é") && failed.ends_with(mark), "{failed}");
    assert!((299..=300).contains(&failed.len()), "{}", failed.len());
    assert_eq!(said(&stage, "act", r#"{"act": "abc"}"#).await, "abc".repeat(100));
}

#[tokio::test]
async fn arguments_that_are_too_long_are_a_result_for_the_model() {
    let act = "a".repeat(60);
    let text = said(&stage(Class::Pure), "act", &format!(r#"{{"act": "{act}"}}"#)).await;
    assert_eq!(text, "bad_arguments: the arguments have 70 bytes: expected at most 60");
}

#[tokio::test]
async fn a_call_ends_when_the_miner_stops() {
    let (stage, stop) = (stage(Class::Pure), CancellationToken::new());
    stop.cancel();
    let hang = object(r#"{"act": "hang"}"#);
    let outcome = stage.call("act", &hang, &granted(&["act"]), &stop).await;
    assert_eq!(outcome.code, Some(Code::Cancelled));
}

#[tokio::test]
async fn only_what_the_run_grants_is_offered_and_called() {
    let stage = stage(Class::Snapshot);
    let stop = CancellationToken::new();
    let reproducible = Grant { is_reproducible: true, ..granted(&["act"]) };
    let cases = [
        (granted(&["act"]), None, vec![]),
        (granted(&["other"]), Some(Code::NotGranted), vec!["other"]),
        (reproducible, Some(Code::NotGranted), vec!["act"]),
    ];
    for (grant, code, missing) in cases {
        let outcome = stage.call("act", &object(r#"{"act": "abc"}"#), &grant, &stop).await;
        assert_eq!(outcome.code, code, "{grant:?}");
        assert_eq!(stage.specs(&grant).is_empty(), code.is_some());
        assert_eq!(stage.missing(&grant), missing);
    }
    let unknown = stage.call("nothing", &Map::new(), &granted(&["nothing"]), &stop).await;
    assert_eq!(unknown.result, "unknown_tool: there is no such tool now");
}

#[tokio::test]
async fn the_usual_settings_offer_every_built_in_tool_but_the_one_that_leaves_the_machine() {
    let toolbox = toolbox("");
    let all = granted(BUILT_IN);
    assert_eq!(toolbox.missing(&all), ["fetch_url"]);
    let pure = Grant { is_reproducible: true, ..all };
    let names: Vec<_> = toolbox.specs(&pure).into_iter().map(|spec| spec.name).collect();
    assert_eq!(names, ["date_diff", "date_parse", "math_eval", "regex_match"]);
    assert_eq!(toolbox.terms("chain_get_height").unwrap().class, Class::Snapshot);
    assert_eq!(toolbox.terms("now").unwrap().class, Class::Volatile);
}

#[tokio::test]
async fn what_clients_offer_by_default_is_pure_and_missed_by_no_run() {
    let everything = toolbox("");
    for name in OFFERED_BY_DEFAULT {
        assert_eq!(everything.terms(name).unwrap().class, Class::Pure, "{name}");
    }
    let clock = toolbox("allow = ['now']");
    let grant = granted(&[OFFERED_BY_DEFAULT, &["now"]].concat());
    let offered: Vec<_> = clock.specs(&grant).into_iter().map(|spec| spec.name).collect();
    assert_eq!((vec!["now".to_owned()], Vec::<String>::new()), (offered, clock.missing(&grant)));
    assert_eq!(clock.missing(&granted(&["math_eval", "regex_match"])), ["regex_match"]);
}

#[test]
fn every_fault_of_the_settings_is_told_at_once() {
    let settings = r#"
        allow = ["now", "nwo"]
        [limits.now]
        timeout_ms = 0
        output_bytes_max = 10
        [limits.later]
        [fetch]
        hosts_allow = ["example.org", "https://example.org", "*.1.2.3.4"]
        [[mcp]]
        name = "Docs"
        [[mcp]]
        name = "a"
        command = ["x"]
        url = "http://x"
        [[mcp]]
        name = "a"
        url = "ftp://x"
        [[mcp]]
        name = "b"
        url = "http://example.org/"
        token_file = "/token"
        [[mcp]]
        name = "c"
        command = ["x"]
        environment = { "A=B" = "" }
        sandbox = { read = ["relative"], files_max = 0 }
    "#;
    let faults = config(settings).check().unwrap_err();
    let settings: Vec<_> = faults.0.iter().map(|fault| fault.setting.as_str()).collect();
    let expected = [
        "allow",
        "limits",
        "limits.now.timeout_ms",
        "limits.now.output_bytes_max",
        "fetch.hosts_allow",
        "fetch.hosts_allow",
        "mcp.name",
        "mcp.Docs.command",
        "mcp.a.url",
        "mcp.a.url",
        "mcp.name",
        "mcp.b.url",
        "mcp.c.environment",
        "mcp.c.sandbox",
        "mcp.c.sandbox.files_max",
    ];
    assert_eq!(settings, expected, "{faults}");
    let first = "tools.allow is \"nwo\": expected one of chain_get_balance, ";
    assert!(faults.to_string().starts_with(first), "{faults}");
}

#[test]
fn settings_that_are_not_known_are_refused() {
    for settings in ["allows = []", "[fetch]\nhosts = []", "[[mcp]]\nnme = 'a'"] {
        assert!(toml::from_str::<Config>(settings).is_err(), "{settings}");
    }
    assert_eq!(config(""), Config::default());
}

#[test]
fn the_operators_limits_take_the_place_of_a_tools_own() {
    let config = config("[limits.now]\ntimeout_ms = 5");
    let expected = Limits { timeout: Duration::from_millis(5), ..Limits::DEFAULT };
    assert_eq!(config.limits_of("now", Limits::DEFAULT), expected);
    assert_eq!(config.limits_of("date_diff", Limits::DEFAULT), Limits::DEFAULT);
    assert_eq!(LimitsConfig::default().timeout_ms, None);
}

#[test]
fn an_outcome_is_recorded_with_its_hashes() {
    let record = super::record(&"é".repeat(200), &object(r#"{"a": 1}"#), "hello", 7, true);
    assert_eq!(record.name, "é".repeat(128), "a model may call what no step can name");
    assert_eq!(record.args_hash, Hash::digest(br#"{"a":1}"#));
    assert_eq!(record.result_hash, Hash::digest(b"hello"));
    assert_eq!((record.duration_ms, record.ok), (7, true));
}
