//! How servers are told what `inferMessages` asks: schemas, calls that must be made, texts at which an
//! answer stops.

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::super::config::{Constrain, ToolForm};
use super::script::Reply;
use super::{connected, ollama, ollama_done, ollama_lines, question, says, tool, user};
use crate::backend::{Backend, BackendError};
use crate::messages::{Constraint, Iteration, Output, ToolSpec};

async fn asked(
    server: &dyn Backend,
    tools: &[ToolSpec],
    constraint: &Constraint,
    stops: &[String],
) -> Result<Output, BackendError> {
    let messages = [user("hello")];
    let iteration = Iteration { tools, constraint, stops, ..question(&messages) };
    server.infer(&iteration, &CancellationToken::new()).await
}

fn of_answers(alone: bool) -> Constraint {
    let schema = json!({ "type": "object", "properties": { "answer": { "type": "string" } } });
    Constraint::Json { schema, alone }
}

#[tokio::test]
async fn a_schema_is_passed_on_where_no_tool_may_be_called() {
    let text = r#"{"answer":"yes"}"#;
    for (tools, alone, is_held) in
        [(&[][..], true, true), (&[tool()], true, true), (&[tool()], false, false)]
    {
        let replies = vec![Reply::Whole(says(text, 5, 20))];
        let (script, server) =
            connected(replies, |config| config.constrain = Constrain::JsonSchema).await;
        let output = asked(&server, tools, &of_answers(alone), &[]).await.unwrap();
        assert_eq!(text, output.text, "a member that is called answer is not taken out");
        let body = script.last();
        let schema = &body["response_format"]["json_schema"]["schema"];
        assert_eq!(is_held, schema["properties"]["answer"]["type"] == "string", "{body}");
        assert_eq!(!is_held, body.get("tools").is_some(), "{body}");
    }
}

#[tokio::test]
async fn a_call_that_must_be_made_is_asked_for_in_the_way_of_the_server() {
    let (script, server) = connected(vec![Reply::Whole(says("Hi", 5, 20))], |_| ()).await;
    asked(&server, &[tool()], &Constraint::Call, &[]).await.unwrap();
    assert_eq!("required", script.last()["tool_choice"]);

    let call = r#"{"tool_calls":[{"name":"now","arguments":{}}]}"#;
    let (script, server) = connected(vec![Reply::Whole(says(call, 5, 20))], |config| {
        (config.constrain, config.tool_form) = (Constrain::JsonSchema, ToolForm::Prompted);
    })
    .await;
    let output = asked(&server, &[tool()], &Constraint::Call, &[]).await.unwrap();
    assert_eq!("now", output.tool_calls[0].name);
    let schema = &script.last()["response_format"]["json_schema"]["schema"];
    let calls = &schema["properties"]["tool_calls"]["items"]["anyOf"];
    assert_eq!(json!(["now"]), calls[0]["properties"]["name"]["enum"]);
    assert_eq!(tool().parameters, calls[0]["properties"]["arguments"]);
}

#[tokio::test]
async fn texts_at_which_an_answer_stops_are_passed_on() {
    let stops = ["END".to_owned()];
    let (script, server) = connected(vec![Reply::Whole(says("Hi", 5, 20))], |_| ()).await;
    asked(&server, &[], &Constraint::Free, &stops).await.unwrap();
    assert_eq!(json!(["END"]), script.last()["stop"]);

    let done = ollama_done(&json!({"content": "Hi"}));
    let (script, server) = ollama(json!([]), Reply::Whole(ollama_lines(&[done]))).await;
    asked(&server, &[], &Constraint::Free, &stops).await.unwrap();
    assert_eq!(json!(["END"]), script.last()["options"]["stop"]);
}
