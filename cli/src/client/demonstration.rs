//! One agent run, asked for and watched, with what the miner beside it wrote down.

use std::sync::Arc;
use std::time::Duration;

use miner::engine::receipt::{ReceiptStep, receipt};
use miner::journal::Journal;
use node::clock::now_ms;
use serde_json::Value;
use tokio::time::Instant;
use types::tx::Protection;
use types::{Address, Amount, Body, Hash, Keypair, ids};
use wallet::client::records::Step;
use wallet::sign::Request;
use wallet::{Answer, Client, Signed};

use super::output::{indented, ombra, one_line};
use super::run::{Details, Display, End, Thoughts, follow};
use super::tx::{Sender, block_of};
use super::{CliError, Out, Outcome, Signer};

/// The request is included within this time, and the run settled within the other, or the
/// demonstration fails.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const RUN_TIMEOUT: Duration = Duration::from_secs(600);
/// The escrow: one hundredth of an OMBRA.
const MAX_FEE: Amount = Amount::new(10_000);
const MAX_STEPS: u64 = 6;
/// Results of tools are shown up to this length; the hash on the chain is that of the whole.
const SHOWN_CHARS_MAX: usize = 400;

/// Who takes part, on which node.
pub(crate) struct Parties<'a> {
    pub(crate) client: Client,
    pub(crate) requester: Keypair,
    pub(crate) miner: Address,
    /// What the miner wrote down: the texts whose hashes are on the chain.
    pub(crate) journal: &'a Arc<Journal>,
}

/// Asks for a run, shows its life, compares the texts with the hashes on the chain, and answers the
/// settled record.
///
/// # Errors
/// When the node is not reachable, refuses the request, the run does not end in time or otherwise
/// than `completed`, or a hash is not that of its text.
pub(crate) async fn agent_run(
    parties: &Parties<'_>,
    question: &str,
    tools: &[String],
    out: Out<'_>,
) -> Result<String, CliError> {
    let Parties { client, requester, miner, journal } = parties;
    let accounts = [requester.address(), *miner];
    writeln!(
        out,
        "\nOne agent run. The model is a real one, and small: what it says may be wrong."
    )?;
    writeln!(out, "question     {}", indented(question))?;
    writeln!(out, "tools        {}", tools.join(", "))?;
    let before = balances(client, accounts).await?;
    let id = request(parties, question, tools, out).await?;
    let told = Arc::clone(journal);
    let details = move |step: &Step| {
        // Not the receipt, which has a step only once the miner too has seen it in a block: it was
        // written down before it was sent.
        let record = told.step(&id, step.step_index).ok().flatten();
        record.map(|record| lines(&record.into())).unwrap_or_default()
    };
    let mut display = Display::of(client, id, Thoughts::Named)?.with(Details::of(details));
    let deadline = Instant::now() + RUN_TIMEOUT;
    let settled = follow(client, id, &mut display, Some(deadline), out).await?;
    let end = End::of(client, settled, Amount::ZERO).await?;
    end.print(out)?;
    check(parties, id, out).await?;
    let after = balances(client, accounts).await?;
    for ((name, address), (before, after)) in
        ["requester", "miner"].iter().zip(accounts).zip(before.into_iter().zip(after))
    {
        let change = change(before, after);
        writeln!(out, "{name:<12} {address}  {} -> {} ({change})", before.ombra(), after.ombra())?;
    }
    out.flush()?;
    if end.run.status != "completed" {
        return Err(CliError::Failed(format!("the run ended as {}", end.run.status)));
    }
    let record: Answer<Value> = client.call("ombra_getAgentRun", [id]).await?;
    Ok(record.text().to_owned())
}

/// The escrow, and the run's id.
async fn request(
    parties: &Parties<'_>,
    question: &str,
    tools: &[String],
    out: Out<'_>,
) -> Result<Hash, CliError> {
    let Parties { client, requester, .. } = parties;
    // The node is this process.
    let sender = Sender::new(client.clone(), Signer::of_public_key(requester.clone(), None));
    let envelope = sender.envelope(now_ms()).await?;
    let creator = requester.address().to_string();
    let request = Request {
        conversation_id: ids::compute_conversation_id(&creator, None, envelope.timestamp),
        prompt: question.to_owned(),
        tools_whitelist: tools.to_vec(),
        max_fee: MAX_FEE,
        max_steps: MAX_STEPS,
        prompt_blob_id: None,
        model_hint: None,
        // The demonstration ends with the run, and a reward that is held would come later.
        protection: Protection::default(),
        agent: None,
    };
    let body = request.into_body(requester, envelope.nonce);
    let run = body.agent_run_id;
    let signed = Signed::new(requester, &envelope, &Body::AgentRequest(body));
    let included = sender.include_signed(&signed, REQUEST_TIMEOUT).await?;
    writeln!(out, "run          {run}")?;
    let (escrow, block) = (ombra(MAX_FEE), block_of(&included));
    writeln!(out, "requested    escrow {escrow}, tx {}, block {block}", included.hash)?;
    out.flush()?;
    Ok(run)
}

/// What was said and done in a step.
fn lines(step: &ReceiptStep) -> Vec<String> {
    let mut lines = Vec::new();
    for call in &step.calls {
        let arguments = Value::Object(call.arguments.clone()).to_string();
        let arguments = one_line(&arguments, SHOWN_CHARS_MAX);
        lines.push(format!("               {} {arguments}", one_line(&call.name, 80)));
        lines.push(format!("               -> {}", one_line(&call.result, SHOWN_CHARS_MAX)));
    }
    if !step.output.is_empty() {
        lines.push(format!("             says {:?}", one_line(&step.output, SHOWN_CHARS_MAX)));
    }
    lines
}

/// Hashes every text again and compares with the chain.
async fn check(parties: &Parties<'_>, run: Hash, out: Out<'_>) -> Outcome {
    use miner::chain::Runs as _;
    let node = miner::chain::client::Node::new(parties.client.clone())
        .map_err(|error| CliError::Failed(error.to_string()))?;
    let steps = node.steps(&run).await.map_err(|error| CliError::Failed(error.to_string()))?;
    let receipt = receipt(parties.journal, &run);
    let receipt = receipt.map_err(|error| CliError::Failed(error.to_string()))?;
    let receipt = receipt
        .ok_or_else(|| CliError::Failed("another miner has worked on the run".to_owned()))?;
    if let Some(difference) = receipt.differences(&steps).first() {
        return Err(CliError::Failed(difference.to_string()));
    }
    let count = steps.len();
    writeln!(out, "checked      the hashes of {count} steps on the chain match these texts")?;
    Ok(())
}

async fn balances(client: &Client, accounts: [Address; 2]) -> Result<[Amount; 2], CliError> {
    let [first, second] = accounts;
    Ok([client.account(&first).await?.balance, client.account(&second).await?.balance])
}

/// `+0.000051 OMBRA`.
fn change(before: Amount, after: Amount) -> String {
    match (after.checked_sub(before), before.checked_sub(after)) {
        (Some(gain), _) => format!("+{}", ombra(gain)),
        (None, loss) => format!("-{}", ombra(loss.unwrap_or_default())),
    }
}
