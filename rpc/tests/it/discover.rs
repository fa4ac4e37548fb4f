//! The description of the interface matches the interface.

use std::collections::BTreeSet;

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
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 50, "{}", references.len());
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap_or_else(|| panic!("{reference}"));
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    for method in document["methods"].as_array().unwrap() {
        assert!(method["summary"].as_str().is_some_and(|text| text.ends_with('.')), "{method}");
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
