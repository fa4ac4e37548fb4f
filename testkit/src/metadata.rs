//! The metadata of agents that ask a model, as their authors write it.

use serde_json::{Value, json};

/// An agent with these methods. A test replaces the other members that matter to it.
#[must_use]
pub fn of_model(name: &str, manifest: &str, methods: &[Value]) -> Value {
    json!({
        "name": name,
        "description": "Answers in few words.",
        "version": "1.0.0",
        "container_image": format!("ombra-model:{manifest}"),
        "executor": {
            "kind": "model",
            "model": manifest,
            "basePrompt": "Answer in one short sentence.",
            "tools": [],
            "maxIterations": 1,
            "maxOutputTokens": 16,
        },
        "royalty": "0",
        "abi": methods,
    })
}

/// A method with its inputs and outputs, each a name and a type.
#[must_use]
pub fn method(name: &str, inputs: &[(&str, &str)], outputs: &[(&str, &str)]) -> Value {
    let list = |parameters: &[(&str, &str)]| -> Value {
        parameters.iter().map(|(name, of_type)| json!({ "name": name, "type": of_type })).collect()
    };
    json!({ "type": "function", "name": name, "inputs": list(inputs), "outputs": list(outputs) })
}
