//! Parameters in paths and queries: from texts to types, with errors that name them.

use std::borrow::Cow;
use std::str::FromStr;

use axum::http::Uri;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, DeserializeOwned, Deserializer};
use types::{Address, Hash};

use crate::error::RpcError;
use crate::service::search::Name;
use crate::transport::fault::describe;
use crate::wire::{AddressText, HashText, PageLimit};

/// The most bytes of a query. The longest that means something is far shorter.
pub(super) const QUERY_BYTES_MAX: usize = 4 * 1024;

/// Reads a query, or the parameters of a path in its form.
pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T, RpcError> {
    let pairs = || form_urlencoded::parse(text.as_bytes());
    let reader = serde_urlencoded::Deserializer::new(pairs());
    serde_path_to_error::deserialize(reader).map_err(|error| {
        let fault = describe(error.path(), &error.inner().to_string());
        let given = pairs().find(|(name, _)| *name == fault.path).map(|(_, value)| value);
        let got = fault.got.map_or_else(|| given.unwrap_or_default().into_owned(), str::to_owned);
        RpcError::invalid(fault.path, got, whole_number(fault.expected))
    })
}

/// A path that is no text.
pub(super) fn not_text(uri: &Uri) -> RpcError {
    RpcError::invalid("path", uri.path(), "UTF-8 in percent-encoding")
}

/// The standard library's words about a text that is no number, in ours.
fn whole_number(expected: String) -> String {
    let is_about_digits = ["invalid digit", "number too", "cannot parse integer"];
    if is_about_digits.iter().any(|beginning| expected.starts_with(beginning)) {
        return "a whole number".to_owned();
    }
    expected
}

/// A text of a fixed form in a path.
macro_rules! one_param {
    ($(#[$doc:meta])* $name:ident { $(#[$field_doc:meta])* $field:ident: $type:ty }) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub(super) struct $name {
            $(#[$field_doc])*
            pub(super) $field: $type,
        }
    };
}

one_param!(
    /// Which block.
    BlockPath {
        /// The index of the block, or its hash. Index 0 is the genesis.
        index: BlockName
    }
);
one_param!(
    /// A hash in a path.
    HashPath {
        /// The hash: 64 lowercase hex characters.
        hash: HashText
    }
);
one_param!(
    /// An address in a path.
    AddressPath {
        /// The address, in either written form.
        address: AddressText
    }
);
one_param!(
    /// The id of a run, a conversation, an agent or a call in a path.
    IdPath {
        /// The id: 64 lowercase hex characters.
        id: HashText
    }
);
one_param!(
    /// A run status in a path.
    StatusPath {
        /// The status of the runs: `pending`, `claimed`, `running`, `completed`, `failed`,
        /// `timeout`, `insufficient_funds` or `cancelled`.
        status: String
    }
);
one_param!(
    /// A `minerId` in a path.
    MinerPath {
        /// The `minerId` of the miner.
        id: HashText
    }
);
one_param!(
    /// What to search for.
    SearchPath {
        /// A block index, a hash, an address, or the id of a run, a conversation or a miner.
        query: String
    }
);
one_param!(
    /// A limit on the number of entries.
    LimitQuery {
        /// The maximum number of entries.
        #[serde(default)]
        limit: Option<PageLimit>
    }
);

impl LimitQuery {
    /// The maximum number of entries; `otherwise` if the client gives none.
    pub(super) fn or(&self, otherwise: usize) -> usize {
        self.limit.map_or(otherwise, PageLimit::get)
    }
}

/// A block by index or hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BlockName {
    /// By index.
    Index(u64),
    /// By hash.
    Hash(Hash),
}

impl FromStr for BlockName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let index = text.parse().ok().filter(|_| is_number && text.len() < 64).map(Self::Index);
        index
            .or_else(|| Hash::parse(text).ok().map(Self::Hash))
            .ok_or("a block index, or a block hash of 64 lowercase hex characters")
    }
}

impl<'de> Deserialize<'de> for BlockName {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(reader)?;
        text.parse().map_err(|expected: &str| {
            de::Error::invalid_value(de::Unexpected::Str(&text), &expected)
        })
    }
}

impl JsonSchema for BlockName {
    fn schema_name() -> Cow<'static, str> {
        "BlockName".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let hash = generator.subschema_for::<HashText>();
        json_schema!({ "oneOf": [{ "type": "integer", "minimum": 0 }, hash] })
    }
}

/// A page of a list, counted from the newest entry.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OffsetQuery {
    /// The maximum number of entries, 1 to 100. 20 if absent.
    #[serde(default)]
    pub(super) limit: Option<u64>,
    /// How many of the newest entries to skip.
    #[serde(default)]
    pub(super) offset: Option<u64>,
}

/// A range of blocks.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RangeQuery {
    /// The index of the first block. 1 if absent.
    #[serde(default)]
    pub(super) from: Option<u64>,
    /// The index of the last block, at most 499 above the first.
    #[serde(default)]
    pub(super) to: Option<u64>,
}

/// A filter for agents, and a page of the list.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AgentsQuery {
    /// The owner of the agent.
    #[serde(default)]
    pub(super) owner: Option<AddressText>,
    /// A tag that the agent has.
    #[serde(default)]
    pub(super) tag: Option<String>,
    /// An executor that the agent needs.
    #[serde(default)]
    pub(super) executor: Option<String>,
    /// A text in the name, the description or a tag, regardless of case.
    #[serde(default)]
    pub(super) text: Option<String>,
    /// Whether the answers of different miners can be compared.
    #[serde(default)]
    pub(super) deterministic: Option<bool>,
    /// The `nextCursor` of the previous page. The first page if absent.
    #[serde(default)]
    pub(super) cursor: Option<String>,
    /// The maximum number of entries, at most 50. 30 if absent.
    #[serde(default)]
    pub(super) limit: Option<PageLimit>,
}

/// A version of an agent.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct VersionQuery {
    /// The version of the agent. The latest if absent.
    #[serde(default)]
    pub(super) version: Option<String>,
}

/// A filter for calls, and a page of the list.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CallsQuery {
    /// The agent that was called.
    #[serde(default)]
    pub(super) agent_id: Option<HashText>,
    /// The account that requested the call.
    #[serde(default)]
    pub(super) requester: Option<AddressText>,
    /// A miner that was drawn as a member in either round.
    #[serde(default)]
    pub(super) member: Option<AddressText>,
    /// The current status of the call.
    #[serde(default)]
    pub(super) status: Option<String>,
    /// The `nextCursor` of the previous page. The first page if absent.
    #[serde(default)]
    pub(super) cursor: Option<String>,
    /// The maximum number of entries, at most 100. 30 if absent.
    #[serde(default)]
    pub(super) limit: Option<PageLimit>,
}

/// A page of a list in the order of addresses.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AfterQuery {
    /// The address of the last entry of the previous page. The first page if absent.
    #[serde(default)]
    pub(super) after: Option<AddressText>,
    /// The maximum number of entries. 500 if absent.
    #[serde(default)]
    pub(super) limit: Option<PageLimit>,
}

/// What a text can be the name of; none if it cannot be the name of anything.
pub(super) fn parse_name(text: &str) -> Option<Name> {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    match text.parse::<BlockName>() {
        Ok(BlockName::Index(index)) if text.len() < 40 => return Some(Name::Index(index)),
        _ => {}
    }
    let hash = Hash::parse(&lower).ok().map(Name::Hash);
    hash.or_else(|| Address::parse(&lower).ok().map(Name::Address))
}

#[cfg(test)]
mod tests {
    //! What clients write into paths and queries.

    use super::*;

    fn told<T: DeserializeOwned>(text: &str) -> String {
        read::<T>(text).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_parameter_that_is_wrong_is_named_with_what_would_be_right() {
        let not_a_number = "invalid parameter offset: ten, expected a whole number";
        assert_eq!(not_a_number, told::<OffsetQuery>("limit=5&offset=ten"));
        let too_many = "invalid parameter limit: 501, expected an integer from 1 to 500";
        assert_eq!(too_many, told::<LimitQuery>("limit=501"));
        assert!(told::<LimitQuery>("limt=5").starts_with("invalid parameter limt: unknown"));
        assert!(told::<BlockPath>("index=latest").contains("a block index, or a block hash"));
        assert!(told::<AddressPath>("address=1").starts_with("invalid parameter address: 1"));
    }

    #[test]
    fn a_name_is_told_by_its_form() {
        assert_eq!(Some(Name::Index(7)), parse_name(" 7 "));
        let hash = "AB".repeat(32);
        assert!(matches!(parse_name(&hash), Some(Name::Hash(_))));
        let digits = "1".repeat(40);
        assert!(matches!(parse_name(&digits), Some(Name::Address(_))));
        assert_eq!(None, parse_name("what?"));
        assert_eq!(None, parse_name(""));
    }
}
