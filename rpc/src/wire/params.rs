//! Parameters of methods that consist of several values.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use types::{Address, Hash, RunStatus};

use super::{AddressText, ExecutorText, HashText, PageLimit};
use crate::error::RpcError;
use crate::ports::RunFilter;

/// The most transactions of one `ombra_sendTransactions`.
pub const SUBMIT_ITEMS_MAX: usize = 1_000;

/// A block, named by its index, its hash, or `"latest"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockSelector {
    /// The block with this index.
    Index(u64),
    /// The block with this hash.
    Hash(Hash),
    /// The latest block.
    Latest,
}

impl<'de> Deserialize<'de> for BlockSelector {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Selector;

        impl Visitor<'_> for Selector {
            type Value = BlockSelector;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a block index, a block hash of 64 lowercase hex characters, or \"latest\"",
                )
            }

            fn visit_u64<E>(self, index: u64) -> Result<BlockSelector, E> {
                Ok(BlockSelector::Index(index))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<BlockSelector, E> {
                if text == "latest" {
                    return Ok(BlockSelector::Latest);
                }
                let unknown = |_| E::invalid_value(de::Unexpected::Str(text), &self);
                Hash::parse(text).map(BlockSelector::Hash).map_err(unknown)
            }
        }

        reader.deserialize_any(Selector)
    }
}

impl JsonSchema for BlockSelector {
    fn schema_name() -> Cow<'static, str> {
        "BlockSelector".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let hash = generator.subschema_for::<HashText>();
        json_schema!({ "oneOf": [{ "type": "integer", "minimum": 1 }, hash, { "const": "latest" }] })
    }
}

/// A miner, named by its address or its `minerId`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MinerSelector {
    /// The miner with this address.
    Address(Address),
    /// The miner with this id.
    Id(Hash),
}

impl<'de> Deserialize<'de> for MinerSelector {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(reader)?;
        let by_id = Hash::parse(&text).map(Self::Id);
        by_id.or_else(|_| Address::parse(&text).map(Self::Address)).map_err(|_error| {
            let expected = "an address or a minerId of 64 lowercase hex characters";
            de::Error::invalid_value(de::Unexpected::Str(&text), &expected)
        })
    }
}

impl JsonSchema for MinerSelector {
    fn schema_name() -> Cow<'static, str> {
        "MinerSelector".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (hash, address) =
            (generator.subschema_for::<HashText>(), generator.subschema_for::<AddressText>());
        json_schema!({ "oneOf": [address, hash] })
    }
}

/// A range of blocks to list, newest first.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BlocksQuery {
    /// The lowest index.
    #[serde(default)]
    pub from: Option<u64>,
    /// The highest index.
    #[serde(default)]
    pub to: Option<u64>,
    /// The `nextCursor` of the previous page. The first page if absent.
    #[serde(default)]
    pub cursor: Option<String>,
    /// The maximum number of entries.
    #[serde(default)]
    pub limit: Option<PageLimit>,
}

/// A filter for runs. A run must meet all conditions that you give.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunQuery {
    /// The current status of the run.
    #[serde(default)]
    pub status: Option<String>,
    /// The account that requested the run.
    #[serde(default)]
    pub submitter: Option<AddressText>,
    /// The miner that claimed the run.
    #[serde(default)]
    pub miner: Option<AddressText>,
    /// The conversation that the run belongs to.
    #[serde(default)]
    pub conversation_id: Option<HashText>,
}

impl RunQuery {
    /// What is asked for, checked.
    ///
    /// # Errors
    /// That there is no such status.
    pub(crate) fn filter(self) -> Result<RunFilter, RpcError> {
        let Self { status, submitter, miner, conversation_id } = self;
        Ok(RunFilter {
            status: status.as_deref().map(parse_run_status).transpose()?,
            submitter: submitter.map(|address| address.0),
            miner: miner.map(|address| address.0),
            conversation_id: conversation_id.map(|id| id.0),
        })
    }
}

/// The status of runs that a word names.
///
/// # Errors
/// That there is none.
pub(crate) fn parse_run_status(word: &str) -> Result<RunStatus, RpcError> {
    RunStatus::parse(word).ok_or_else(|| {
        let words = RunStatus::ALL.map(RunStatus::as_str).join(", ");
        RpcError::invalid("status", word, format!("one of {words}"))
    })
}

/// A filter for offers. An offer must meet all conditions that you give.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OfferQuery {
    /// The executor that the offer is for.
    #[serde(default)]
    pub executor: Option<ExecutorText>,
    /// The miner that made the offer.
    #[serde(default)]
    pub miner: Option<AddressText>,
}

/// A filter for agents. The latest version of an agent must meet all conditions that you give.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentQuery {
    /// The owner of the agent.
    #[serde(default)]
    pub owner: Option<AddressText>,
    /// A tag that the agent has.
    #[serde(default)]
    pub tag: Option<String>,
    /// An executor that the agent needs.
    #[serde(default)]
    pub executor: Option<String>,
    /// A text in the name, the description or a tag, regardless of case.
    #[serde(default)]
    pub text: Option<String>,
    /// Whether the answers of different miners can be compared.
    #[serde(default)]
    pub deterministic: Option<bool>,
}

/// The signed transactions of one submission, each with the text of its signer. Only the first of a
/// longer array are kept, so that its length cannot cost more than its bytes.
#[derive(Clone, Debug)]
pub struct TxTexts {
    /// The texts, at most [`SUBMIT_ITEMS_MAX`].
    pub texts: Vec<Box<RawValue>>,
    /// The number of texts in the submission.
    pub count: usize,
}

impl<'de> Deserialize<'de> for TxTexts {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Texts;

        impl<'de> Visitor<'de> for Texts {
            type Value = TxTexts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of signed transactions")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<TxTexts, A::Error> {
                let mut texts = Vec::new();
                while texts.len() < SUBMIT_ITEMS_MAX
                    && let Some(text) = seq.next_element()?
                {
                    texts.push(text);
                }
                let mut count = texts.len();
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    count = count.saturating_add(1);
                }
                Ok(TxTexts { texts, count })
            }
        }

        reader.deserialize_seq(Texts)
    }
}

/// How long to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WaitOptions {
    /// How long to wait, in milliseconds: at most 60,000. 30,000 if absent.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// What to prove. Give exactly one of the members.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProofQuery {
    /// The address of an account whose balance and nonce to prove.
    #[serde(default)]
    pub account: Option<AddressText>,
    /// The id of a run whose record to prove.
    #[serde(default)]
    pub agent_run: Option<HashText>,
    /// `true` to prove the validators of the next heights.
    #[serde(default)]
    pub validators: Option<bool>,
    /// The address of an account whose bond to prove.
    #[serde(default)]
    pub bond: Option<AddressText>,
    /// The offer to prove.
    #[serde(default)]
    pub offer: Option<OfferProof>,
    /// The id of an agent whose record to prove.
    #[serde(default)]
    pub agent: Option<HashText>,
    /// The id of a call whose record to prove.
    #[serde(default)]
    pub call: Option<HashText>,
}

/// The offer to prove.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OfferProof {
    /// The address of the miner.
    pub miner: AddressText,
    /// The id of the executor.
    pub executor: ExecutorText,
}

/// The change to make. Give exactly one of `add`, `addGossip`, `remove`, `ban` and `unban`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PeerQuery {
    /// The multiaddress of a node to stay connected to for consensus.
    #[serde(default)]
    pub add: Option<String>,
    /// The multiaddress of a node to stay connected to for transactions.
    #[serde(default)]
    pub add_gossip: Option<String>,
    /// The peer id or multiaddress of a peer to disconnect from.
    #[serde(default)]
    pub remove: Option<String>,
    /// The peer id of a peer to keep out of the transactions network.
    #[serde(default)]
    pub ban: Option<String>,
    /// How long the `ban` lasts, in seconds. An hour if absent.
    #[serde(default)]
    pub seconds: Option<u64>,
    /// The peer id of a peer to let in again.
    #[serde(default)]
    pub unban: Option<String>,
}

/// What to subscribe to.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum EventKind {
    /// Every new block.
    Blocks,
    /// Every included transaction.
    Transactions,
    /// Transactions that the pool accepts or drops.
    Pool,
    /// Events of agent runs.
    AgentRuns,
    /// Turns of conversations.
    Chat,
    /// Events of calls of agents.
    Calls,
    /// Registrations and retirements of agents.
    Agents,
}

/// A filter for events. An event must meet all conditions that you give.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EventFilter {
    /// The block from which to replay events before live ones. Not for `pool`.
    #[serde(default)]
    pub from_block: Option<u64>,
    /// The sender of the transaction, or the receiver of its money. For `transactions` and `pool`.
    #[serde(default)]
    pub address: Option<AddressText>,
    /// The type of the transaction. For `transactions` and `pool`.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
    /// The id of the run. For `agentRuns`.
    #[serde(default)]
    pub agent_run_id: Option<HashText>,
    /// The account that requested the run. For `agentRuns`.
    #[serde(default)]
    pub submitter: Option<AddressText>,
    /// The miner that caused the event, or that the event is about. For `agentRuns`.
    #[serde(default)]
    pub miner: Option<AddressText>,
    /// The status of the run after the event. For `agentRuns`.
    #[serde(default)]
    pub status: Option<String>,
    /// The id of the conversation. For `chat`.
    #[serde(default)]
    pub conversation_id: Option<HashText>,
    /// The id of the call. For `calls`.
    #[serde(default)]
    pub call_id: Option<HashText>,
    /// The id of the agent. For `calls` and `agents`.
    #[serde(default)]
    pub agent_id: Option<HashText>,
    /// The account that requested the call. For `calls`.
    #[serde(default)]
    pub requester: Option<AddressText>,
    /// A miner that was drawn as a member of the call. For `calls`.
    #[serde(default)]
    pub member: Option<AddressText>,
    /// The owner of the agent. For `agents`.
    #[serde(default)]
    pub owner: Option<AddressText>,
}
