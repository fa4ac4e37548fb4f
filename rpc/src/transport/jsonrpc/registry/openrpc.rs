//! The OpenRPC document, made from the registry.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::{Kind, Method, Param, Registry};
use crate::error::{ErrorData, LIMITED, NOT_FOUND, REJECTED, UNAVAILABLE};

/// The OpenRPC 1.3 document of the methods in `registry`.
#[must_use]
pub fn document(registry: &Registry, version: &str) -> Value {
    let mut settings = SchemaSettings::draft07();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();

    let methods: Vec<Value> =
        registry.methods().map(|method| method_object(method, &mut generator)).collect();
    let data = generator.subschema_for::<ErrorData>();
    let schemas = generator.take_definitions(true);
    json!({
        "openrpc": "1.3.2",
        "info": {
            "title": "ombra JSON-RPC",
            "version": version,
            "description": "Pass parameters by position or by name. By name, you can also pass the \
                members of an object parameter directly."
        },
        "methods": methods,
        "components": {
            "schemas": schemas,
            "errors": errors(&data.to_value()),
        },
    })
}

fn method_object(method: &Method, generator: &mut SchemaGenerator) -> Value {
    let Method { name, summary, kind, params, errors, result } = method;
    let params: Vec<Value> = params.iter().map(|param| param_object(param, generator)).collect();
    let errors: Vec<Value> = errors
        .iter()
        .map(|number| json!({ "$ref": format!("#/components/errors/{}", error_name(*number)) }))
        .collect();
    let mut object = json!({
        "name": name,
        "summary": summary,
        "paramStructure": "either",
        "params": params,
        "result": { "name": "result", "schema": result(generator) },
        "errors": errors,
    });
    if let (Some(note), Some(members)) = (placement(*kind), object.as_object_mut()) {
        members.insert("description".to_owned(), note.into());
    }
    object
}

const fn placement(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Plain | Kind::Submit => None,
        Kind::Wait => Some("Fails inside a batch."),
        Kind::Subscription => Some("Works only on a WebSocket, and fails inside a batch."),
    }
}

fn param_object(param: &Param, generator: &mut SchemaGenerator) -> Value {
    json!({
        "name": param.name,
        "summary": param.summary,
        "required": param.is_required,
        "schema": param.schema(generator),
    })
}

const fn error_name(number: i32) -> &'static str {
    match number {
        REJECTED => "Rejected",
        NOT_FOUND => "NotFound",
        UNAVAILABLE => "Unavailable",
        LIMITED => "Limited",
        _ => "InvalidParams",
    }
}

fn errors(data: &Value) -> Value {
    let texts = [
        (-32602, "a parameter is missing, unknown, or has the wrong type"),
        (REJECTED, "the transaction breaks the rules of the chain"),
        (NOT_FOUND, "the requested object does not exist"),
        (UNAVAILABLE, "the node is catching up or shutting down, or does not have blocks that old"),
        (LIMITED, "the request exceeds a limit on rate or size"),
    ];
    let object = |(number, message): (i32, &str)| {
        let error = json!({ "code": number, "message": message, "data": data });
        (error_name(number).to_owned(), error)
    };
    Value::Object(texts.into_iter().map(object).collect::<Map<_, _>>())
}
