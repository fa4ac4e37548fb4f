//! Every kind of fault at every place where it can stand, in each good document, with the place and the
//! rule that have to be told. The table is made from the rules, not from the code.

use std::collections::BTreeSet;

use super::draft::Draft;
use super::{good, smallest, told};

/// A document with one fault, and what has to be told of it.
struct Case {
    draft: Draft,
    path: String,
    rule: u8,
}

/// Collects the cases of one document.
struct Spoiler {
    good: Draft,
    cases: Vec<Case>,
}

impl Spoiler {
    /// Each of these values at a place is a fault there.
    fn values(&mut self, place: &str, rule: u8, raws: &[&str]) {
        for raw in raws {
            let draft = self.good.with(place, raw);
            self.cases.push(Case { draft, path: place.to_owned(), rule });
        }
    }

    /// This value at a place is a fault somewhere within it.
    fn within(&mut self, place: &str, raw: &str, path: &str, rule: u8) {
        let draft = self.good.with(place, raw);
        self.cases.push(Case { draft, path: format!("{place}{path}"), rule });
    }

    /// Each of these members is missed in the object at a place.
    fn missing(&mut self, object: &str, rule: u8, keys: &[&str]) {
        for key in keys {
            let path = format!("{object}/{key}");
            self.cases.push(Case { draft: self.good.without(&path), path, rule });
        }
    }

    fn has(&self, place: &str) -> bool {
        self.good.pointers().iter().any(|pointer| pointer == place)
    }

    fn length(&mut self, place: &str) -> usize {
        match self.good.at(place) {
            Draft::Array(items) => items.len(),
            Draft::Object(_) | Draft::Raw(_) => 0,
        }
    }
}

pub(super) fn text(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes))
}

pub(super) fn many(item: &str, count: usize) -> String {
    format!("[{}]", vec![item; count].join(","))
}

/// Values that are no strings.
const NO_TEXTS: [&str; 6] = ["null", "true", "1", "1.5", "[]", "{}"];
/// Values that are no arrays.
const NO_ARRAYS: [&str; 5] = ["null", "false", "1", "\"[]\"", "{}"];
/// Values that are no objects.
const NO_OBJECTS: [&str; 5] = ["null", "false", "1", "\"{}\"", "[]"];

fn rule_2(spoiler: &mut Spoiler) {
    let keys = ["name", "description", "container_image", "version", "abi"];
    spoiler.missing("", 2, &keys);
    for key in ["/name", "/description", "/container_image", "/version"] {
        spoiler.values(key, 2, &NO_TEXTS);
        spoiler.values(key, 2, &["\"\""]);
    }
    let names =
        [&text(65), "\"a\\u0000\"", "\"\\n\"", "\"a\\u007f\"", "\"\\u0085b\"", "\"\u{9f}\""];
    spoiler.values("/name", 2, &names);
    spoiler.values("/name", 2, &[&format!("\"{}\"", "é".repeat(33))]);
    spoiler.values("/description", 2, &[&text(4_097)]);
    spoiler.values("/container_image", 2, &[&text(513)]);
    let versions = ["\"1\"", "\"1.0\"", "\"v1.0.0\"", "\"1.0.0-01\"", "\"01.0.0\"", "\"1.0.0+\""];
    spoiler.values("/version", 2, &versions);
    spoiler.values("/version", 2, &[&format!("\"1.0.0-{}\"", "a".repeat(59))]);
    spoiler.values("/abi", 2, &NO_ARRAYS);
    spoiler.values("/abi", 2, &["[]", &many("1", 65)]);
}

fn rule_3(spoiler: &mut Spoiler) {
    for key in ["/image", "/homepage", "/repository", "/external_url"] {
        spoiler.values(key, 3, &NO_TEXTS);
        let long = format!("\"https://{}\"", "x".repeat(505));
        spoiler.values(key, 3, &["\"\"", "\"x\"", "\"https://\"", "\"HTTP://x\"", "\"ftp://x\""]);
        spoiler.values(key, 3, &["\"https://x y\"", "\"ipfs://ă\"", &long]);
    }
    spoiler.values("/author", 3, &NO_TEXTS);
    spoiler.values("/author", 3, &[&text(129)]);
    spoiler.values("/tags", 3, &NO_ARRAYS);
    spoiler.values("/tags", 3, &[&many("\"x\"", 17)]);
    for bad in ["\"\"", "1", "null", "[\"x\"]", &text(33)] {
        spoiler.within("/tags", &format!("[\"a\",{bad},{bad}]"), "/1", 3);
    }
    spoiler.values("/attributes", 3, &NO_ARRAYS);
    let attribute = r#"{"trait_type":"x","value":1}"#;
    spoiler.values("/attributes", 3, &[&many(attribute, 33)]);
    for bad in NO_OBJECTS {
        spoiler.within("/attributes", &format!("[{attribute},{bad}]"), "/1", 3);
    }
    spoiler.within("/attributes", r#"[{"value":1}]"#, "/0/trait_type", 3);
    spoiler.within("/attributes", r#"[{"trait_type":"x"}]"#, "/0/value", 3);
    for bad in NO_TEXTS {
        let attribute = format!("[{{\"trait_type\":{bad},\"value\":1}}]");
        spoiler.within("/attributes", &attribute, "/0/trait_type", 3);
    }
    for bad in ["null", "true", "1.0", "1e3", "-0.5", "1E+2", "[]", "{}"] {
        let attribute = format!("[{{\"trait_type\":\"x\",\"value\":{bad}}}]");
        spoiler.within("/attributes", &attribute, "/0/value", 3);
    }
}

fn rule_4(spoiler: &mut Spoiler) {
    for index in 0..spoiler.length("/abi") {
        let entry = format!("/abi/{index}");
        spoiler.values(&entry, 4, &NO_OBJECTS);
        spoiler.missing(&entry, 4, &["type", "name", "inputs", "outputs"]);
        let place = |key: &str| format!("{entry}/{key}");
        spoiler.values(&place("type"), 4, &NO_TEXTS);
        spoiler.values(&place("type"), 4, &["\"event\"", "\"Function\"", "\"\""]);
        spoiler.values(&place("name"), 4, &NO_TEXTS);
        let names = ["\"\"", "\"1a\"", "\"a-b\"", "\"a b\"", "\"ă\"", "\"function\"", "\"uint8\""];
        spoiler.values(&place("name"), 4, &names);
        spoiler.values(&place("name"), 4, &["\"bytes32\"", "\"years\"", "\"a()\""]);
        for list in ["inputs", "outputs"] {
            spoiler.values(&place(list), 4, &NO_ARRAYS);
            let parameter = r#"{"name":"","type":"bool"}"#;
            spoiler.values(&place(list), 4, &[&many(parameter, 33), &many("1", 33)]);
        }
        if index > 0 {
            let name = spoiler.good.at("/abi/0/name").text();
            spoiler.values(&place("name"), 4, &[&name]);
        }
    }
}

/// The parameters of a document: everything below inputs and outputs that has a type.
fn parameters(good: &Draft) -> Vec<String> {
    let is_below = |pointer: &&String| {
        let list = pointer.split('/').nth(3);
        let is_item = pointer.rsplit('/').next().is_some_and(|step| step.parse::<u8>().is_ok());
        matches!(list, Some("inputs" | "outputs")) && is_item
    };
    good.pointers().iter().filter(is_below).cloned().collect()
}

fn rule_5(spoiler: &mut Spoiler) {
    for parameter in parameters(&spoiler.good) {
        let place = |key: &str| format!("{parameter}/{key}");
        spoiler.values(&parameter, 5, &NO_OBJECTS);
        spoiler.missing(&parameter, 5, &["name", "type"]);
        spoiler.values(&place("name"), 5, &NO_TEXTS);
        spoiler.values(&place("name"), 5, &["\"1\"", "\"a-b\"", "\" \"", "\"ă\""]);
        spoiler.values(&place("type"), 5, &NO_TEXTS);
        spoiler.values(
            &place("type"),
            5,
            &["\"\"", "\"uint7\"", "\"bytes33\"", "\"Bool\"", "\"bool[0]\""],
        );
        spoiler.values(
            &place("type"),
            5,
            &["\"bool[1025]\"", "\"bool[][][][][]\"", "\"function\""],
        );
        if spoiler.has(&place("components")) {
            spoiler.missing(&parameter, 5, &["components"]);
            spoiler.values(&place("components"), 5, &NO_ARRAYS);
            spoiler.values(&place("components"), 5, &["[]"]);
            spoiler.within(&place("components"), "[1]", "/0", 5);
            // Components of what is no tuple are told where they stand.
            let draft = spoiler.good.with(&place("type"), "\"bytes\"");
            spoiler.cases.push(Case { draft, path: place("components"), rule: 5 });
        } else {
            let component = r#"[{"name":"","type":"bool"}]"#;
            spoiler.values(&place("components"), 5, &[component, "[]", "null"]);
            let draft = spoiler.good.with(&place("type"), "\"tuple[1]\"");
            spoiler.cases.push(Case { draft, path: place("components"), rule: 5 });
        }
        twin(spoiler, &parameter);
    }
}

/// The name of the parameter before, again.
fn twin(spoiler: &mut Spoiler, parameter: &str) {
    let (list, index) = parameter.rsplit_once('/').unwrap();
    let Some(before) = index.parse::<usize>().unwrap().checked_sub(1) else { return };
    let name = spoiler.good.at(&format!("{list}/{before}/name")).text();
    if name != "\"\"" {
        spoiler.values(&format!("{parameter}/name"), 5, &[&name]);
    }
}

/// Bad tools, and bad hashes.
const NO_TOOLS: [&str; 6] = ["null", "1", "\"\"", "\"now\"", "\"http_get\"", "\"agent:x@1.0.0\""];
const NO_HASHES: [&str; 4] = ["null", "1", "\"\"", "\"0x00\""];

fn rule_6(spoiler: &mut Spoiler) {
    let image = "/container_image";
    if !spoiler.has("/executor") {
        spoiler.values(image, 6, &["\"x\"", "\"alpine:latest\"", "\"https://x\"", "\"ipfs://\""]);
        spoiler.values(image, 6, &["\"ombra-blob:x\""]);
        spoiler.values("/executor", 6, &NO_OBJECTS);
        spoiler.within("/executor", "{}", "/kind", 6);
        spoiler.within("/executor", r#"{"kind":"docker"}"#, "/kind", 6);
        spoiler.within("/executor", r#"{"kind":"model"}"#, "/model", 6);
        spoiler.within("/executor", r#"{"kind":"wasm","model":1}"#, "/blobId", 6);
        return;
    }
    spoiler.values(image, 6, &["\"x\"", "\"ipfs://x\"", "\"ombra-model:\"", "\"ombra-blob:x\""]);
    spoiler.values("/executor", 6, &NO_OBJECTS);
    spoiler.missing("/executor", 6, &["kind", "tools"]);
    spoiler.values("/executor/kind", 6, &NO_TEXTS);
    spoiler.values("/executor/kind", 6, &["\"\"", "\"Model\"", "\"shell\""]);
    spoiler.values("/executor/model", 6, &NO_HASHES);
    spoiler.values("/executor/tools", 6, &NO_ARRAYS);
    spoiler.values("/executor/tools", 6, &[&many("\"math_eval\"", 17)]);
    for tool in NO_TOOLS {
        spoiler.within("/executor/tools", &format!("[\"math_eval\",{tool},1]"), "/1", 6);
    }
    if spoiler.has("/executor/basePrompt") {
        let keys = ["model", "basePrompt", "maxIterations", "maxOutputTokens"];
        spoiler.missing("/executor", 6, &keys);
        spoiler.values("/executor/basePrompt", 6, &NO_TEXTS);
        let numbers =
            ["null", "\"8\"", "0", "-1", "-0", "1.0", "1e1", "[]", "18446744073709551617"];
        for (key, above) in
            [("/executor/maxIterations", "65"), ("/executor/maxOutputTokens", "4097")]
        {
            spoiler.values(key, 6, &numbers);
            spoiler.values(key, 6, &[above]);
        }
    } else {
        spoiler.missing("/executor", 6, &["blobId", "runtime"]);
        spoiler.values("/executor/blobId", 6, &["null", "1", "\"\"", "\"a b\"", &text(129)]);
        spoiler.values("/executor/runtime", 6, &["null", "1", "\"\"", "\"wasm-2\"", "\"WASM-1\""]);
    }
}

fn rule_7(spoiler: &mut Spoiler) {
    spoiler.values("/royalty", 7, &NO_TEXTS);
    let amounts =
        ["\"\"", "\"-1\"", "\"+1\"", "\"01\"", "\"1.0\"", "\"1e3\"", "\" 1\"", "\"1000001\""];
    spoiler.values("/royalty", 7, &amounts);
    spoiler.values("/royalty", 7, &["\"18446744073709551616\"", "\"x\""]);
}

/// A key twice in each object, and half of a pair and too much nesting at each value.
fn rule_1(spoiler: &mut Spoiler) {
    for pointer in spoiler.good.pointers() {
        let mut draft = spoiler.good.clone();
        if let Draft::Object(members) = draft.at(&pointer) {
            let (key, value) = members[0].clone();
            members.push((key.clone(), value));
            spoiler.cases.push(Case { draft, path: format!("{pointer}/{key}"), rule: 1 });
        } else {
            spoiler.values(&pointer, 1, &["\"\\ud83dx\"", "\"\\ude00\""]);
            let depth = pointer.matches('/').count();
            let deep = format!("{}{}", "[".repeat(33 - depth), "]".repeat(33 - depth));
            spoiler.within(&pointer, &deep, &"/0".repeat(32 - depth), 1);
        }
    }
    spoiler.values("", 1, &NO_OBJECTS);
    spoiler.values("", 1, &["", "{", "{}{}", "{\"a\":1,\"a\":2", "{\"a\":01}", "// {}\n{}"]);
}

#[test]
fn every_fault_at_every_place_is_told_at_its_place_and_by_its_rule() {
    let mut rules = [0_usize; 8];
    let mut texts = BTreeSet::new();
    let documents = good().into_iter().chain([("smallest", smallest())]);
    for (name, good) in documents {
        let mut spoiler = Spoiler { good, cases: Vec::new() };
        for spoil in [rule_1, rule_2, rule_3, rule_4, rule_5, rule_6, rule_7] {
            spoil(&mut spoiler);
        }
        for Case { draft, path, rule } in spoiler.cases {
            assert_eq!(told(&draft), (path, rule), "{name}: {}", draft.text());
            rules[usize::from(rule)] += 1;
            texts.insert(draft.text());
        }
    }
    assert!(rules[1..].iter().all(|cases| *cases >= 40), "{rules:?}");
    assert!(texts.len() >= 1_500, "{} different documents", texts.len());
}
