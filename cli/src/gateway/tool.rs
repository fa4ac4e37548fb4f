//! `ombra gateway tool`: what a method of an agent would be as a tool, and the settings that make it one.

use clap::Args;
use gateway::market::Published;
use gateway::model::Model;
use gateway::settings::{BUILT_IN_TOOLS, TOOL_NAME_BYTES_MAX};
use serde_json::json;
use types::Hash;

use crate::client::options::NodeArgs;
use crate::client::output::one_line;
use crate::client::{CliError, Out, Outcome};

/// Characters of a line of an author's description; longer ones are broken, and nothing is left out.
const LINE_CHARS: usize = 100;

/// What a method of an agent would be as an MCP tool, and the settings that make it one
#[derive(Args, Debug)]
#[command(
    after_help = "Read the author's description before you add it: models read it, too. A version \
                  never changes, and neither does its description.\n\n\
                  Example: ombra gateway tool AGENT@1.0.0 judge >> gateway.toml"
)]
pub(super) struct ToolArgs {
    /// The agent and its version, see `ombra agents list`
    #[arg(value_name = "ID@VERSION", value_parser = agent)]
    agent: (Hash, String),
    /// The method's name, or its canonical signature
    method: String,
    /// The tool's name [default: that of agent and method]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    node: NodeArgs,
}

fn agent(text: &str) -> Result<(Hash, String), String> {
    match Model::parse(&format!("agent:{}", text.strip_prefix("agent:").unwrap_or(text))) {
        Ok(Model::Agent { id, version }) => Ok((id, version)),
        Ok(Model::Any | Model::Named(_)) | Err(_) => {
            Err("expected ID@VERSION, the id 64 hexadecimal digits".to_owned())
        }
    }
}

pub(super) async fn run(args: ToolArgs, out: Out<'_>) -> Outcome {
    let (id, version) = &args.agent;
    let told = args.node.client()?.agent(id, Some(version)).await?;
    let published = Published::read(*id, &told).map_err(CliError::Failed)?;
    let method = published.method(&args.method).map_err(|expected| {
        let method = one_line(&args.method, LINE_CHARS);
        CliError::Usage(format!("{method:?} is not a method of the agent: {expected}"))
    })?;
    let name = args.name.unwrap_or_else(|| named(&published, &method.name));
    let (model, signature) = (published.model(), method.signature());
    if args.node.json {
        let settings =
            json!({ "agent": model, "method": signature, "metadata": published.metadata });
        let says = published.words(method);
        writeln!(out, "{}", json!({ "name": name, "settings": settings, "description": says }))?;
        return Ok(());
    }
    writeln!(out, "# Its author's description, which models read:")?;
    for line in published.words(method).lines() {
        let line: Vec<char> = one_line(line, usize::MAX).chars().collect();
        for part in line.chunks(LINE_CHARS) {
            writeln!(out, "#   {}", String::from_iter(part))?;
        }
    }
    // JSON's texts are TOML's.
    writeln!(out, "[tools.{}]", json!(name))?;
    writeln!(out, "agent = {}\nmethod = {}", json!(model), json!(signature))?;
    writeln!(out, "metadata = \"{}\"", published.metadata)?;
    Ok(())
}

/// A name that clients take.
fn named(published: &Published, method: &str) -> String {
    let text = format!("{}_{method}", published.agent.metadata.name);
    let plain = |it: char| if it.is_ascii_alphanumeric() { it } else { '_' };
    let name: String = text.chars().map(plain).take(TOOL_NAME_BYTES_MAX).collect();
    if BUILT_IN_TOOLS.contains(&name.as_str()) { format!("agent_{name}") } else { name }
}
