//! Runs of a published agent: `ombra run --agent`.

use clap::Args;
use wallet::Client;
use wallet::client::records::Run;

use super::request::Question;
use super::texts::Texts;
use crate::client::CliError;
use crate::client::call::agent::Agent;
use crate::client::call::{arguments, show};
use crate::client::tx::TermsArgs;

/// More than any payload in hex: 16,384 bytes.
const PAYLOAD_TEXT_BYTES_MAX: usize = 64 * 1024;

/// The agent of a run.
#[derive(Args, Debug, Default)]
pub struct AgentArgs {
    /// Ask a published agent, with its prompt and its tools: its id, or its name if no other agent
    /// has that name; append @VERSION to choose a version
    #[arg(long, value_name = "AGENT[@VERSION]", conflicts_with_all = ["follow", "resume"],
        help_heading = HEADING)]
    agent: Option<String>,
    /// Have the miner execute this method of the agent; PROMPT… are its arguments, written as for
    /// ombra call
    #[arg(long, value_name = "METHOD", requires = "agent",
        conflicts_with_all = ["method", "prompt_file", "tools"], help_heading = HEADING)]
    pub(super) call: Option<String>,
}

const HEADING: &str = "Agents of the market (docs/market.md)";

impl AgentArgs {
    /// The terms with the agent, and the question if a method of it is asked for.
    ///
    /// # Errors
    /// When there is no such agent or method, or the arguments are not those of the method.
    pub(super) async fn apply(
        &self,
        client: &Client,
        terms: TermsArgs,
        given: &[String],
    ) -> Result<(TermsArgs, Option<Question>), CliError> {
        let Some(named) = &self.agent else { return Ok((terms, None)) };
        let agent = Agent::find_active(client, named).await?;
        let question = match &self.call {
            None => None,
            Some(method) => {
                let payload = arguments::payload(agent.method(method)?, given)?;
                Some(Question::Text(const_hex::encode_prefixed(payload)))
            }
        };
        Ok((TermsArgs { agent: Some((agent.id, agent.version)), ..terms }, question))
    }
}

/// The answer of a run for which a method of an agent was executed, as its outputs; none for any other
/// run, and where the agent cannot be had.
pub(super) async fn outputs(
    run: &Run,
    text: &str,
    client: &Client,
    texts: &Texts,
) -> Option<String> {
    let (id, version) = (run.agent_id?, run.agent_version.as_deref()?);
    if run.status != "completed" {
        return None;
    }
    let whole = match &run.prompt_blob_id {
        Some(blob) => texts.read(blob, PAYLOAD_TEXT_BYTES_MAX).await.ok()?,
        None => run.prompt.clone(),
    };
    let payload = const_hex::decode(whole.trim().strip_prefix("0x")?).ok()?;
    let agent = Agent::of(client, id, Some(version)).await.ok()?;
    let method = agent.method_of(&payload)?;
    Some(show::result(&text.into(), Some(method)))
}
