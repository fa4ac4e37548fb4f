//! What `inferMessages` asks of the real model: calls that fit, JSON of a schema, texts at which an answer
//! stops, and what schemas cost that are as much work as the limits allow.

use std::time::{Duration, Instant};

use agent::backend::{Backend as _, BackendError};
use agent::messages::{Constraint, End, Iteration, Message, Output, Role, ToolSpec};
use agent::methods::Schema;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::{model, said};

/// The most time until the first token of an answer to a short question, whatever its schema.
const FIRST_TOKEN_MAX: Duration = Duration::from_secs(20);

pub(super) async fn asked(
    model: &agent::backend::Embedded,
    messages: &[Message],
    tools: &[ToolSpec],
    constraint: &Constraint,
    (stops, output_tokens_max): (&[String], u32),
) -> Result<Output, BackendError> {
    let (thinks, so_far) = (false, "");
    let iteration =
        Iteration { messages, tools, constraint, thinks, so_far, stops, output_tokens_max };
    model.infer(&iteration, &CancellationToken::new()).await
}

fn schema(schema: &Value) -> Schema {
    Schema::of("s", &schema.to_string()).unwrap_or_else(|error| panic!("{schema}: {error}"))
}

fn of(schema: &Schema) -> Constraint {
    Constraint::Json { schema: schema.form().clone(), alone: true }
}

fn weather() -> Value {
    json!({
        "$defs": { "Place": { "type": "object", "properties": {
            "city": { "type": "string", "minLength": 1, "maxLength": 40 },
            "country": { "enum": ["IT", "FR", null] } }, "required": ["city", "country"] } },
        "type": "object",
        "properties": {
            "place": { "$ref": "#/$defs/Place" },
            "days": { "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 6 },
                "minItems": 1, "maxItems": 3 },
            "unit": { "anyOf": [{ "enum": ["celsius", "fahrenheit"] }, { "type": "null" }] },
        },
        "required": ["place", "days", "unit"],
    })
}

#[tokio::test]
async fn an_answer_is_json_that_fits_its_schema() {
    let (model, schema) = (model(), schema(&weather()));
    let question = [said(Role::User, "What is the weather in Rome today and tomorrow?".into())];
    let begun = Instant::now();
    let output = asked(&model, &question, &[], &of(&schema), (&[], 128)).await.unwrap();
    println!("{:?}: {} tokens: {}", begun.elapsed(), output.output_tokens, output.text);
    assert_eq!(output.end, End::Stop);
    assert_eq!(schema.check_text(&output.text), Ok(()));
}

#[tokio::test]
async fn a_call_that_is_wanted_is_made_and_fits() {
    let (model, schema) = (model(), schema(&weather()));
    let tool = |name: &str, description: &str| ToolSpec {
        name: name.into(),
        description: description.into(),
        parameters: schema.form().clone(),
    };
    let tools =
        [tool("get-weather", "The weather of a place."), tool("play_music", "Plays a song.")];
    let question = [said(Role::User, "Tell me the weather in Rome.".into())];
    for (tools, expected) in [(&tools[..], "get-weather"), (&tools[1..], "play_music")] {
        let begun = Instant::now();
        let output = asked(&model, &question, tools, &Constraint::Call, (&[], 128)).await.unwrap();
        println!("{:?}: {output:?}", begun.elapsed());
        let [call] = &output.tool_calls[..] else { panic!("a call: {output:?}") };
        assert_eq!(call.name, expected);
        assert_eq!(schema.check(&call.arguments), Ok(()));
    }
}

#[tokio::test]
async fn an_answer_stops_at_the_texts_that_are_told() {
    let model = model();
    let question = [said(Role::User, "Tell me a story about three cats.".into())];
    let stops = [".".to_owned(), "!".to_owned()];
    let whole = asked(&model, &question, &[], &Constraint::Free, (&[], 64)).await.unwrap();
    let output = asked(&model, &question, &[], &Constraint::Free, (&stops, 64)).await.unwrap();
    println!("{:?}, whole {:?}", output.text, whole.text);
    assert!(whole.text.starts_with(&output.text), "{:?}", output.text);
    assert!(output.output_tokens < whole.output_tokens);
    assert_eq!(output.end, End::Stop);
    let found = stops.iter().map(|stop| output.text.matches(stop.as_str()).count());
    assert_eq!(1, found.sum::<usize>(), "{:?}", output.text);
}

/// Schemas that are as much work as the limits allow.
fn hostile() -> Vec<(&'static str, Value)> {
    let members = |count: usize, schema: &Value| -> Value {
        let all: Map<_, _> = (0..count).map(|at| (format!("p{at}"), schema.clone())).collect();
        let names: Vec<_> = all.keys().cloned().collect();
        json!({ "type": "object", "properties": all, "required": names })
    };
    let values = |count: usize, length: usize| -> Vec<String> {
        (0..count).map(|at| format!("{at:04}{}", "x".repeat(length))).collect()
    };
    let branches: Vec<_> = (0..31).map(|at| members(15, &json!({ "enum": [at, null] }))).collect();
    let mut deep = json!({ "type": "string", "minLength": 4096, "maxLength": 4096 });
    for _ in 0..14 {
        deep = json!({ "type": "array", "items": deep, "minItems": 4096, "maxItems": 4096 });
    }
    let mut choices = json!({ "type": "integer" });
    for _ in 0..6 {
        choices = json!({ "anyOf": [{ "type": "array", "items": choices },
            { "type": "object", "properties": { "a": choices } }] });
    }
    let number =
        json!({ "type": "number", "minimum": -9_999_999_999_999.123, "maximum": 123_456_789.987 });
    let integer = json!({ "type": "integer", "minimum": -9_007_199_254_740_990_i64,
        "exclusiveMaximum": 9_007_199_254_740_990_i64 });
    let object = |schema: Value| json!({ "type": "object", "properties": { "a": schema }, "required": ["a"] });
    let mut left_out = members(256, &json!({ "type": "string" }));
    left_out.as_object_mut().unwrap().remove("required");
    let open = json!({ "type": "object", "properties": { "a": {} }, "additionalProperties": {} });
    let long = json!({ "type": "string", "minLength": 1, "maxLength": 4096 });
    let arrays = json!({ "type": "array", "items": { "type": "boolean" }, "minItems": 4000,
        "maxItems": 4096 });
    vec![
        ("members of any kind", members(500, &json!({}))),
        ("members that may be left out", left_out),
        ("open objects", members(150, &open)),
        ("long strings", members(480, &long)),
        ("numbers", members(300, &number)),
        ("whole numbers", members(300, &integer)),
        ("many values", object(json!({ "enum": values(1_000, 20) }))),
        ("long values", object(json!({ "enum": values(110, 250) }))),
        ("branches", object(json!({ "anyOf": branches }))),
        ("deep arrays", object(deep)),
        ("branches in branches", object(choices)),
        ("many long arrays", members(240, &arrays)),
    ]
}

#[tokio::test]
async fn a_schema_within_the_limits_costs_a_bounded_time() {
    let model = model();
    let question = [said(Role::User, "Go on.".into())];
    drop(asked(&model, &question, &[], &Constraint::Free, (&[], 1)).await.unwrap());
    let mut faults = Vec::new();
    for (name, hostile) in hostile() {
        let read = Instant::now();
        let schema = schema(&hostile);
        let read = read.elapsed();
        let checked = Instant::now();
        drop(schema.check(&Map::new()));
        let checked = checked.elapsed();
        let mut times = Vec::new();
        for tokens in [1, 24] {
            let begun = Instant::now();
            let output = asked(&model, &question, &[], &of(&schema), (&[], tokens)).await;
            times.push(begun.elapsed());
            match output {
                Ok(output) => assert!(output.output_tokens <= tokens, "{name}"),
                Err(error) => faults.push(format!("{name}: {error}")),
            }
        }
        println!("{name}: read {read:?}, checked {checked:?}, 1 and 24 tokens {times:?}");
        assert!(times[0] < FIRST_TOKEN_MAX, "{name}: {times:?}");
    }
    assert_eq!(faults, [""; 0]);
}
