//! What a node answered: its text, and what it says.

use std::fmt;
use std::ops::Deref;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::ClientError;

/// An answer of a node: the JSON text exactly as it was sent, and its meaning as a `T`.
#[derive(Clone, Debug)]
pub struct Answer<T = Value> {
    text: Box<RawValue>,
    value: T,
}

impl<T: DeserializeOwned> Answer<T> {
    /// Reads the text of an answer to `method`.
    pub(super) fn read(method: &'static str, text: Box<RawValue>) -> Result<Self, ClientError> {
        let value = serde_json::from_str(text.get())
            .map_err(|source| ClientError::Unreadable { method, source })?;
        Ok(Self { text, value })
    }
}

impl Answer {
    /// An event of this client's own making.
    pub(super) fn own(value: Value) -> Result<Self, serde_json::Error> {
        Ok(Self { text: to_raw_value(&value)?, value })
    }
}

impl<T> Answer<T> {
    /// The JSON text, keys in the node's order.
    #[must_use]
    pub fn text(&self) -> &str {
        self.text.get()
    }

    /// The meaning alone.
    #[must_use]
    pub fn into_value(self) -> T {
        self.value
    }
}

impl<T> Deref for Answer<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> fmt::Display for Answer<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text())
    }
}
