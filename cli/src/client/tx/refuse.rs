//! `ombra tx refuse`: the submitter of a run refuses the reward that is held, and says why.

use std::path::PathBuf;

use clap::Args;
use types::params::INLINE_TEXT_BYTES_MAX;
use types::tx::{AgentRefuse, ChatTurn};
use types::{Body, Hash};

use super::SendArgs;
use super::deliver::Delivery;
use crate::client::{CliError, Out, Outcome, input};

/// A reward to refuse.
#[derive(Args, Debug)]
pub struct RefuseArgs {
    /// The run
    run: Hash,
    /// The reason; written as a turn of the run's conversation, which costs 100 micro
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// File with the reason ('-': standard input)
    #[arg(long, value_name = "FILE", conflicts_with = "reason")]
    reason_file: Option<PathBuf>,
    #[command(flatten)]
    send: SendArgs,
}

pub(super) async fn run(args: RefuseArgs, out: Out<'_>) -> Outcome {
    let RefuseArgs { run: agent_run_id, reason, reason_file, send } = args;
    let bytes_max = u64::try_from(INLINE_TEXT_BYTES_MAX).unwrap_or(u64::MAX);
    let reason = input::text_or_file(reason, reason_file.as_deref(), bytes_max)?;
    let delivery = Delivery::open(send)?;
    let refusal = Body::AgentRefuse(AgentRefuse { agent_run_id });
    let Some(content) = reason else { return delivery.deliver(&refusal, out).await };
    if content.len() > INLINE_TEXT_BYTES_MAX {
        let bytes = content.len();
        return Err(CliError::Usage(format!(
            "--reason has {bytes} bytes, expected at most {INLINE_TEXT_BYTES_MAX}"
        )));
    }
    if !delivery.asks_node() {
        let text = "--reason: the turn belongs to the run's conversation, which only a node knows; \
                    leave out --nonce, or print the turn with `ombra tx chat --print`";
        return Err(CliError::Usage(text.into()));
    }
    let conversation_id = delivery.client().run(&agent_run_id).await?.conversation_id;
    let mut envelope = delivery.envelope().await?;
    delivery.deliver_with(&envelope, &refusal, out).await?;
    if delivery.simulates() {
        // Its nonce is the one after a transaction that was not sent.
        return Ok(());
    }
    envelope.nonce = envelope.nonce.saturating_add(1);
    let turn = Body::ChatTurn(ChatTurn {
        conversation_id,
        role: "user".into(),
        content,
        content_blob_id: None,
        parent_turn_hash: None,
        agent_run_id: Some(agent_run_id),
        attachments: None,
    });
    let said = delivery.deliver_with(&envelope, &turn, out).await;
    said.map_err(|error| {
        error.noted("the reward is refused; only the reason could not be written".into())
    })
}
