//! `ombra agents`: agents of the market, and what their authors do (docs/market.md).

pub mod trial;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use types::agent::{
    Document, METADATA_BYTES_MAX, Metadata, MetadataFault, Pending, REGISTER_FEE,
    REGISTER_FEE_PER_BYTE, ROYALTY_MAX,
};
use types::ids::compute_agent_id;
use types::{Address, Amount, Hash};

use super::input::{address, read_bytes};
use super::output::{facts, indented, ombra, table};
use super::{CliError, Out, Outcome, query, tx};
use trial::FILE_BYTES_MAX;

/// Find, check and publish agents
#[derive(Debug, Subcommand)]
pub enum AgentsCommand {
    /// Check an agent's metadata offline, and show what the chain would make of it
    #[command(after_help = "Example: ombra agents check agent.json --owner dev:0\n\n\
                      docs/market.md describes the file. If it breaks several rules, the command \
                      reports the first one and ends with code 2.")]
    Check(CheckArgs),
    /// Execute an agent on this machine before it is published, without asking a node
    #[command(
        name = "try",
        after_help = "Examples:\n  \
                      ombra agents try agent.json classify \"Works great.\" --program \
                      agent.wasm\n  \
                      ombra agents try agent.json count '[\"good\"]' --program agent.wasm \
                      \\\n      \
                      --with tool.json --blob BLOB=tool.wasm\n  \
                      ombra agents try container.json select '{\"a\":1}' a\n\n\
                      It shows the answer, what the execution used and what a member would be \
                      paid. Nothing is published: the id of the program's blob need not exist. \
                      Exit codes: 0 the agent answers, 1 it does not (failure, unable), 2 an \
                      option or a file is wrong."
    )]
    Try(Box<trial::TryArgs>),
    /// List agents
    #[command(after_help = "Example: ombra agents list --tag text --text review")]
    List(query::agents::ListArgs),
    /// Show an agent with one of its versions and its methods
    #[command(after_help = "Example: ombra agents show AGENT --version 1.0.0")]
    Show(query::agents::ShowArgs),
    /// Publish an agent, or a new version of one, from fork v8 on
    #[command(after_help = "Example: ombra agents register agent.json --dev 0\n\n\
                      The file is checked first, as `ombra agents check` does. Registering burns the \
                      parameter agentRegisterFee, and agentRegisterFeePerByte for each byte.")]
    Register(Box<tx::AgentRegisterArgs>),
    /// Retire an agent: it takes no more calls until you register a higher version
    #[command(after_help = "Example: ombra agents retire AGENT --dev 0")]
    Retire(Box<tx::AgentRetireArgs>),
}

/// Check the metadata of an agent
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The file with the metadata; `-` is standard input
    file: PathBuf,
    /// The future owner, which determines the agent's id: an address, or dev:N
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    owner: Option<Address>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Carries out the command.
///
/// # Errors
/// [`CliError`]; [`CliError::Usage`] if the metadata breaks a rule.
pub async fn run(command: AgentsCommand, out: Out<'_>) -> Outcome {
    match command {
        AgentsCommand::Check(args) => check(&args, out),
        AgentsCommand::Try(args) => trial::run(&args, out).await,
        AgentsCommand::List(args) => query::agents::list(args, out).await,
        AgentsCommand::Show(args) => query::agents::one(args, out).await,
        AgentsCommand::Register(args) => tx::agent::register(*args, out).await,
        AgentsCommand::Retire(args) => tx::agent::retire(*args, out).await,
    }
}

/// Metadata that keeps the rules, and what is told of it.
struct Good {
    metadata: Metadata,
    pending: Vec<Pending>,
    agent_id: Option<Hash>,
    hash: Hash,
    bytes: usize,
}

impl Good {
    /// What registering burns by the default parameters, the transaction's place in a block not
    /// counted.
    fn fee(&self) -> Amount {
        let bytes = u64::try_from(self.bytes).unwrap_or(u64::MAX);
        let by_size = REGISTER_FEE_PER_BYTE.checked_mul(bytes);
        by_size.and_then(|fee| fee.checked_add(REGISTER_FEE)).unwrap_or(Amount::MAX)
    }
}

fn check(args: &CheckArgs, out: Out<'_>) -> Outcome {
    let CheckArgs { file, owner, json: is_json } = args;
    let text = read_bytes(file, FILE_BYTES_MAX)?;
    match read(&text, owner.as_ref()) {
        Ok(good) if *is_json => writeln!(out, "{}", as_json(&good))?,
        Ok(good) => {
            writeln!(out, "{} is in order", file.display())?;
            tell(&good, out)?;
        }
        Err(fault) => {
            if *is_json {
                let MetadataFault { path, rule, expected, found } = &fault;
                let told = json!({
                    "ok": false, "path": path, "rule": rule, "expected": expected, "found": found,
                });
                writeln!(out, "{told}")?;
            }
            return Err(CliError::Usage(format!("{}: {fault}", file.display())));
        }
    }
    Ok(())
}

fn read(text: &[u8], owner: Option<&Address>) -> Result<Good, MetadataFault> {
    let document = Document::read(text)?;
    let checked = document.check(ROYALTY_MAX);
    let metadata = checked.outcome?;
    let agent_id = owner.map(|owner| compute_agent_id(owner, &metadata.name));
    let (hash, bytes) = (Hash::digest(text), text.len());
    Ok(Good { metadata, pending: checked.pending, agent_id, hash, bytes })
}

fn as_json(good: &Good) -> Value {
    let Good { metadata, pending, agent_id, hash, bytes } = good;
    let Metadata { name, version, executor, tools, methods, royalty } = metadata;
    let methods: Vec<_> = methods
        .iter()
        .map(|method| {
            json!({
                "name": method.name,
                "signature": method.signature(),
                "outputs": method.answers(),
                "selector": method.selector().to_string(),
            })
        })
        .collect();
    let pending: Vec<_> = pending
        .iter()
        .map(|it| json!({ "path": it.path, "rule": it.rule, "needs": it.question.to_string() }))
        .collect();
    json!({
        "ok": true,
        "name": name,
        "version": version.as_str(),
        "agentId": agent_id,
        "executor": executor.to_string(),
        "deterministic": metadata.is_deterministic(),
        "tools": tools.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "royalty": royalty,
        "methods": methods,
        "bytes": bytes,
        "metadataHash": hash,
        "registerFee": good.fee(),
        "pending": pending,
    })
}

fn tell(good: &Good, out: Out<'_>) -> Outcome {
    let Good { metadata, pending, agent_id, hash, bytes } = good;
    let Metadata { name, version, executor, tools, methods, royalty } = metadata;
    let deterministic = if metadata.is_deterministic() { "yes" } else { "no" };
    let tools: Vec<_> = tools.iter().map(ToString::to_string).collect();
    let mut rows = facts([("name", indented(name)), ("version", version.to_string())]);
    if let Some(id) = agent_id {
        rows.add_row(["agent", &id.to_string()]);
    }
    rows.add_row(["executor", &executor.to_string()]);
    rows.add_row(["deterministic", deterministic]);
    if !tools.is_empty() {
        rows.add_row(["tools", &tools.join(", ")]);
    }
    rows.add_row(["royalty", &format!("{} for each successful call", ombra(*royalty))]);
    rows.add_row(["size", &format!("{bytes} of at most {METADATA_BYTES_MAX} bytes, hash {hash}")]);
    let fee = ombra(good.fee());
    rows.add_row(["registering", &format!("burns {fee}, in addition to the inclusion fee")]);
    writeln!(out, "{rows}\n")?;
    let mut rows = table(["SELECTOR", "METHOD", "OUTPUTS"]);
    for method in methods {
        rows.add_row([method.selector().to_string(), method.signature(), method.answers()]);
    }
    writeln!(out, "{rows}\n\nwhen you register it, the chain also checks:")?;
    for Pending { path, rule, question } in pending {
        writeln!(out, "  {path}: {question} (rule {rule})")?;
    }
    Ok(())
}
