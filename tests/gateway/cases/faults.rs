//! What is no request, and who may not ask: every fault has the shape of the interface, and costs nothing.

use anyhow::ensure;
use serde_json::{Value, json};
use testkit::chat::{Answer, Client, Headers, chat};

use crate::scene::Scene;

pub(crate) fn run() -> anyhow::Result<String> {
    Scene::with_key(&["--per-request", "1000", "--models", "ombra*"])?.play(|scene| {
        bodies(&scene.client)?;
        doors(&scene.client)?;
        keys(scene)?;
        ensure!(scene.runs()? == 0, "something was asked of the chain");
        Ok("each fault was told by its name, and nothing was sent".to_owned())
    })
}

/// The fault has this status and code, and the shape of the interface.
fn is(answer: &Answer, status: u16, code: &str) -> anyhow::Result<()> {
    ensure!(
        answer.fault() == (status, code.to_owned()),
        "expected {status} {code}, got {answer:?}"
    );
    let error = &answer.json()?["error"];
    let has_shape = error["message"].is_string() && error["type"].is_string();
    ensure!(has_shape && error.get("param").is_some(), "not the shape of the interface: {error}");
    Ok(())
}

fn bodies(client: &Client) -> anyhow::Result<()> {
    let with = |name: &str, value: Value| {
        let mut body = chat("say hello");
        body[name] = value;
        body.to_string()
    };
    let image = json!([{ "role": "user", "content": [{ "type": "image_url" }] }]);
    let huge = format!("{{\"model\":\"{}\"}}", "x".repeat(7 * 1024 * 1024));
    let cases = [
        ("{\"model\"".to_owned(), 400, "malformed_json"),
        ("[]".to_owned(), 400, "malformed_json"),
        (with("temprature", json!(1)), 400, "unknown_parameter"),
        (with("n", json!(2)), 400, "unsupported_parameter"),
        (with("messages", image), 400, "unsupported_parameter"),
        (with("messages", json!("hi")), 400, "invalid_value"),
        (with("model", json!("gpt-4o")), 404, "model_not_found"),
        (with("model", json!(format!("agent:{}@1", "0".repeat(64)))), 404, "model_not_found"),
        (with("max_tokens", json!(100_000_000)), 400, "invalid_value"),
        (with("max_tokens", json!(900)), 429, "insufficient_quota"),
        (huge, 413, "request_too_large"),
    ];
    for (body, status, code) in cases {
        is(&client.send(&body, &[])?, status, code)?;
    }
    let plain = client.send(&chat("say hello").to_string(), &[("content-type", "text/plain")])?;
    is(&plain, 415, "unsupported_media_type")?;
    is(&client.get("/v1/embeddings", &[])?, 404, "unknown_url")?;
    is(&client.get("/v1/chat/completions", &[])?, 404, "unknown_url")?;
    is(&client.get("/v1/models/gpt-4o", &[])?, 404, "model_not_found")
}

fn doors(client: &Client) -> anyhow::Result<()> {
    let body = chat("say hello");
    let cases: [(Headers<'_>, u16, &str); 7] = [
        (&[("authorization", "")], 401, "invalid_api_key"),
        (&[("authorization", "Bearer sk-ombra-wrong")], 401, "invalid_api_key"),
        (&[("authorization", "Basic YTpi")], 401, "invalid_api_key"),
        (&[("host", "evil.example")], 403, "forbidden"),
        (&[("origin", "https://evil.example")], 403, "forbidden"),
        (&[("origin", "null")], 403, "forbidden"),
        (&[("idempotency-key", &"x".repeat(300))], 400, "invalid_value"),
    ];
    for (headers, status, code) in cases {
        is(&client.ask(&body, headers)?, status, code)?;
    }
    Ok(())
}

fn keys(scene: &Scene) -> anyhow::Result<()> {
    let body = chat("say hello");
    let client = |key: String| Client { key, ..scene.client.clone() };
    let strict = client(scene.home.new_key("strict", &["--strict"])?);
    let mut warm = body.clone();
    warm["temperature"] = json!(1);
    is(&strict.ask(&warm, &[])?, 400, "unsupported_parameter")?;
    let narrow = client(scene.home.new_key("narrow", &["--models", "agent:*"])?);
    is(&narrow.ask(&body, &[])?, 403, "model_not_allowed")?;
    let gone = client(scene.home.new_key("gone", &[])?);
    scene.home.tell(&["key", "revoke", "gone"])?;
    is(&gone.ask(&body, &[])?, 401, "invalid_api_key")?;
    let poor = client(scene.home.new_key("poor", &["--budget", "10", "--per", "ever"])?);
    let answer = poor.ask(&body, &[])?;
    is(&answer, 429, "insufficient_quota")?;
    ensure!(
        answer.header("x-should-retry") == Some("false"),
        "a retry would be in vain: {answer:?}"
    );
    Ok(())
}
