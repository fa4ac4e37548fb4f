//! The options of each kind, and the body that they make.

use std::path::PathBuf;

use agent::tools::OFFERED_BY_DEFAULT;
use clap::Args;
use types::params::INLINE_TEXT_BYTES_MAX;
use types::tx::{
    ATTACHMENT_TYPES, AgentCancel, AgentClaim, AgentFinish, AgentStep, Attachment, ChatTurn,
    FINISH_STATUSES, HARDWARE_TIERS, MinerRegister, Protection, ROLES, ToolCall, Transfer,
    ValidatorVote,
};
use types::{Address, Amount, Body, Hash, PublicKey, Signature, ids};
use wallet::sign::Request;
use wallet::{Client, Page};

use super::deliver::Delivery;
use super::{ProtectionArgs, SendArgs, escrow};
use crate::client::input::Payee;
use crate::client::{CliError, Out, Outcome, input};

/// Milliseconds in a day.
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

const MAX_STEPS_DEFAULT: u64 = 20;

/// More than any inline text: the node's own limit gives the exact answer.
const TEXT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A turn of a conversation.
#[derive(Args, Debug)]
pub struct ChatArgs {
    /// The text
    #[arg(required_unless_present_any = ["content_file", "content_blob"])]
    content: Option<String>,
    /// File with the text ('-': standard input)
    #[arg(long, value_name = "FILE", conflicts_with = "content")]
    content_file: Option<PathBuf>,
    /// Finalised blob that holds the text
    #[arg(long, value_name = "BLOB")]
    content_blob: Option<String>,
    /// Conversation id [default: a new conversation, printed]
    #[arg(long, value_name = "ID")]
    conversation: Option<Hash>,
    /// Who speaks
    #[arg(long, default_value = "user", value_parser = ROLES.to_vec())]
    role: String,
    /// Turn of the same conversation that this one answers
    #[arg(long, value_name = "TX")]
    parent: Option<Hash>,
    /// Agent run that the turn belongs to
    #[arg(long, value_name = "RUN")]
    run: Option<Hash>,
    /// Attachment: image=BLOB, audio=BLOB or file=BLOB; may be given several times
    #[arg(long, value_name = "KIND=BLOB", value_parser = attachment)]
    attach: Vec<Attachment>,
    #[command(flatten)]
    send: SendArgs,
}

/// A request for a run.
#[derive(Args, Debug)]
pub struct RequestArgs {
    /// The prompt
    #[arg(required_unless_present = "prompt_file")]
    prompt: Option<String>,
    /// File with the prompt ('-': standard input)
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    prompt_file: Option<PathBuf>,
    #[command(flatten)]
    terms: TermsArgs,
    #[command(flatten)]
    send: SendArgs,
}

/// The terms of a run.
#[derive(Args, Clone, Debug)]
pub struct TermsArgs {
    /// Escrow: the most that the run may cost, in micro-OMBRA or with unit (0.5ombra) [default:
    /// four times what nine out of ten recent runs cost at most, 0.05ombra to 1ombra; 1ombra before
    /// fork v7]
    #[arg(long, value_name = "AMOUNT", value_parser = input::amount)]
    pub(in crate::client) max_fee: Option<Amount>,
    /// The most steps, 1 to 200 [default: 20]
    #[arg(long, value_name = "N")]
    pub(in crate::client) max_steps: Option<u64>,
    /// Tools that the miner may use, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(in crate::client) tools: Vec<String>,
    /// Requested model
    #[arg(long, value_name = "NAME")]
    pub(in crate::client) model: Option<String>,
    /// Conversation id [default: a new conversation]
    #[arg(long, value_name = "ID")]
    pub(in crate::client) conversation: Option<Hash>,
    /// Finalised blob with a longer prompt
    #[arg(long, value_name = "BLOB")]
    pub(in crate::client) prompt_blob: Option<String>,
    /// How the run is protected.
    #[command(flatten)]
    pub(in crate::client) protection: ProtectionArgs,
    /// The published agent of which it is a run, and its version.
    #[arg(skip)]
    pub(in crate::client) agent: Option<(Hash, String)>,
}

impl TermsArgs {
    /// The same with the tools that a question in free text has where none are named. Miners without
    /// them take it all the same.
    #[must_use]
    pub(in crate::client) fn for_free_text(mut self) -> Self {
        if self.tools.is_empty() {
            self.tools = OFFERED_BY_DEFAULT.iter().map(|name| (*name).to_owned()).collect();
        }
        self
    }

    /// The same with an escrow, and how the run is to be protected, on the chain of a node.
    ///
    /// # Errors
    /// When the node is away, or an option asks for what its chain does not have yet.
    pub(in crate::client) async fn on(
        self,
        client: &Client,
    ) -> Result<(Self, Protection), CliError> {
        let has_v7 = client.is_v7_active().await?;
        let max_fee = match self.max_fee {
            Some(max_fee) => max_fee,
            None if has_v7 => escrow::lately(client).await?,
            None => escrow::USUAL,
        };
        let protection = self.protection.on(has_v7, max_fee)?;
        Ok((Self { max_fee: Some(max_fee), ..self }, protection))
    }

    /// The request; a missing conversation is a new one of `creator`.
    pub(in crate::client) fn request(
        self,
        prompt: String,
        protection: Protection,
        creator: &Address,
        now_ms: u64,
    ) -> Request {
        let new = || ids::compute_conversation_id(&creator.to_string(), None, now_ms);
        Request {
            conversation_id: self.conversation.unwrap_or_else(new),
            prompt,
            tools_whitelist: self.tools,
            max_fee: self.max_fee.unwrap_or(escrow::USUAL),
            max_steps: self.max_steps.unwrap_or(MAX_STEPS_DEFAULT),
            prompt_blob_id: self.prompt_blob,
            model_hint: self.model,
            protection,
            agent: self.agent,
        }
    }
}

/// A claim of a run.
#[derive(Args, Debug)]
pub struct ClaimArgs {
    /// The run
    run: Hash,
    /// The model that works on it
    #[arg(long, value_name = "TEXT", default_value = "")]
    model_info: String,
    /// The kind of machine that works on it
    #[arg(long, default_value = "desktop", value_parser = HARDWARE_TIERS.to_vec())]
    tier: String,
    #[command(flatten)]
    send: SendArgs,
}

/// A step of a run.
#[derive(Args, Debug)]
pub struct StepArgs {
    /// The run
    run: Hash,
    /// Index of the step [default: one after the last recorded]
    #[arg(long, value_name = "N")]
    index: Option<u64>,
    /// Tokens that the model wrote
    #[arg(long, value_name = "N")]
    tokens: u64,
    #[command(flatten)]
    output: StepOutputArgs,
    /// Tool call NAME,ARGSHASH,RESULTHASH,MILLISECONDS,ok (or failed); may be given several times
    #[arg(long, value_name = "CALL", value_parser = tool_call)]
    tool: Vec<ToolCall>,
    /// Blob with the model's reasoning
    #[arg(long, value_name = "BLOB")]
    thought_blob: Option<String>,
    /// Blob with the output
    #[arg(long, value_name = "BLOB")]
    output_blob: Option<String>,
    #[command(flatten)]
    send: SendArgs,
}

/// What is hashed as the step's output.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub struct StepOutputArgs {
    /// The output's text, which is hashed
    #[arg(long, value_name = "TEXT")]
    output: Option<String>,
    /// File with the output's text, which is hashed ('-': standard input)
    #[arg(long, value_name = "FILE")]
    output_file: Option<PathBuf>,
    /// SHA-256 of the output's text
    #[arg(long, value_name = "HASH")]
    output_hash: Option<Hash>,
}

/// The end of a run.
#[derive(Args, Debug)]
pub struct FinishArgs {
    /// The run
    run: Hash,
    /// How it ended
    #[arg(long, default_value = "completed", value_parser = FINISH_STATUSES.to_vec())]
    status: String,
    /// The answer
    #[arg(long, value_name = "TEXT")]
    answer: Option<String>,
    /// File with the answer ('-': standard input)
    #[arg(long, value_name = "FILE", conflicts_with = "answer")]
    answer_file: Option<PathBuf>,
    /// Finalised blob with the answer
    #[arg(long, value_name = "BLOB")]
    answer_blob: Option<String>,
    #[command(flatten)]
    send: SendArgs,
}

/// A run to take back.
#[derive(Args, Debug)]
pub struct CancelArgs {
    /// The run
    run: Hash,
    #[command(flatten)]
    send: SendArgs,
}

/// A payment.
#[derive(Args, Debug)]
pub struct TransferArgs {
    /// Receiver: 40 hex characters, 'ox' and 40 hex characters, or, with --dev, dev:N
    #[arg(value_parser = input::payee)]
    to: Payee,
    /// Micro-OMBRA, or with unit: 1.5ombra
    #[arg(value_parser = input::amount)]
    amount: Amount,
    /// Fee for the block's proposer
    #[arg(long, value_name = "AMOUNT", default_value = "0", value_parser = input::amount)]
    fee: Amount,
    #[command(flatten)]
    send: SendArgs,
}

/// An entry of the miner directory.
#[derive(Args, Debug)]
pub struct RegisterArgs {
    /// Name shown to people
    name: String,
    /// What the miner can do, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    capabilities: Vec<String>,
    /// The model that the miner uses
    #[arg(long, value_name = "TEXT", default_value = "")]
    model_info: String,
    #[command(flatten)]
    send: SendArgs,
}

/// A vote for a change of the validator set.
#[derive(Args, Debug)]
pub struct ValidatorVoteArgs {
    /// Public key of the validator to add, change or remove
    candidate: PublicKey,
    /// Its new voting power; 0 removes it
    #[arg(long, value_name = "N")]
    power: u64,
    /// Days until the vote no longer counts, 1 to 30
    #[arg(long, value_name = "DAYS", default_value_t = 7,
        value_parser = clap::value_parser!(u64).range(1..=30))]
    days: u64,
    /// The same as a time, in milliseconds since 1970
    #[arg(long, value_name = "MS", conflicts_with = "days")]
    expires_at: Option<u64>,
    /// The acceptance that a new candidate's key signed (`ombra validator accept`) for the time of
    /// --expires-at; needed from fork v7 on
    #[arg(long, value_name = "SIGNATURE", requires = "expires_at")]
    acceptance: Option<Signature>,
    #[command(flatten)]
    send: SendArgs,
}

pub(super) async fn chat(args: ChatArgs, out: Out<'_>) -> Outcome {
    let content = input::text_or_file(args.content, args.content_file.as_deref(), TEXT_BYTES_MAX)?;
    let delivery = Delivery::open(args.send)?;
    let envelope = delivery.envelope().await?;
    let creator = delivery.sender.keypair().address().to_string();
    let conversation_id = args
        .conversation
        .unwrap_or_else(|| ids::compute_conversation_id(&creator, None, envelope.timestamp));
    let body = Body::ChatTurn(ChatTurn {
        conversation_id,
        role: args.role,
        content: content.unwrap_or_default(),
        content_blob_id: args.content_blob,
        parent_turn_hash: args.parent,
        agent_run_id: args.run,
        attachments: Some(args.attach).filter(|attachments| !attachments.is_empty()),
    });
    delivery.deliver_with(&envelope, &body, out).await?;
    if delivery.sends() && !delivery.prints_json() {
        writeln!(out, "  conversation {conversation_id}")?;
    }
    Ok(())
}

pub(super) async fn request(args: RequestArgs, out: Out<'_>) -> Outcome {
    let prompt = input::text_or_file(args.prompt, args.prompt_file.as_deref(), TEXT_BYTES_MAX)?;
    let delivery = Delivery::open(args.send)?;
    let envelope = delivery.envelope().await?;
    let keypair = delivery.sender.keypair();
    let (terms, protection) = if delivery.asks_node() {
        args.terms.on(delivery.client()).await?
    } else {
        let protection = args.terms.protection.as_given();
        (args.terms, protection)
    };
    let prompt = prompt.unwrap_or_default();
    let request = terms
        .request(prompt, protection, &keypair.address(), envelope.timestamp)
        .into_body(keypair, envelope.nonce);
    let (run, conversation) = (request.agent_run_id, request.conversation_id);
    delivery.deliver_with(&envelope, &Body::AgentRequest(request), out).await?;
    if delivery.sends() && !delivery.prints_json() {
        writeln!(out, "  run {run}\n  conversation {conversation}")?;
    }
    Ok(())
}

pub(super) async fn claim(args: ClaimArgs, out: Out<'_>) -> Outcome {
    let delivery = Delivery::open(args.send)?;
    let miner = delivery.sender.keypair().address();
    let body = Body::AgentClaim(AgentClaim {
        agent_run_id: args.run,
        miner_address: miner.into(),
        model_info: args.model_info,
        hardware_tier: args.tier,
    });
    delivery.deliver(&body, out).await
}

pub(super) async fn step(args: StepArgs, out: Out<'_>) -> Outcome {
    let file = args.output.output_file.as_deref();
    let text = input::text_or_file(args.output.output, file, TEXT_BYTES_MAX)?;
    let hashed = text.as_deref().map(ids::compute_content_hash);
    let output_hash = hashed
        .or(args.output.output_hash)
        .ok_or_else(|| CliError::Usage("give --output, --output-file or --output-hash".into()))?;
    let delivery = Delivery::open(args.send)?;
    let step_index = match args.index {
        Some(index) => index,
        None => next_step_index(&delivery, &args.run).await?,
    };
    let body = Body::AgentStep(AgentStep {
        agent_run_id: args.run,
        step_index,
        output_tokens: args.tokens,
        output_hash,
        thought_blob_id: args.thought_blob,
        tool_calls: Some(args.tool).filter(|calls| !calls.is_empty()),
        output_blob_id: args.output_blob,
    });
    delivery.deliver(&body, out).await
}

/// One after the last recorded step; a run has at most 200, which is one page.
async fn next_step_index(delivery: &Delivery, run: &Hash) -> Result<u64, CliError> {
    let page = Page { cursor: None, limit: Some(500) };
    let steps = delivery.client().steps(run, &page).await?;
    Ok(steps.items.last().map_or(0, |step| step.step_index.saturating_add(1)))
}

pub(super) async fn finish(args: FinishArgs, out: Out<'_>) -> Outcome {
    let answer = input::text_or_file(args.answer, args.answer_file.as_deref(), TEXT_BYTES_MAX)?;
    if let Some(text) = answer.as_ref().filter(|text| text.len() > INLINE_TEXT_BYTES_MAX) {
        let bytes = text.len();
        return Err(CliError::Usage(format!(
            "the answer has {bytes} bytes, an inline one at most {INLINE_TEXT_BYTES_MAX}: \
             store it with `ombra tx blob` and give --answer-blob"
        )));
    }
    let delivery = Delivery::open(args.send)?;
    let settlement = delivery.client().settlement(&args.run).await?.into_value();
    let body = Body::AgentFinish(AgentFinish {
        agent_run_id: args.run,
        total_tokens_out: settlement.total_tokens_out,
        status: args.status,
        miner_reward: settlement.miner_reward,
        user_refund: settlement.user_refund,
        network_fee: settlement.network_fee,
        final_answer_inline: answer,
        final_answer_blob_id: args.answer_blob,
    });
    delivery.deliver(&body, out).await
}

pub(super) async fn cancel(args: CancelArgs, out: Out<'_>) -> Outcome {
    let body = Body::AgentCancel(AgentCancel { agent_run_id: args.run });
    Delivery::open(args.send)?.deliver(&body, out).await
}

pub(super) async fn transfer(args: TransferArgs, out: Out<'_>) -> Outcome {
    let to = args.send.signer.pays(args.to)?;
    let body = Body::Transfer(Transfer::new(to, args.amount, args.fee));
    Delivery::open(args.send)?.deliver(&body, out).await
}

pub(super) async fn register(args: RegisterArgs, out: Out<'_>) -> Outcome {
    let body = Body::MinerRegister(MinerRegister {
        name: args.name,
        capabilities: args.capabilities,
        model_info: args.model_info,
    });
    Delivery::open(args.send)?.deliver(&body, out).await
}

pub(super) async fn validator_vote(args: ValidatorVoteArgs, out: Out<'_>) -> Outcome {
    let delivery = Delivery::open(args.send)?;
    let envelope = delivery.envelope().await?;
    let ends = || envelope.timestamp.saturating_add(args.days.saturating_mul(DAY_MS));
    let expires_at = args.expires_at.unwrap_or_else(ends);
    let vote = ValidatorVote::new(args.candidate, args.power, expires_at);
    let vote = match args.acceptance {
        Some(acceptance) => vote.with_acceptance(acceptance),
        None => vote,
    };
    delivery.deliver_with(&envelope, &Body::ValidatorVote(vote), out).await
}

/// `image=BLOB`.
fn attachment(text: &str) -> Result<Attachment, String> {
    let expected =
        || format!("{text:?}: expected KIND=BLOB, KIND of {}", ATTACHMENT_TYPES.join(", "));
    let (kind, blob_id) = text.split_once('=').ok_or_else(expected)?;
    if !ATTACHMENT_TYPES.contains(&kind) {
        return Err(expected());
    }
    Ok(Attachment { kind: kind.to_owned(), blob_id: blob_id.to_owned() })
}

/// `NAME,ARGSHASH,RESULTHASH,MILLISECONDS,ok`.
fn tool_call(text: &str) -> Result<ToolCall, String> {
    let expected =
        || format!("{text:?}: expected NAME,ARGSHASH,RESULTHASH,MILLISECONDS,ok or failed");
    let parts: Vec<&str> = text.split(',').collect();
    let [name, args, result, millis, outcome] = parts.as_slice() else {
        return Err(expected());
    };
    let ok = match *outcome {
        "ok" => true,
        "failed" => false,
        _ => return Err(expected()),
    };
    Ok(ToolCall {
        name: (*name).to_owned(),
        args_hash: args.parse().map_err(|_hash| expected())?,
        result_hash: result.parse().map_err(|_hash| expected())?,
        duration_ms: millis.parse().map_err(|_number| expected())?,
        ok,
    })
}
