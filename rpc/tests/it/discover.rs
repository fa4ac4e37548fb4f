//! The description of the interface matches the interface.

use std::collections::{BTreeMap, BTreeSet};

use rpc::registry::Registry;
use serde_json::{Value, json};

use crate::client::TestServer;

#[tokio::test]
async fn every_described_method_is_served_and_no_other() {
    let server = TestServer::start().await;
    let document = server.result("rpc.discover", json!([])).await;
    let methods = document["methods"].as_array().unwrap();
    let described: BTreeSet<&str> =
        methods.iter().map(|method| method["name"].as_str().unwrap()).collect();
    let registered: BTreeSet<&str> = Registry::public().methods().map(|m| m.name).collect();
    assert_eq!(registered, described);
    for name in &described {
        let response = server.call(name, json!([])).await;
        assert_ne!(response["error"]["code"], -32601, "{name} is not served");
    }
}

#[tokio::test]
async fn the_document_is_closed_under_its_references() {
    let server = TestServer::start().await;
    let document = server.result("rpc.discover", json!([])).await;
    assert_eq!(document["openrpc"], "1.3.2");
    assert_closed(&document, 50);
    for method in document["methods"].as_array().unwrap() {
        assert!(method["summary"].as_str().is_some_and(|text| text.ends_with('.')), "{method}");
    }
}

/// Whoever changes the interface sees the change in this file, and so does whoever reviews it.
#[test]
fn the_openrpc_document_in_the_repository_is_the_one_that_is_served() {
    let served = rpc::registry::document(&Registry::public(), env!("CARGO_PKG_VERSION"));
    assert_kept("openrpc", &served);
}

#[test]
fn the_openapi_document_in_the_repository_is_the_one_that_is_served() {
    assert_kept("openapi", &rpc::openapi_document(env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_declarations_in_the_repository_are_those_of_the_program() {
    let declared = rpc::wire::kinds_document();
    assert_kept("kinds", &declared);
    assert_kept_in("examples/python/agent_methods/kinds.json", &declared);
    let head = "// The kinds of transactions and their fields, as the node declares them: made by\n\
                // OMBRA_RENEW=1 ./run test in_the_repository\n\n\
                export const DECLARATIONS = ";
    // A line for each kind, and no prose: the page for people carries this file.
    let bare = without_docs(&declared);
    let lines: Vec<String> =
        bare["kinds"].as_array().unwrap().iter().map(|kind| sorted(kind).to_string()).collect();
    assert_eq!(2, bare.as_object().unwrap().len(), "everyKind and kinds are all there is");
    let (every, lines) = (sorted(&bare["everyKind"]), lines.join(",\n"));
    let text = format!("{head}{{\"everyKind\": {every}, \"kinds\": [\n{lines}\n]}};\n");
    assert_text_kept_in("examples/js/kinds.js", &text);
}

/// The same without what only people and authors of nodes read.
fn without_docs(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| !matches!(name.as_str(), "doc" | "section" | "fork" | "unit"))
            .map(|(name, value)| (name.clone(), without_docs(value)))
            .collect(),
        Value::Array(items) => items.iter().map(without_docs).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[tokio::test]
async fn the_openapi_document_is_served_and_closed_under_its_references() {
    let server = TestServer::start().await;
    let document: Value = serde_json::from_str(&server.get("/api/openapi.json").await.1).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    assert_closed(&document, 50);
    for (path, item) in document["paths"].as_object().unwrap() {
        let named = path.matches('{').count();
        let operation = item.get("get").unwrap_or_else(|| &item["post"]);
        let params = operation["parameters"]
            .as_array()
            .map_or(0, |all| all.iter().filter(|param| param["in"] == "path").count());
        assert_eq!(named, params, "{path}");
    }
}

/// The copy in the repository is what is served.
fn assert_kept(name: &str, served: &Value) {
    assert_kept_in(&format!("docs/{name}.json"), served);
}

fn assert_kept_in(file: &str, served: &Value) {
    let text = serde_json::to_string_pretty(&sorted(served)).unwrap();
    assert_text_kept_in(file, &(text + "\n"));
}

fn assert_text_kept_in(file: &str, made: &str) {
    let path = format!("{}/../{file}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("OMBRA_RENEW").is_some() {
        std::fs::write(&path, made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    let differs = kept.lines().zip(made.lines()).find(|(old, new)| old != new);
    let is_old = format!("{file} is old: OMBRA_RENEW=1 ./run test in_the_repository");
    assert_eq!(None, differs, "{is_old}");
    assert_eq!(kept.len(), made.len(), "{is_old}");
}

/// The same with the members of objects in order of names, whatever order a map keeps.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<&String, &Value> = members.iter().collect();
            members.into_iter().map(|(name, value)| (name.clone(), sorted(value))).collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Every reference leads somewhere; there are more than `least`.
fn assert_closed(document: &Value, least: usize) {
    let mut references = Vec::new();
    collect(document, &mut references);
    assert!(references.len() > least, "{}", references.len());
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap_or_else(|| panic!("{reference}"));
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
}

fn collect<'a>(value: &'a Value, references: &mut Vec<&'a str>) {
    match value {
        Value::Object(members) => {
            references.extend(members.get("$ref").and_then(Value::as_str));
            members.values().for_each(|value| collect(value, references));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, references)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
