//! Pages of lists.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};

use crate::cursor::{self, Position};
use crate::error::RpcError;

/// Entries of a page if the client does not say.
pub const PAGE_ITEMS_DEFAULT: usize = 30;
/// The most entries of a page.
pub const PAGE_ITEMS_MAX: usize = 500;

/// The maximum number of entries in a page: 1 to 500.
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

/// A page of a list.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Page {
    /// The `nextCursor` of the previous page. The first page if absent.
    #[serde(default)]
    pub cursor: Option<String>,
    /// The maximum number of entries.
    #[serde(default)]
    pub limit: Option<PageLimit>,
}

impl Page {
    /// The position from which to continue.
    pub(crate) fn position<P: Position>(&self) -> Result<Option<P>, RpcError> {
        self.cursor.as_deref().map(cursor::decode).transpose()
    }

    /// The same page with a limit of this many entries, 1 to 500, if the client gives none.
    pub(crate) fn or(self, limit: usize) -> Self {
        Self { limit: self.limit.or(Some(PageLimit(limit))), ..self }
    }

    /// The maximum number of entries.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit.unwrap_or_default().get()
    }
}

/// One page of a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageOf<T> {
    /// The entries of the page.
    pub items: Vec<T>,
    /// The cursor of the next page. `null` at the end of the list.
    pub next_cursor: Option<String>,
}
