//! `ombra agents register` and `ombra agents retire`.

use std::path::PathBuf;

use clap::Args;
use types::agent::{Document, Metadata, ROYALTY_MAX};
use types::ids::compute_agent_id;
use types::tx::{AgentRegister, AgentRetire};
use types::{Body, Hash};

use super::SendArgs;
use super::deliver::Delivery;
use crate::client::input::read_text;
use crate::client::{CliError, Out, Outcome};

/// More is not read of a file: enough to say that it is too large.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The metadata of an agent to publish.
#[derive(Args, Debug)]
pub struct AgentRegisterArgs {
    /// The file with the metadata; `-` is standard input
    file: PathBuf,
    #[command(flatten)]
    send: SendArgs,
}

/// The agent to retire.
#[derive(Args, Debug)]
pub struct AgentRetireArgs {
    /// The agent's id
    agent: Hash,
    #[command(flatten)]
    send: SendArgs,
}

pub(in crate::client) async fn register(args: AgentRegisterArgs, out: Out<'_>) -> Outcome {
    let AgentRegisterArgs { file, send } = args;
    let metadata = read_text(&file, FILE_BYTES_MAX)?;
    let read = Document::read(metadata.as_bytes());
    let checked = read.and_then(|document| document.check(ROYALTY_MAX).outcome);
    let Metadata { name, .. } =
        checked.map_err(|fault| CliError::Usage(format!("{}: {fault}", file.display())))?;
    let delivery = Delivery::open(send)?;
    let agent_id = compute_agent_id(&delivery.sender.keypair().address(), &name);
    delivery.deliver(&Body::AgentRegister(AgentRegister { agent_id, metadata }), out).await
}

pub(in crate::client) async fn retire(args: AgentRetireArgs, out: Out<'_>) -> Outcome {
    let AgentRetireArgs { agent: agent_id, send } = args;
    Delivery::open(send)?.deliver(&Body::AgentRetire(AgentRetire { agent_id }), out).await
}
