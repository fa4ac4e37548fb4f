//! The request of a run: checked, its long text stored, signed and sent.

use std::time::Duration;

use agent::methods::{Ask, Parsed, Request, Written};
use miner::chain::Ledger as _;
use miner::chain::client::Node;
use node::clock::now_ms;
use types::params::INLINE_TEXT_BYTES_MAX;
use types::tx::Protection;
use types::{Amount, Body, Hash};
use wallet::Signed;
use wallet::client::records::Run;

use super::method;
use crate::client::output::{duration, ombra, ombra_of};
use crate::client::tx::{Sender, TermsArgs, blob_bodies, block_of, rejection_of};
use crate::client::{CliError, Out, Outcome};

/// Each transaction is included within this time or the command fails.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// How many blob ids are tried when others have taken the first.
const BLOB_IDS_MAX: usize = 8;
/// Characters of a long text that the prompt shows of it.
const HEAD_CHARS: usize = 200;

/// What is asked.
#[derive(Debug)]
pub(in crate::client) enum Question {
    /// Free text.
    Text(String),
    /// A method.
    Method(Request),
}

impl Question {
    /// A text as it is given: an envelope that miners would refuse is refused.
    ///
    /// # Errors
    /// Why a miner would refuse it.
    pub(in crate::client) fn of_text(text: String, terms: &TermsArgs) -> Result<Self, CliError> {
        // With a blob beside it, only the whole of both can be judged.
        if terms.prompt_blob.is_none() {
            match method::read(&text, None)? {
                Parsed::Method(request) => {
                    let request = method::check(request, &terms.tools)?;
                    // Its blob is written as miners read it, and not as that of free text.
                    if text.len() > INLINE_TEXT_BYTES_MAX {
                        return Ok(Self::Method(request));
                    }
                }
                Parsed::PlainText(_) => {}
                Parsed::NeedsBlob { .. } => {
                    let text = "the prompt says that its envelope is in a blob: give --prompt-blob";
                    return Err(CliError::Usage(text.into()));
                }
            }
        }
        Ok(Self::Text(text))
    }

    /// A method with its arguments.
    ///
    /// # Errors
    /// Why a miner would refuse it.
    pub(in crate::client) fn of_method(ask: Ask, terms: &TermsArgs) -> Result<Self, CliError> {
        let request = Request::new(ask).map_err(|refused| method::refused_by_miners(&refused))?;
        method::check(request, &terms.tools).map(Self::Method)
    }

    /// The prompt, and what goes into a blob because it is too long for a transaction.
    fn written(self) -> Written {
        match self {
            Self::Method(request) => request.to_prompt(),
            Self::Text(text) if text.len() <= INLINE_TEXT_BYTES_MAX => Written::Inline(text),
            Self::Text(text) => {
                let head: String = text.chars().take(HEAD_CHARS).collect();
                Written::Blob { prompt: format!("{head}…"), blob: text }
            }
        }
    }
}

/// A request that is on the chain.
#[derive(Debug)]
pub(super) struct Requested {
    pub(super) id: Hash,
    pub(super) blob_fees: Amount,
}

/// How far the sending of a request is.
#[derive(Debug)]
pub(super) enum Sending {
    /// Nothing was sent.
    Nothing,
    /// The blob with this id is being stored for it.
    Blob(String),
    /// The request with this id may be on the chain.
    Request(Hash),
}

/// Sends the request. `sending` is told before anything is sent.
pub(super) async fn send(
    sender: &Sender,
    question: Question,
    terms: TermsArgs,
    sending: &mut Sending,
    out: Out<'_>,
) -> Result<Requested, CliError> {
    if matches!(question, Question::Method(_)) && terms.prompt_blob.is_some() {
        let text = "--prompt-blob cannot be used with a method: the request holds the method's \
                    arguments, and no miner takes such a request with a blob";
        return Err(CliError::Usage(text.into()));
    }
    let (mut terms, protection) = terms.on(&sender.client).await?;
    let (prompt, blob) = match question.written() {
        Written::Inline(prompt) => (prompt, None),
        Written::Blob { prompt, blob } => (prompt, Some(blob)),
    };
    let mut blob_fees = Amount::default();
    if let Some(text) = blob {
        if terms.prompt_blob.is_some() {
            let text = "--prompt-blob: the request itself is too long for a transaction and needs \
                        the blob";
            return Err(CliError::Usage(text.into()));
        }
        try_out(sender, &prompt, &terms, &protection).await?;
        let kept = keep(sender, &text, sending, out).await?;
        blob_fees = kept.fees;
        terms.prompt_blob = Some(kept.id);
    }
    let envelope = sender.envelope(now_ms()).await?;
    let guard = guarded(&protection);
    let creator = sender.keypair().address();
    let request = terms.request(prompt, protection, &creator, envelope.timestamp);
    let max_fee = request.max_fee;
    let body = request.into_body(sender.keypair(), envelope.nonce);
    let (id, conversation) = (body.agent_run_id, body.conversation_id);
    *sending = Sending::Request(id);
    let signed = Signed::new(sender.keypair(), &envelope, &Body::AgentRequest(body));
    writeln!(out, "chain        {}", sender.chain().await?)?;
    writeln!(out, "run          {id}")?;
    writeln!(out, "conversation {conversation}")?;
    out.flush()?;
    let included = sender.include_signed(&signed, REQUEST_TIMEOUT).await?;
    let (escrow, tx, block) = (ombra(max_fee), included.hash, block_of(&included));
    writeln!(out, "requested    escrow {escrow}, tx {tx}, block {block}")?;
    if let Some(guard) = guard {
        writeln!(out, "protected    {guard}")?;
    }
    Ok(Requested { id, blob_fees })
}

/// The terms of a run that resumes another, where the command line names no others.
pub(super) fn terms_after(terms: TermsArgs, run: &Run) -> TermsArgs {
    let TermsArgs {
        max_fee,
        max_steps,
        tools,
        model,
        conversation: _,
        prompt_blob,
        protection,
        agent: _,
    } = terms;
    TermsArgs {
        max_fee: max_fee.or(Some(run.max_fee)),
        max_steps: max_steps.or(Some(run.max_steps)),
        tools: if tools.is_empty() { run.tools_whitelist.clone() } else { tools },
        model: model.or_else(|| run.model_hint.clone()),
        conversation: Some(run.conversation_id),
        prompt_blob,
        protection: protection.after(run.protection.as_ref()),
        agent: run.agent_id.zip(run.agent_version.clone()),
    }
}

/// What protects a run, in a sentence; none if nothing does.
fn guarded(protection: &Protection) -> Option<String> {
    let Protection { miners, claim_bond, max_tokens_per_step, refuse_ms } = protection;
    let parts = [
        claim_bond.map(|bond| format!("a claim locks {} of the miner's bond", ombra(bond))),
        refuse_ms.map(|ms| format!("the reward is held for {}", duration(ms))),
        miners.as_ref().map(|miners| match miners.as_slice() {
            [one] => format!("only {} may claim it", one.address),
            many => format!("only {} miners may claim it", many.len()),
        }),
        max_tokens_per_step.map(|tokens| format!("a step has at most {tokens} tokens")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Has the node judge the request before its blob is paid for.
async fn try_out(
    sender: &Sender,
    prompt: &str,
    terms: &TermsArgs,
    protection: &Protection,
) -> Outcome {
    let envelope = sender.envelope(now_ms()).await?;
    let address = sender.keypair().address();
    let (prompt, protection) = (prompt.to_owned(), protection.clone());
    let request = terms.clone().request(prompt, protection, &address, envelope.timestamp);
    let body = Body::AgentRequest(request.into_body(sender.keypair(), envelope.nonce));
    let signed = Signed::new(sender.keypair(), &envelope, &body);
    let judged = sender.client.simulate(signed.json()).await?;
    rejection_of(&judged).map_or(Ok(()), Err)
}

/// A blob that was stored.
struct Kept {
    id: String,
    fees: Amount,
}

/// Stores a text as a blob. One that is there already is not paid for again, and one that an
/// earlier attempt left unfinished is completed.
async fn keep(
    sender: &Sender,
    text: &str,
    sending: &mut Sending,
    out: Out<'_>,
) -> Result<Kept, CliError> {
    let node = Node::new(sender.client.clone())
        .map_err(|error| CliError::Failed(format!("cannot create the HTTP client: {error}")))?;
    let content_hash = Hash::digest(text.as_bytes());
    let id = free_id(&node, sender, content_hash).await?;
    *sending = Sending::Blob(id.clone());
    let bodies = blob_bodies(text.as_bytes(), &id, "text/plain; charset=utf-8", content_hash)?;
    let fee = sender.client.fee_schedule().await?["blobFeePerChunk"].clone();
    let fee = fee.as_str().and_then(|text| Amount::parse(text).ok()).unwrap_or_default();
    let chunks = bodies.len().saturating_sub(2);
    let mut fees = Amount::default();
    loop {
        let body = match node.blob(&id).await? {
            None => bodies.first(),
            Some(blob) if blob.is_final => break,
            Some(blob) => {
                let received = usize::try_from(blob.received).unwrap_or(usize::MAX);
                if received < chunks {
                    fees = fees.checked_add(fee).unwrap_or(fees);
                }
                bodies.get(received.min(chunks).saturating_add(1))
            }
        };
        let body = body.ok_or_else(|| CliError::Failed("the blob has no transactions".into()))?;
        sender.include(body, REQUEST_TIMEOUT).await?;
    }
    let (bytes, paid) = (text.len(), ombra_of(&serde_json::json!(fees)));
    writeln!(out, "prompt blob  {id}, {bytes} bytes, {paid} burned")?;
    Ok(Kept { id, fees })
}

/// An id that nobody has taken for anything else: the content's hash, or that with a number.
async fn free_id(node: &Node, sender: &Sender, hash: Hash) -> Result<String, CliError> {
    for number in 0..BLOB_IDS_MAX {
        let id = if number == 0 { hash.to_string() } else { format!("{hash}-{number}") };
        let is_usable = node.blob(&id).await?.is_none_or(|blob| {
            let is_mine = blob.owner == sender.keypair().address();
            blob.content_hash == hash && (blob.is_final || is_mine)
        });
        if is_usable {
            return Ok(id);
        }
    }
    Err(CliError::Failed(format!("the blob ids {hash} to {hash}-{BLOB_IDS_MAX} are taken")))
}
