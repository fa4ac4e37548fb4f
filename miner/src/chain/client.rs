//! The ports of the chain over the wallet's client of a node.

mod calls;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agent::http_client;
use agent::text::with_causes;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use types::{Address, Amount, Hash, RunStatus};
use wallet::client::records::{self, Items};
use wallet::client::{Events, Kind, Page};
use wallet::{ChainIdentity, Client, ClientError, OtherChain};

use super::{
    BlobFees, BlobView, ChainError, Fate, Funds, Head, Held, Ledger, Notice, Protection, RunView,
    Runs, Stake, StepView, Watch,
};

/// Entries in one page of a list.
const PAGE: u32 = 500;
/// Pages of one list: a node may leave each of them short, or empty.
const PAGES_MAX: usize = 1_000;
/// Pending runs that are looked at: more cannot be claimed before the list is old.
const PENDING_RUNS_MAX: usize = 2_000;
/// Runs of a miner among which rewards are looked for that are held.
const HELD_RUNS_MAX: usize = 100;
/// A miner's own runs.
const OWN_RUNS_MAX: usize = 100_000;
/// A miner's runs of one status that have not ended: far more than the slots of any policy.
const OPEN_RUNS_MAX: usize = 2_000;
const BLOB_TIMEOUT: Duration = Duration::from_secs(60);

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    client: Client,
    http: reqwest::Client,
    /// The only chain that its answers may be of.
    bound: Option<ChainIdentity>,
    /// Whether it has said that the chain has bonds, which it has for ever then.
    has_bonds: Arc<AtomicBool>,
}

pub use calls::CallSubscription;

type Answer<T> = Result<T, ChainError>;

/// The runs that a node lists.
struct Listed {
    runs: Vec<RunView>,
    /// Why there may be more that the node does not list; none if it lists all that was asked for.
    cut: Option<ChainError>,
}

/// A page of a list; the inner error says that what comes next is older than the node's first block.
fn page<T>(
    answer: Result<wallet::client::Answer<Items<T>>, ClientError>,
) -> Answer<Result<Items<T>, ChainError>> {
    match answer.map_err(error) {
        Ok(page) => Ok(Ok(page.into_value())),
        Err(old @ ChainError::NoHistory(_)) => Ok(Err(old)),
        Err(other) => Err(other),
    }
}

impl Node {
    /// The node that `client` talks to.
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub fn new(client: Client) -> Result<Self, reqwest::Error> {
        let (http, has_bonds) = (http_client::client()?, Arc::default());
        Ok(Self { client, http, bound: None, has_bonds })
    }

    /// The same node, which is to be of this chain: what it says of another is an error.
    #[must_use]
    pub fn bound_to(self, chain: ChainIdentity) -> Self {
        Self { bound: Some(chain), ..self }
    }

    /// The newest runs that meet a filter, at most `runs_max`.
    async fn list(&self, filter: Value, runs_max: usize) -> Answer<Listed> {
        let mut runs = Vec::new();
        let Value::Object(filter) = filter else { return Ok(Listed { runs, cut: None }) };
        let mut cursor = None;
        for _ in 0..PAGES_MAX {
            let missing = u32::try_from(runs_max.saturating_sub(runs.len())).unwrap_or(PAGE);
            if missing == 0 {
                break;
            }
            let wanted = Page { cursor, limit: Some(missing.min(PAGE)) };
            let answer = match page(self.client.runs(&filter, &wanted).await)? {
                Ok(answer) => answer,
                Err(old) => return Ok(Listed { runs, cut: Some(old) }),
            };
            for run in answer.items {
                runs.push(view(run)?);
            }
            cursor = answer.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        Ok(Listed { runs, cut: None })
    }

    /// The bytes of a finalised blob; none if there is no such blob, or it is larger.
    async fn blob_bytes(&self, id: &str, bytes_max: usize) -> Answer<Option<Vec<u8>>> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if id.is_empty() || !id.bytes().all(is_plain) {
            return Ok(None);
        }
        let url = format!("{}/api/blob/{id}", self.client.url().trim_end_matches('/'));
        let away = |error: reqwest::Error| ChainError::Away(with_causes(&error));
        let asked = self.http.get(url).timeout(BLOB_TIMEOUT).send().await;
        let mut response = asked.map_err(away)?;
        match response.status().as_u16() {
            200 => (),
            400..=428 | 430..=499 => return Ok(None),
            status => return Err(ChainError::Away(format!("a blob was answered with {status}"))),
        }
        let mut bytes = Vec::new();
        while let Some(part) = response.chunk().await.map_err(away)? {
            if bytes.len().saturating_add(part.len()) > bytes_max {
                return Ok(None);
            }
            bytes.extend_from_slice(&part);
        }
        Ok(Some(bytes))
    }
}

/// What a failed call means here.
fn error(error: ClientError) -> ChainError {
    match error {
        ClientError::Rejected(rejection) => {
            ChainError::Rejected { code: rejection.code, message: rejection.message }
        }
        ClientError::Unreachable { .. }
        | ClientError::NotServing { .. }
        | ClientError::Limited { .. } => ChainError::Away(error.to_string()),
        ClientError::HistoryUnavailable { message } => ChainError::NoHistory(message),
        ClientError::BadUrl { .. }
        | ClientError::NotFound { .. }
        | ClientError::BadParams { .. }
        | ClientError::Other { .. }
        | ClientError::Strange { .. }
        | ClientError::Unreadable { .. }
        | ClientError::Unwritable { .. }
        | ClientError::WrongHash { .. }
        | ClientError::OtherChain(_) => ChainError::Strange(error.to_string()),
    }
}

/// An answer that may say that there is no such thing.
fn found<T>(answer: Result<T, ClientError>) -> Answer<Option<T>> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(ClientError::NotFound { .. }) => Ok(None),
        Err(other) => Err(error(other)),
    }
}

fn view(run: records::Run) -> Answer<RunView> {
    let status = RunStatus::parse(&run.status)
        .ok_or_else(|| ChainError::Strange(format!("a run has the status {:?}", run.status)))?;
    Ok(RunView {
        id: run.agent_run_id,
        conversation_id: run.conversation_id,
        submitter: run.submitter,
        prompt: run.prompt,
        prompt_blob_id: run.prompt_blob_id,
        tools: run.tools_whitelist,
        model_hint: run.model_hint,
        max_fee_micro: run.max_fee.get(),
        steps_max: run.max_steps,
        status,
        miner: run.miner_address,
        excluded: run.excluded_miners,
        steps: run.step_count,
        tokens: run.total_tokens_out,
        deadline_ms: run.deadline_at,
        reward_micro: run.miner_reward.map(Amount::get),
        protection: run.protection.map(protection),
        held_until_ms: run.held_until,
        is_refused: run.refused,
        agent: run.agent_id.zip(run.agent_version).map(|(id, of)| format!("agent:{id}@{of}")),
    })
}

fn protection(protection: records::RunProtection) -> Protection {
    let records::RunProtection { miners, claim_bond, max_tokens_per_step, refuse_ms } = protection;
    let claim_bond_micro = claim_bond.get();
    Protection { miners, claim_bond_micro, step_tokens_max: max_tokens_per_step, refuse_ms }
}

#[async_trait]
impl Runs for Node {
    async fn run(&self, id: &Hash) -> Answer<Option<RunView>> {
        let run = found(self.client.run(id).await)?;
        run.map(|run| view(run.into_value())).transpose()
    }

    async fn pending(&self) -> Answer<Vec<RunView>> {
        Ok(self.list(json!({ "status": "pending" }), PENDING_RUNS_MAX).await?.runs)
    }

    async fn of_miner(&self, miner: &Address) -> Answer<Vec<RunView>> {
        let Listed { runs, cut } = self.list(json!({ "miner": miner }), OWN_RUNS_MAX).await?;
        cut.map_or(Ok(runs), Err)
    }

    async fn open_of_miner(&self, miner: &Address) -> Answer<Vec<RunView>> {
        let mut runs = Vec::new();
        for status in [RunStatus::Claimed, RunStatus::Running] {
            let filter = json!({ "miner": miner, "status": status.as_str() });
            runs.extend(self.list(filter, OPEN_RUNS_MAX).await?.runs);
        }
        Ok(runs)
    }

    async fn steps(&self, id: &Hash) -> Answer<Vec<StepView>> {
        let mut steps = Vec::new();
        let mut page = Page { cursor: None, limit: Some(PAGE) };
        loop {
            let answer = self.client.steps(id, &page).await.map_err(error)?.into_value();
            steps.extend(answer.items.into_iter().map(step));
            match answer.next_cursor {
                Some(cursor) => page.cursor = Some(cursor),
                None => return Ok(steps),
            }
        }
    }

    async fn blob_text(&self, id: &str, bytes_max: usize) -> Answer<Option<String>> {
        let bytes = self.blob_bytes(id, bytes_max).await?;
        Ok(bytes.and_then(|bytes| String::from_utf8(bytes).ok()))
    }
}

/// What genesis says of the tokens of a step; where the node does not tell, what holds unless genesis says
/// otherwise.
fn step_tokens_max(params: &Value) -> u64 {
    let stated = params["maxOutputTokensPerStep"].as_u64();
    stated.unwrap_or_else(|| types::Params::default().max_output_tokens_per_step)
}

fn step(step: records::Step) -> StepView {
    StepView {
        index: step.step_index,
        output_tokens: step.output_tokens,
        output_hash: step.output_hash,
        calls: step.tool_calls.into_iter().map(|it| (it.args_hash, it.result_hash)).collect(),
    }
}

/// What `ombra_getBlob` tells.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Blob {
    owner: Address,
    received: u64,
    #[serde(rename = "final")]
    is_final: bool,
    content_hash: Hash,
}

#[async_trait]
impl Ledger for Node {
    async fn head(&self) -> Answer<Head> {
        let chain = self.client.chain_info().await.map_err(error)?.into_value();
        let got = chain.chain();
        if let Some(expected) = self.bound.as_ref().filter(|bound| **bound != got) {
            let other = OtherChain { expected: expected.clone(), got };
            return Err(ChainError::Strange(other.to_string()));
        }
        Ok(Head {
            chain_id: chain.chain_id,
            genesis: chain.genesis_hash,
            height: chain.height,
            syncing: chain.syncing,
            step_tokens_max: step_tokens_max(&chain.params),
            block_ms: chain.latest_block_time,
        })
    }

    async fn funds(&self, address: &Address) -> Answer<Funds> {
        let account = self.client.account(address).await.map_err(error)?;
        let balance_micro = account.pending_balance.get();
        Ok(Funds { balance_micro, nonce: account.pending_nonce })
    }

    async fn blob_fees(&self) -> Answer<BlobFees> {
        let told = self.client.fee_schedule().await.map_err(error)?.into_value();
        let fee_micro = |name: &str| told[name].as_str().and_then(|text| text.parse().ok());
        // Before v7 there is no fee for an announcement, and the node names none.
        let init_micro = fee_micro("blobInitFee").unwrap_or_default();
        // Where the node does not tell, what holds unless the chain says otherwise.
        let usual = || types::Params::default().blob_fee_per_chunk.get();
        let chunk_micro = fee_micro("blobFeePerChunk").unwrap_or_else(usual);
        Ok(BlobFees { init_micro, chunk_micro, base_fee: fee_micro("baseFee") })
    }

    async fn send(&self, text: &str) -> Answer<()> {
        let strange = |error: serde_json::Error| ChainError::Strange(error.to_string());
        let tx: &RawValue = serde_json::from_str(text).map_err(strange)?;
        let sent = self.client.call::<Value, _>("ombra_sendTransaction", [tx]).await;
        sent.map(drop).map_err(error)
    }

    async fn wait(&self, tx: &Hash, patience: Duration) -> Answer<Fate> {
        let Some(status) = found(self.client.wait(tx, patience).await)? else {
            return Ok(Fate::Unknown);
        };
        Ok(match status.status {
            records::Status::Included => {
                let inclusion_micro = status.inclusion_fee.map_or(0, Amount::get);
                Fate::Included { inclusion_micro }
            }
            records::Status::Pending => Fate::Pending,
            records::Status::Dropped => {
                let code = status.dropped.as_ref().map(|dropped| dropped.code.clone());
                Fate::Dropped(code.unwrap_or_default())
            }
        })
    }

    async fn stake(&self, address: &Address) -> Answer<Option<Stake>> {
        if !self.has_bonds.load(Ordering::Relaxed) {
            if !self.client.is_v7_active().await.map_err(error)? {
                return Ok(None);
            }
            self.has_bonds.store(true, Ordering::Relaxed);
        }
        let told = self.client.bond(address).await.map_err(error)?.into_value();
        let unbonding = told.unbonding.iter().map(|payment| payment.amount.get());
        Ok(Some(Stake {
            bonded_micro: told.bonded.get(),
            locked_micro: told.locked.get(),
            unbonding_micro: unbonding.fold(0, u64::saturating_add),
            rewards_held: told.rewards_held,
            rewards_refused: told.rewards_refused,
        }))
    }

    async fn held(&self, miner: &Address) -> Answer<Held> {
        let listed = self.list(json!({ "miner": miner }), HELD_RUNS_MAX).await?;
        Ok(Held::of(&listed.runs))
    }

    async fn blob(&self, id: &str) -> Answer<Option<BlobView>> {
        let blob = found(self.client.call::<Blob, _>("ombra_getBlob", [id]).await)?;
        Ok(blob.map(|blob| {
            let Blob { owner, received, is_final, content_hash } = blob.into_value();
            BlobView { owner, received, is_final, content_hash }
        }))
    }
}

/// A subscription to runs that open, and to claims in blocks and in the pool.
#[derive(Debug)]
pub struct Subscription {
    client: Client,
    open: Option<(Events, Events)>,
}

impl Subscription {
    /// Nothing is asked of the node yet.
    #[must_use]
    pub const fn new(client: Client) -> Self {
        Self { client, open: None }
    }
}

#[async_trait]
impl Watch for Subscription {
    async fn begin(&mut self, height: u64) -> Answer<()> {
        self.open = None;
        let all = Map::new();
        let runs = self.client.subscribe(Kind::AgentRuns, all, Some(height.max(1))).await;
        let claims = Map::from_iter([("type".to_owned(), json!("AGENT_CLAIM"))]);
        let pool = self.client.subscribe(Kind::Pool, claims, None).await;
        self.open = Some((runs.map_err(error)?, pool.map_err(error)?));
        Ok(())
    }

    async fn next(&mut self) -> Answer<Notice> {
        let Some((runs, pool)) = &mut self.open else {
            return Err(ChainError::Away("there is no subscription".into()));
        };
        loop {
            let notice = tokio::select! {
                event = runs.next() => run_notice(&event.map_err(error)?.into_value()),
                event = pool.next() => claim_notice(&event.map_err(error)?.into_value()),
            };
            if let Some(notice) = notice {
                return Ok(notice);
            }
        }
    }
}

/// A run that waits for a miner, because it was created or is open again after a claim lapsed, or one that
/// a miner has now.
fn run_notice(event: &Value) -> Option<Notice> {
    let run = event["agentRunId"].as_str()?.parse().ok()?;
    match event["status"].as_str()? {
        "pending" => Some(Notice::Open(run)),
        "claimed" => {
            let miner = event["minerAddress"].as_str()?.parse().ok()?;
            Some(Notice::Claimed { run, miner })
        }
        _ => None,
    }
}

/// A claim that the pool took in and that the next blocks may hold. One that waits for an earlier
/// transaction may wait for ever, and costs nobody anything. Older nodes do not tell which it is.
fn claim_notice(event: &Value) -> Option<Notice> {
    let is_accepted = event["event"] == "accepted" && event["standing"] != "queued";
    let run = event["tx"]["agentRunId"].as_str()?.parse().ok()?;
    let miner = event["from"].as_str()?.parse().ok()?;
    is_accepted.then_some(Notice::Claim { run, miner })
}

#[cfg(test)]
mod tests;
