//! The OpenAPI 3.1 document, made of the endpoints.

use std::collections::BTreeMap;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::endpoint::Endpoint;
use super::refusal::Refusal;
use super::rendered::BlockEvent;
use super::{blob, call_events, socket, streams, submit};
use crate::wire::{
    Accepted, CallEvent, HashText, SignatureText, SocketBlock, TxObject, UnsignedTx,
};

/// Where the document is.
pub(super) const PATH: &str = "/api/openapi.json";

/// The document of `endpoints` and of those that do more than read.
pub(super) fn document(endpoints: &[Endpoint], version: &str) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();

    let mut paths = Map::new();
    for endpoint in endpoints {
        paths.insert(
            endpoint.path.to_owned(),
            json!({ "get": operation(endpoint, &mut generator) }),
        );
    }
    paths.insert(submit::PATH.to_owned(), submission(&mut generator));
    paths.insert(blob::PATH.to_owned(), bytes());
    paths.insert(streams::CHAIN.to_owned(), stream(&block_stream(&mut generator)));
    paths.insert(streams::MEMPOOL.to_owned(), stream(MEMPOOL_STREAM));
    paths.insert(call_events::PATH.to_owned(), call_stream(&mut generator));
    paths.insert(socket::PATH.to_owned(), web_socket(&mut generator));
    paths.insert(PATH.to_owned(), itself());

    let refusal = generator.subschema_for::<Refusal>().to_value();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "ombra REST",
            "version": version,
            "description": "For the public clients of Ombra chains. Amounts are decimal strings of \
                micro-OMBRA, times milliseconds since 1970.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" }
        },
        "servers": [{ "url": "/" }],
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "responses": {
                "Refusal": {
                    "description": "Why the request is not answered: 400 for malformed parameters, 404 \
                        for what is not there, 409 and 422 for what the chain refuses, 429 for the rate \
                        limit, 503 for a node that is busy or catching up",
                    "content": { "application/json": { "schema": refusal } }
                }
            },
        },
    })
}

fn operation(endpoint: &Endpoint, generator: &mut SchemaGenerator) -> Value {
    let path = (endpoint.path_params)(generator).to_value();
    let query = (endpoint.query_params)(generator).to_value();
    let mut parameters = params(&path, "path");
    parameters.extend(params(&query, "query"));
    let answer = (endpoint.answer)(generator).to_value();
    json!({
        "summary": endpoint.summary,
        "operationId": operation_id(endpoint.path),
        "parameters": parameters,
        "responses": responses("The answer", "application/json", &answer),
    })
}

/// `/api/chain/block/{index}` as `chain_block_index`.
fn operation_id(path: &str) -> String {
    let words = path.split(['/', '{', '}', '-', '.']).filter(|word| !word.is_empty());
    words.skip(1).collect::<Vec<_>>().join("_")
}

/// The parameters that an object has as members, in the order of their names: that of the members depends
/// on what else was compiled into the program.
fn params(object: &Value, place: &str) -> Vec<Value> {
    let members = object.get("properties").and_then(Value::as_object);
    let members: BTreeMap<&String, &Value> = members.into_iter().flatten().collect();
    let param = |(name, schema): (&String, &Value)| {
        let mut schema = without_null(schema.clone());
        let description = schema.as_object_mut().and_then(|members| members.remove("description"));
        json!({
            "name": name,
            "in": place,
            "required": place == "path",
            "description": description,
            "schema": schema,
        })
    };
    members.into_iter().map(param).collect()
}

/// A parameter is left out rather than null.
fn without_null(mut schema: Value) -> Value {
    let Some(members) = schema.as_object_mut() else { return schema };
    members.remove("default");
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            members.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(any)) = members.get_mut("anyOf") {
        any.retain(|one| one.get("type") != Some(&json!("null")));
    }
    schema
}

fn responses(description: &str, kind: &str, schema: &Value) -> Value {
    json!({
        "200": { "description": description, "content": { kind: { "schema": schema } } },
        "default": { "$ref": "#/components/responses/Refusal" },
    })
}

fn submission(generator: &mut SchemaGenerator) -> Value {
    let tx = generator.subschema_for::<TxObject>().to_value();
    let unsigned = generator.subschema_for::<UnsignedTx>().to_value();
    let accepted = generator.subschema_for::<Accepted>().to_value();
    let signature = generator.subschema_for::<SignatureText>().to_value();
    let parts = json!({
        "type": "object",
        "required": ["tx", "signature"],
        "properties": { "tx": unsigned, "signature": signature },
    });
    json!({ "post": {
        "summary": "Takes a signed transaction; one that is known already is answered as the first time",
        "operationId": "chain_submit",
        "requestBody": {
            "required": true,
            "content": { "application/json": { "schema": { "oneOf": [tx, parts] } } },
        },
        "responses": responses("It was taken", "application/json", &accepted),
    } })
}

fn bytes() -> Value {
    let parameter = json!({
        "name": "blobId",
        "in": "path",
        "required": true,
        "schema": { "type": "string" },
    });
    let schema = json!({ "type": "string", "format": "binary" });
    json!({ "get": {
        "summary": "The bytes of a finalised blob, as a file to be kept",
        "operationId": "blob",
        "parameters": [parameter],
        "responses": responses("The bytes", "application/octet-stream", &schema),
    } })
}

fn stream(description: &str) -> Value {
    let schema = json!({ "type": "string" });
    json!({ "get": {
        "summary": "A stream of server-sent events; data is JSON in ASCII",
        "description": description,
        "responses": responses("The stream", "text/event-stream", &schema),
    } })
}

fn call_stream(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<CallEvent>();
    let mut stream = stream(
        "`hello {height, call}` (a CallState), then `call` (schema CallEvent; the last one of a block has \
         its index as id, and a client that sends it as Last-Event-ID gets what came since) and \
         `ping {ts}` every 2 s, until the call is settled; 204 for a client that has seen that",
    );
    let id = generator.subschema_for::<HashText>().to_value();
    let parameter = json!({ "name": "id", "in": "path", "required": true, "schema": id });
    if let Some(get) = stream.get_mut("get").and_then(Value::as_object_mut) {
        get.insert("parameters".to_owned(), json!([parameter]));
        get.insert("operationId".to_owned(), "calls_id_events".into());
    }
    stream
}

fn block_stream(generator: &mut SchemaGenerator) -> String {
    generator.subschema_for::<BlockEvent<'_>>();
    "`hello {height, latestBlockHash}`, then `block` (schema BlockEvent; its id is the index, and a \
     client that sends it as Last-Event-ID gets what came since), `ping {ts}` every 2 s, and \
     `lagged {lagged, height}` for a client that was too slow"
        .to_owned()
}

const MEMPOOL_STREAM: &str = "`hello {total}`, then `snapshot {total, ts}` every 3 s";

fn web_socket(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<SocketBlock>();
    json!({ "get": {
        "summary": "Opens the WebSocket",
        "description": "The client sends `{action: subscribe or unsubscribe, channel: blocks, txs, \
            mempool, agent or chat, address?, minerId?}` and `{action: ping}`. It gets `{type: \
            subscribed or unsubscribed, channel}`, `{type: block (data is a SocketBlock), tx, mempool, \
            agent or chat, data}`, `{type: pong}`, `{type: error, error, code}`, and `{type: lagged}`. \
            The node closes with 1012 or 1013.",
        "responses": {
            "101": { "description": "The WebSocket is open" },
            "default": { "$ref": "#/components/responses/Refusal" },
        },
    } })
}

fn itself() -> Value {
    let schema = json!({ "type": "object" });
    json!({ "get": {
        "summary": "This document",
        "operationId": "openapi",
        "responses": responses("The document", "application/json", &schema),
    } })
}
