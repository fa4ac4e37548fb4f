//! The OpenAPI 3.1 document, made of the endpoints.

use std::collections::BTreeMap;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::endpoint::Endpoint;
use super::error::RestError;
use super::rendered::BlockEvent;
use super::{blob, call_events, streams, submit};
use crate::transport::websocket;
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
    paths.insert(websocket::PATH.to_owned(), web_socket(&mut generator));
    paths.insert(PATH.to_owned(), itself());

    let error = generator.subschema_for::<RestError>().to_value();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "ombra REST",
            "version": version,
            "description": "The REST interface for public clients. Amounts are decimal strings in \
                micro-OMBRA, and times are milliseconds since 1970.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" }
        },
        "servers": [{ "url": "/" }],
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "responses": {
                "Error": {
                    "description": "The error: 400 for a malformed request, 404 if the object does not \
                        exist, 409 and 422 if the chain rejects the transaction, 429 for the rate \
                        limit, 503 if the node is busy or catching up",
                    "content": { "application/json": { "schema": error } }
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
        "responses": responses("Success", "application/json", &answer),
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
        "default": { "$ref": "#/components/responses/Error" },
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
        "summary": "Submit a signed transaction; a repeated submission gets the same answer as the first",
        "operationId": "chain_submit",
        "requestBody": {
            "required": true,
            "content": { "application/json": { "schema": { "oneOf": [tx, parts] } } },
        },
        "responses": responses("The pool accepted the transaction", "application/json", &accepted),
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
        "summary": "Download the bytes of a finalized blob",
        "operationId": "blob",
        "parameters": [parameter],
        "responses": responses("The bytes", "application/octet-stream", &schema),
    } })
}

fn stream(description: &str) -> Value {
    let schema = json!({ "type": "string" });
    json!({ "get": {
        "summary": "Open a stream of server-sent events, with data as JSON in ASCII",
        "description": description,
        "responses": responses("The stream", "text/event-stream", &schema),
    } })
}

fn call_stream(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<CallEvent>();
    let mut stream = stream(
        "The stream sends `hello {height, call}` (`call` is a CallState), then a `call` for each event \
         of the call (schema CallEvent), and `ping {ts}` every 2 seconds. The last `call` of a block \
         has the index of the block as its id; a client that sends it as Last-Event-ID gets the \
         events since then. The stream ends when the call is settled; a client that has seen this \
         event gets 204.",
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
    "The stream sends `hello {height, latestBlockHash}`, then a `block` for each block (schema \
     BlockEvent), and `ping {ts}` every 2 seconds. The id of a `block` is its index; a client that \
     sends it as Last-Event-ID gets the blocks since then. A client that was too slow gets \
     `lagged {lagged, height}`."
        .to_owned()
}

const MEMPOOL_STREAM: &str =
    "The stream sends `hello {total}`, then `snapshot {total, ts}` every 3 seconds.";

fn web_socket(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<SocketBlock>();
    json!({ "get": {
        "summary": "Open the WebSocket",
        "description": "The client sends `{action: subscribe or unsubscribe, channel: blocks, txs, \
            mempool, agent or chat, address?, minerId?}` and `{action: ping}`. The node sends `{type: \
            subscribed or unsubscribed, channel}`, `{type: block (data is a SocketBlock), tx, mempool, \
            agent or chat, data}`, `{type: pong}`, `{type: error, error, code}`, and `{type: lagged}`. \
            The node closes the WebSocket with code 1012 or 1013.",
        "responses": {
            "101": { "description": "The WebSocket is open" },
            "default": { "$ref": "#/components/responses/Error" },
        },
    } })
}

fn itself() -> Value {
    let schema = json!({ "type": "object" });
    json!({ "get": {
        "summary": "Get this document",
        "operationId": "openapi",
        "responses": responses("The document", "application/json", &schema),
    } })
}
