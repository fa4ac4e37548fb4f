//! Calls of the market, agents and offers over the wallet's client of a node.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use types::agent::ExecutorId;
use types::call::{Answer, CallLimits, CallStatus, Outcome};
use types::{Address, Amount, Hash, Offer, Prices, Usage};
use wallet::Client;
use wallet::client::records::Items;
use wallet::client::{Events, Kind};

use super::{Answer as Answered, Node, PAGES_MAX, error, found, page};
use crate::chain::{CallView, CallWatch, Calls, ChainError, Ledger, MemberView, RoundView};

/// Calls and offers in one page of a list.
const PAGE: u32 = 100;
/// Calls of one status for which a miner was drawn: more than the capacity of 64 offers of 64 calls.
const CALLS_MAX: usize = 8_192;

/// The consensus of calls whose members may give different answers.
const THRESHOLD: &str = "threshold";

/// A call in a list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    call_id: Hash,
}

/// What `ombra_getCall` tells.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    call_id: Hash,
    agent_id: Hash,
    agent_version: String,
    requester: Address,
    status: String,
    settled: bool,
    consensus: String,
    limits: Limits,
    budget: Amount,
    payload_hash: Hash,
    deadline_at: Option<u64>,
    rounds: Vec<Round>,
    payload: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Limits {
    input_tokens: u64,
    output_tokens: u64,
    fuel: u64,
    result_bytes: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Round {
    decided_at: Option<u64>,
    #[serde(default)]
    members: Vec<Member>,
}

#[derive(Deserialize)]
struct Member {
    address: Address,
    commitment: Option<Commitment>,
    reveal: Option<Reveal>,
    agreed: Option<bool>,
    paid: Amount,
    penalty: Amount,
}

#[derive(Deserialize)]
struct Commitment {
    hash: Hash,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reveal {
    outcome: String,
    result_hash: Hash,
    input_tokens: u64,
    output_tokens: u64,
    fuel: u64,
    receipt_hash: Hash,
}

/// What `ombra_getAgent` tells.
#[derive(Deserialize)]
struct Agent {
    version: Version,
    metadata: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    metadata_hash: Hash,
}

/// What `ombra_listOffers` tells.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Offered {
    executor: ExecutorId,
    capacity: u64,
    per_call: Amount,
    prompt_per_m: Amount,
    completion_per_m: Amount,
    fuel_per_g: Amount,
}

fn strange(what: impl Into<String>) -> ChainError {
    ChainError::Strange(what.into())
}

fn member(member: Member) -> Answered<MemberView> {
    let Member { address, commitment, reveal, agreed, paid, penalty } = member;
    let answer = |reveal: Reveal| {
        let Reveal { outcome, result_hash, input_tokens, output_tokens, fuel, receipt_hash } =
            reveal;
        let outcome = Outcome::parse(&outcome)
            .ok_or_else(|| strange(format!("a member says {outcome:?}")))?;
        let usage = Usage { input_tokens, output_tokens, fuel };
        Ok(Answer { outcome, result_hash, usage, receipt_hash })
    };
    Ok(MemberView {
        address,
        commitment: commitment.map(|it| it.hash),
        revealed: reveal.map(answer).transpose()?,
        agreed,
        paid_micro: paid.get(),
        penalty_micro: penalty.get(),
    })
}

fn round(round: Round) -> Answered<RoundView> {
    let members = round.members.into_iter().map(member).collect::<Answered<_>>()?;
    Ok(RoundView { is_decided: round.decided_at.is_some(), members })
}

fn view(told: Told) -> Answered<CallView> {
    let status = CallStatus::parse(&told.status)
        .ok_or_else(|| strange(format!("a call has the status {:?}", told.status)))?;
    let bytes = |text: String| {
        const_hex::decode(&text).map_err(|_unread| strange("the payload of a call is not hex"))
    };
    let Limits { input_tokens, output_tokens, fuel, result_bytes } = told.limits;
    Ok(CallView {
        id: told.call_id,
        agent: told.agent_id,
        version: told.agent_version,
        requester: told.requester,
        status,
        is_settled: told.settled,
        is_compared: told.consensus != THRESHOLD,
        limits: CallLimits { usage: Usage { input_tokens, output_tokens, fuel }, result_bytes },
        budget_micro: told.budget.get(),
        payload: told.payload.map(bytes).transpose()?,
        payload_hash: told.payload_hash,
        deadline_ms: told.deadline_at,
        rounds: told.rounds.into_iter().map(round).collect::<Answered<_>>()?,
    })
}

impl Node {
    /// All items of a list that the node has, at most so many and a page.
    async fn all<T: for<'a> Deserialize<'a>>(
        &self,
        method: &'static str,
        filter: &Value,
        items_max: usize,
    ) -> Answered<Vec<T>> {
        let mut items = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let wanted = match &cursor {
                None => json!({ "limit": PAGE }),
                Some(cursor) => json!({ "limit": PAGE, "cursor": cursor }),
            };
            let answer = self.client.call::<Items<T>, _>(method, (filter, wanted)).await;
            let Ok(answer) = page(answer)? else { break };
            items.extend(answer.items);
            cursor = answer.next_cursor;
            if cursor.is_none() || items.len() >= items_max {
                break;
            }
        }
        Ok(items)
    }
}

#[async_trait]
impl Calls for Node {
    async fn bond_micro_min(&self) -> Answered<Option<u64>> {
        let chain = self.client.call::<Value, _>("ombra_chainInfo", wallet::client::NO_PARAMS);
        let chain = chain.await.map_err(error)?.into_value();
        let next = chain["height"].as_u64().unwrap_or_default().saturating_add(1);
        if chain["forks"]["v8"].as_u64().is_none_or(|from| from > next) {
            return Ok(None);
        }
        let params = self.client.params().await.map_err(error)?.into_value();
        let params = params["params"].as_array().cloned().unwrap_or_default();
        let least = params.iter().find(|it| it["name"] == "minBond");
        match least.and_then(|it| it["value"].as_u64()) {
            Some(micro) => Ok(Some(micro)),
            None => Err(strange("there is no minBond among the parameters of a chain with v8")),
        }
    }

    async fn assigned(&self, miner: &Address) -> Answered<Vec<Hash>> {
        let mut calls = Vec::new();
        for status in [CallStatus::Committing, CallStatus::Revealing] {
            let filter = json!({ "member": miner, "status": status.as_str() });
            let listed = self.all::<Listed>("ombra_listCalls", &filter, CALLS_MAX).await?;
            calls.extend(listed.into_iter().map(|it| it.call_id));
        }
        Ok(calls)
    }

    async fn drawn(&self, miner: &Address, count: usize) -> Answered<Vec<Hash>> {
        let filter = json!({ "member": miner });
        let listed = self.all::<Listed>("ombra_listCalls", &filter, count).await?;
        Ok(listed.into_iter().map(|it| it.call_id).collect())
    }

    async fn call(&self, id: &Hash) -> Answered<Option<CallView>> {
        let told = found(self.client.call::<Told, _>("ombra_getCall", [id]).await)?;
        told.map(|told| view(told.into_value())).transpose()
    }

    async fn metadata(&self, agent: &Hash, version: &str) -> Answered<Option<String>> {
        let told = self.client.call::<Agent, _>("ombra_getAgent", (agent, version)).await;
        let Some(told) = found(told)? else { return Ok(None) };
        let Agent { version: Version { metadata_hash }, metadata } = told.into_value();
        if Hash::digest(metadata.as_bytes()) != metadata_hash {
            return Err(strange(format!("the metadata of the agent {agent} have another hash")));
        }
        Ok(Some(metadata))
    }

    async fn program(&self, blob: &str, bytes_max: usize) -> Answered<Option<Vec<u8>>> {
        let Some(record) = self.blob(blob).await?.filter(|it| it.is_final) else {
            return Ok(None);
        };
        let Some(bytes) = self.blob_bytes(blob, bytes_max).await? else { return Ok(None) };
        if Hash::digest(&bytes) != record.content_hash {
            return Err(strange(format!("the blob {blob} has another hash")));
        }
        Ok(Some(bytes))
    }

    async fn offers(&self, miner: &Address) -> Answered<Vec<(ExecutorId, Offer)>> {
        let filter = json!({ "miner": miner });
        let offers = self.all::<Offered>("ombra_listOffers", &filter, usize::MAX).await?;
        let offer = |it: Offered| {
            let Offered { per_call, prompt_per_m, completion_per_m, fuel_per_g, .. } = it;
            let prices = Prices { per_call, prompt_per_m, completion_per_m, fuel_per_g };
            (it.executor, Offer { capacity: it.capacity, prices })
        };
        Ok(offers.into_iter().map(offer).collect())
    }
}

/// A subscription to the calls for which a miner was drawn.
#[derive(Debug)]
pub struct CallSubscription {
    client: Client,
    miner: Address,
    open: Option<Events>,
}

impl CallSubscription {
    /// Nothing is asked of the node yet.
    #[must_use]
    pub const fn new(client: Client, miner: Address) -> Self {
        Self { client, miner, open: None }
    }
}

#[async_trait]
impl CallWatch for CallSubscription {
    async fn begin(&mut self, height: u64) -> Answered<()> {
        self.open = None;
        let mine = Map::from_iter([("member".to_owned(), json!(self.miner))]);
        let calls = self.client.subscribe(Kind::Calls, mine, Some(height.max(1))).await;
        self.open = Some(calls.map_err(error)?);
        Ok(())
    }

    async fn next(&mut self) -> Answered<Hash> {
        let Some(calls) = &mut self.open else {
            return Err(ChainError::Away("there is no subscription".into()));
        };
        loop {
            let event = calls.next().await.map_err(error)?.into_value();
            if let Some(Ok(call)) = event["callId"].as_str().map(str::parse) {
                return Ok(call);
            }
        }
    }
}
