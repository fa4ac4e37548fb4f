//! Parameters in paths and queries: from texts to types, with errors that name them.

use std::borrow::Cow;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, DeserializeOwned, Deserializer};
use serde::{Deserialize, Serialize};
use types::{Address, Hash};

use crate::error::RpcError;
use crate::registry::describe;
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
    /// A block.
    BlockPath {
        /// Its index, or its hash. 0 is genesis.
        index: BlockName
    }
);
one_param!(
    /// A hash.
    HashPath {
        /// 64 hex characters.
        hash: HashText
    }
);
one_param!(
    /// An account.
    AddressPath {
        /// Its address, in either written form.
        address: AddressText
    }
);
one_param!(
    /// A run, a conversation, an agent or a call.
    IdPath {
        /// Its id.
        id: HashText
    }
);
one_param!(
    /// A status of runs.
    StatusPath {
        /// `pending`, `claimed`, `running`, `completed`, `failed`, `timeout`, `insufficient_funds`
        /// or `cancelled`.
        status: String
    }
);
one_param!(
    /// A miner.
    MinerPath {
        /// Its `minerId`.
        id: HashText
    }
);
one_param!(
    /// What to look for.
    SearchPath {
        /// An index, a hash, an address, or the id of a run or a conversation.
        query: String
    }
);
one_param!(
    /// How many entries.
    LimitQuery {
        /// The most entries.
        #[serde(default)]
        limit: Option<PageLimit>
    }
);

impl LimitQuery {
    /// The most entries; `otherwise` if the client does not say.
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

/// Which part of a list that is counted from its newest entry.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OffsetQuery {
    /// The most entries, 1 to 100; 20 if not given.
    #[serde(default)]
    pub(super) limit: Option<u64>,
    /// How many of the newest to leave out.
    #[serde(default)]
    pub(super) offset: Option<u64>,
}

/// Which blocks.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RangeQuery {
    /// The first index; 1 if not given.
    #[serde(default)]
    pub(super) from: Option<u64>,
    /// The last index; at most 499 above the first.
    #[serde(default)]
    pub(super) to: Option<u64>,
}

/// Which agents, and which part of them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AgentsQuery {
    /// Whose.
    #[serde(default)]
    pub(super) owner: Option<AddressText>,
    /// With this tag.
    #[serde(default)]
    pub(super) tag: Option<String>,
    /// That need this executor.
    #[serde(default)]
    pub(super) executor: Option<String>,
    /// With this text in name, description or tags, whatever the case of its letters.
    #[serde(default)]
    pub(super) text: Option<String>,
    /// Whether the answers of two miners can be compared.
    #[serde(default)]
    pub(super) deterministic: Option<bool>,
    /// The `nextCursor` of the page before.
    #[serde(default)]
    pub(super) cursor: Option<String>,
    /// The most entries, at most 50; 30 if not given.
    #[serde(default)]
    pub(super) limit: Option<PageLimit>,
}

/// Which version of an agent.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct VersionQuery {
    /// The version; the latest if not given.
    #[serde(default)]
    pub(super) version: Option<String>,
}

/// Which calls, and which part of them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CallsQuery {
    /// Of this agent.
    #[serde(default)]
    pub(super) agent_id: Option<HashText>,
    /// Who asked.
    #[serde(default)]
    pub(super) requester: Option<AddressText>,
    /// Who was drawn, for either round.
    #[serde(default)]
    pub(super) member: Option<AddressText>,
    /// The status now.
    #[serde(default)]
    pub(super) status: Option<String>,
    /// The `nextCursor` of the page before.
    #[serde(default)]
    pub(super) cursor: Option<String>,
    /// The most entries, at most 100; 30 if not given.
    #[serde(default)]
    pub(super) limit: Option<PageLimit>,
}

/// Which part of a list that is in order of addresses.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AfterQuery {
    /// The address of the last entry of the part before.
    #[serde(default)]
    pub(super) after: Option<AddressText>,
    /// The most entries; 500 if not given.
    #[serde(default)]
    pub(super) limit: Option<PageLimit>,
}

/// A text that names something: what it can be the name of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(super) enum Name {
    /// Digits: a block.
    Index(u64),
    /// 64 hex characters: a block, a transaction, a run, a conversation or a miner.
    Hash(Hash),
    /// An account.
    Address(Address),
}

impl Name {
    /// None if it cannot be the name of anything.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let lower = text.to_ascii_lowercase();
        match text.parse::<BlockName>() {
            Ok(BlockName::Index(index)) if text.len() < 40 => return Some(Self::Index(index)),
            _ => {}
        }
        let hash = Hash::parse(&lower).ok().map(Self::Hash);
        hash.or_else(|| Address::parse(&lower).ok().map(Self::Address))
    }
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
        assert_eq!(Some(Name::Index(7)), Name::parse(" 7 "));
        let hash = "AB".repeat(32);
        assert!(matches!(Name::parse(&hash), Some(Name::Hash(_))));
        let digits = "1".repeat(40);
        assert!(matches!(Name::parse(&digits), Some(Name::Address(_))));
        assert_eq!(None, Name::parse("what?"));
        assert_eq!(None, Name::parse(""));
    }
}
