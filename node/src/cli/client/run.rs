//! `ombra run`: asks for an agent run and shows its life until it is settled.

mod follow;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::{Map, json};
use types::{Body, Hash};
use wallet::client::records::Run;
use wallet::{Answer, Client, Kind, Signed};

use super::options::{NodeArgs, SignerArgs};
use super::output::{indented, ombra, printable};
use super::tx::{Sender, TermsArgs};
use super::{CliError, Out, Outcome, input, until_interrupted};
use crate::clock::now_ms;
use follow::{Progress, follow};

/// The request itself is included within this time or the command fails.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
const PROMPT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A run to ask for, or to watch.
#[derive(Args, Debug)]
#[command(
    after_help = "Example: ombra run \"What is my balance?\" --tools chain_get_balance --max-fee 0.1ombra --dev 0\n         ombra run --follow RUN"
)]
pub struct RunArgs {
    /// What is asked
    #[arg(required_unless_present_any = ["prompt_file", "follow"])]
    prompt: Option<String>,
    /// File with the prompt ('-': standard input)
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    prompt_file: Option<PathBuf>,
    /// Only watch this run, ask for nothing
    #[arg(long, value_name = "RUN", conflicts_with_all = ["prompt", "prompt_file"])]
    follow: Option<Hash>,
    #[command(flatten)]
    terms: TermsArgs,
    /// Seconds to watch before giving up; the run itself goes on [default: until it is settled]
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    #[command(flatten)]
    node: NodeArgs,
    #[command(flatten)]
    signer: SignerArgs,
}

/// Carries out `ombra run`. With `--json` the settled record is the only line.
///
/// # Errors
/// [`CliError`]; a run that ends otherwise than `completed` is a failure.
pub async fn run(args: RunArgs, out: Out<'_>) -> Outcome {
    let client = args.node.client()?;
    let mut discarded = std::io::sink();
    let json = args.node.json;
    let timeout = args.timeout.map(Duration::from_secs);
    let narration: Out<'_> = if json { &mut discarded } else { &mut *out };
    let id = match args.follow {
        Some(id) => id,
        None => request(args, &client, narration).await?,
    };
    let narration: Out<'_> = if json { &mut discarded } else { &mut *out };
    let followed = watch(&client, id, timeout, narration).await;
    let goes_on = || format!("the run goes on: ombra run --follow {id}");
    let settled = followed.map_err(|error| error.noted(goes_on()))?;
    if json {
        writeln!(out, "{settled}")?;
    } else {
        print_settled(&settled, out)?;
    }
    match settled.status.as_str() {
        "completed" => Ok(()),
        status => Err(CliError::Failed(format!("the run ended as {}", printable(status)))),
    }
}

/// Shows a run until it is settled or interrupted.
async fn watch(
    client: &Client,
    id: Hash,
    timeout: Option<Duration>,
    out: Out<'_>,
) -> Result<Answer<Run>, CliError> {
    let filter = Map::from_iter([("agentRunId".to_owned(), json!(id))]);
    let mut progress = Progress::of(id);
    let followed = async {
        let events = client.subscribe(Kind::AgentRuns, filter, None).await?;
        follow(client, events, &mut progress, timeout, out).await
    };
    until_interrupted(followed)
        .await?
        .unwrap_or_else(|| Err(CliError::Failed("interrupted".into())))
}

/// Sends the request and answers the run's id.
async fn request(args: RunArgs, client: &Client, out: Out<'_>) -> Result<Hash, CliError> {
    let file = args.prompt_file.as_deref();
    let prompt = input::text_or_file(args.prompt, file, PROMPT_BYTES_MAX)?.unwrap_or_default();
    let keypair = args.signer.keypair()?;
    let sender = Sender { client: client.clone(), keypair };
    let envelope = client.envelope(&sender.keypair, now_ms()).await?;
    let max_fee = args.terms.max_fee;
    let body = args
        .terms
        .request(prompt, &sender.keypair.address(), envelope.timestamp)
        .into_body(&sender.keypair, envelope.nonce);
    let (id, conversation) = (body.agent_run_id, body.conversation_id);
    let signed = Signed::new(&sender.keypair, &envelope, &Body::AgentRequest(body));
    writeln!(out, "run          {id}")?;
    writeln!(out, "conversation {conversation}")?;
    out.flush()?;
    let included = sender.include_signed(&signed, REQUEST_TIMEOUT).await?;
    writeln!(
        out,
        "requested    escrow {}, tx {}, block {}",
        ombra(max_fee),
        included.hash,
        super::tx::block_of(&included)
    )?;
    Ok(id)
}

/// The answer and the costs.
fn print_settled(run: &Answer<Run>, out: Out<'_>) -> Outcome {
    if let Some(answer) = &run.final_answer_inline {
        writeln!(out, "\n{}\n", indented(answer))?;
    }
    if let Some(blob) = &run.final_answer_blob_id {
        writeln!(out, "answer in blob {}", printable(blob))?;
    }
    let part = |amount: Option<types::Amount>| ombra(amount.unwrap_or_default());
    writeln!(out, "escrow       {}", ombra(run.max_fee))?;
    writeln!(out, "  to miner   {} for {} tokens", part(run.miner_reward), run.total_tokens_out)?;
    writeln!(out, "  burned     {} for {} steps", part(run.network_fee), run.step_count)?;
    writeln!(out, "  back       {}", part(run.user_refund))?;
    Ok(())
}
