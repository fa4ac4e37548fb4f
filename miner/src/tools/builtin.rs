//! The tools that come with the miner.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::config::Config;
use super::fetch::FetchUrl;
use super::math::MathEval;
use super::pattern::RegexMatch;
use super::tool::{Class, Failure, Limits, Terms, Tool};
use super::toolbox::Surroundings;
use super::{chain, time};
use crate::talk::ToolSpec;

/// The tool that leaves the machine.
pub(super) const FETCH_URL: &str = "fetch_url";

/// Names of the tools that come with the miner.
pub const BUILT_IN: &[&str] = &[
    "chain_get_balance",
    "chain_get_height",
    "chain_get_block",
    "chain_get_tx",
    "chain_recent_blocks",
    "chain_list_validators",
    "now",
    "date_parse",
    "date_diff",
    "math_eval",
    "regex_match",
    FETCH_URL,
];

/// The tools that clients offer with every question in free text unless they are told otherwise: pure
/// ones that a model calls only where the question has something for them. A run that names them lets
/// its miner use them and asks for no miner that has them (docs/miner.md section Tools).
pub const OFFERED_BY_DEFAULT: &[&str] = &["date_diff", "date_parse", "math_eval"];

/// The built-in tools that the operator allows.
pub(super) fn tools(config: &Config, around: &Surroundings) -> Vec<Arc<dyn Tool>> {
    let mut all = chain::tools(&around.node);
    all.extend(time::tools(&around.clock));
    all.push(Arc::new(MathEval::new()));
    all.push(Arc::new(RegexMatch::new()));
    let limits = config.limits_of(FETCH_URL, Limits::DEFAULT);
    all.push(Arc::new(FetchUrl::new(&config.fetch, &around.names, limits)));
    all.retain(|tool| config.allow.contains(&tool.spec().name));
    all
}

/// The terms of a built-in tool of this class: all are idempotent.
pub(super) const fn terms(class: Class) -> Terms {
    Terms { class, is_idempotent: true, limits: Limits::DEFAULT }
}

/// The description of a tool. `properties` is the JSON object of its arguments' schemas; those in
/// `required` must be given, and no others may.
pub(super) fn spec(
    name: &str,
    description: &str,
    properties: &Value,
    required: &[&str],
) -> ToolSpec {
    let parameters = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    ToolSpec { name: name.to_owned(), description: description.to_owned(), parameters }
}

/// A text argument; empty if it is not given, which the schema allows only where it may be.
pub(super) fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Runs what takes the processor for a while on a thread where it holds up nobody.
pub(super) async fn computed(
    work: impl FnOnce() -> Result<String, Failure> + Send + 'static,
) -> Result<String, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(answer) => answer,
        Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
        Err(_) => Err(Failure::new(super::Code::Cancelled, "the miner stops")),
    }
}
