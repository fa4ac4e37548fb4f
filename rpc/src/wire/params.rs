//! Parameters that are more than one text.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use types::{Address, Hash};

use super::{AddressText, ExecutorText, HashText};
use crate::cursor::{self, Position};
use crate::error::RpcError;
use crate::{PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX, SUBMIT_ITEMS_MAX};

/// Which block: an index, a hash, or `"latest"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockSelector {
    /// By index.
    Index(u64),
    /// By hash.
    Hash(Hash),
    /// The newest.
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

/// Which miner: an address or a `minerId`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MinerSelector {
    /// By account.
    Address(Address),
    /// By id.
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

/// How many entries a page may have: 1 to 500.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageLimit(usize);

impl Default for PageLimit {
    fn default() -> Self {
        Self(PAGE_ITEMS_DEFAULT)
    }
}

impl PageLimit {
    /// One entry.
    pub(crate) const ONE: Self = Self(1);

    /// The number.
    #[must_use]
    pub const fn get(self) -> usize {
        self.0
    }
}

impl<'de> Deserialize<'de> for PageLimit {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let limit = u64::deserialize(reader)?;
        usize::try_from(limit)
            .ok()
            .filter(|limit| (1..=PAGE_ITEMS_MAX).contains(limit))
            .map(Self)
            .ok_or_else(|| {
                de::Error::invalid_value(
                    de::Unexpected::Unsigned(limit),
                    &"an integer from 1 to 500",
                )
            })
    }
}

impl JsonSchema for PageLimit {
    fn schema_name() -> Cow<'static, str> {
        "PageLimit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": 500, "default": 30 })
    }
}

/// Which part of a list.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Page {
    /// The `nextCursor` of the page before.
    #[serde(default)]
    pub cursor: Option<String>,
    /// The most entries.
    #[serde(default)]
    pub limit: Option<PageLimit>,
}

impl Page {
    /// The position to go on from.
    pub(crate) fn position<P: Position>(&self) -> Result<Option<P>, RpcError> {
        self.cursor.as_deref().map(cursor::decode).transpose()
    }

    /// With this many entries, 1 to 500, if the client does not say.
    pub(crate) fn or(self, limit: usize) -> Self {
        Self { limit: self.limit.or(Some(PageLimit(limit))), ..self }
    }

    /// The most entries.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit.unwrap_or_default().get()
    }
}

/// Which blocks to list, newest first.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BlocksQuery {
    /// The lowest index.
    #[serde(default)]
    pub from: Option<u64>,
    /// The highest index.
    #[serde(default)]
    pub to: Option<u64>,
    /// The `nextCursor` of the page before.
    #[serde(default)]
    pub cursor: Option<String>,
    /// The most entries.
    #[serde(default)]
    pub limit: Option<PageLimit>,
}

/// Which runs to list; conditions that are given must all hold.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunQuery {
    /// The status now.
    #[serde(default)]
    pub status: Option<String>,
    /// Who asked.
    #[serde(default)]
    pub submitter: Option<AddressText>,
    /// Who claimed it.
    #[serde(default)]
    pub miner: Option<AddressText>,
    /// The conversation.
    #[serde(default)]
    pub conversation_id: Option<HashText>,
}

/// Which offers to list; conditions that are given must both hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OfferQuery {
    /// For which executor.
    #[serde(default)]
    pub executor: Option<ExecutorText>,
    /// Whose.
    #[serde(default)]
    pub miner: Option<AddressText>,
}

/// Which agents to list; conditions that are given must all hold of the latest version.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentQuery {
    /// Whose.
    #[serde(default)]
    pub owner: Option<AddressText>,
    /// With this tag.
    #[serde(default)]
    pub tag: Option<String>,
    /// That need this executor.
    #[serde(default)]
    pub executor: Option<String>,
    /// With this text in name, description or tags, whatever the case of its letters.
    #[serde(default)]
    pub text: Option<String>,
    /// Whether the answers of two miners can be compared.
    #[serde(default)]
    pub deterministic: Option<bool>,
}

/// Signed transactions of one submission, each with its signer's text. Of a longer array only
/// the first are kept, so that its length cannot cost more than its bytes.
#[derive(Clone, Debug)]
pub struct TxTexts {
    /// The texts, at most [`SUBMIT_ITEMS_MAX`].
    pub texts: Vec<Box<RawValue>>,
    /// How many there were.
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
    /// Milliseconds, at most 60,000; 30,000 if not given.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// What to prove: exactly one of the members.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProofQuery {
    /// An account's balance and nonce.
    #[serde(default)]
    pub account: Option<AddressText>,
    /// A run's record.
    #[serde(default)]
    pub agent_run: Option<HashText>,
    /// `true`: the validators of the next heights.
    #[serde(default)]
    pub validators: Option<bool>,
    /// An account's bond.
    #[serde(default)]
    pub bond: Option<AddressText>,
    /// A miner's offer.
    #[serde(default)]
    pub offer: Option<OfferProof>,
    /// An agent's record.
    #[serde(default)]
    pub agent: Option<HashText>,
    /// A call's record.
    #[serde(default)]
    pub call: Option<HashText>,
}

/// Which offer to prove.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OfferProof {
    /// Whose.
    pub miner: AddressText,
    /// For which executor.
    pub executor: ExecutorText,
}

/// What to do with a peer: exactly one of `add`, `addGossip`, `remove`, `ban` and `unban`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PeerQuery {
    /// A multiaddress to stay connected to for consensus.
    #[serde(default)]
    pub add: Option<String>,
    /// A multiaddress to stay connected to for transactions.
    #[serde(default)]
    pub add_gossip: Option<String>,
    /// A peer id or multiaddress to disconnect from.
    #[serde(default)]
    pub remove: Option<String>,
    /// A peer id to keep out of the exchange of transactions.
    #[serde(default)]
    pub ban: Option<String>,
    /// With `ban`: for how long; an hour unless told otherwise.
    #[serde(default)]
    pub seconds: Option<u64>,
    /// A peer id to let in again.
    #[serde(default)]
    pub unban: Option<String>,
}

/// What to subscribe to.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum EventKind {
    /// Every block.
    Blocks,
    /// Every included transaction.
    Transactions,
    /// Transactions that the pool takes in or drops.
    Pool,
    /// What happens to agent runs.
    AgentRuns,
    /// Turns of conversations.
    Chat,
    /// What happens to calls of agents.
    Calls,
    /// Agents that are registered or retired.
    Agents,
}

/// Which events; conditions that are given must all hold.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EventFilter {
    /// Every event from this block on, before live ones. Not for `pool`.
    #[serde(default)]
    pub from_block: Option<u64>,
    /// `transactions`, `pool`: sent by this account, or moving money to it.
    #[serde(default)]
    pub address: Option<AddressText>,
    /// `transactions`, `pool`: of this type.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
    /// `agentRuns`: of this run.
    #[serde(default)]
    pub agent_run_id: Option<HashText>,
    /// `agentRuns`: of runs that this account asked for.
    #[serde(default)]
    pub submitter: Option<AddressText>,
    /// `agentRuns`: by or about this miner.
    #[serde(default)]
    pub miner: Option<AddressText>,
    /// `agentRuns`: that lead to this status.
    #[serde(default)]
    pub status: Option<String>,
    /// `chat`: of this conversation.
    #[serde(default)]
    pub conversation_id: Option<HashText>,
    /// `calls`: of this call.
    #[serde(default)]
    pub call_id: Option<HashText>,
    /// `calls`, `agents`: of this agent.
    #[serde(default)]
    pub agent_id: Option<HashText>,
    /// `calls`: of calls that this account paid.
    #[serde(default)]
    pub requester: Option<AddressText>,
    /// `calls`: of calls that this account was drawn for.
    #[serde(default)]
    pub member: Option<AddressText>,
    /// `agents`: of this account.
    #[serde(default)]
    pub owner: Option<AddressText>,
}
