//! The node's answer: as it was sent, or as text for people.

use serde_json::Value;
use wallet::Answer;

use crate::client::options::NodeArgs;
use crate::client::{CliError, Out, Outcome};

/// What the node wrote.
pub(super) fn text<T>(answer: &Answer<T>) -> String {
    answer.text().to_owned()
}

/// The node's own text, or what `human` makes of it.
pub(super) fn show(
    node: &NodeArgs,
    text: &str,
    out: Out<'_>,
    human: fn(&Value) -> String,
) -> Outcome {
    if node.json {
        writeln!(out, "{text}")?;
        return Ok(());
    }
    let value = serde_json::from_str(text)
        .map_err(|error| CliError::Failed(format!("the node's answer cannot be read: {error}")))?;
    writeln!(out, "{}", human(&value))?;
    Ok(())
}
