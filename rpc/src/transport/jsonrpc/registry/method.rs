//! One method: its parameters, its result, its errors.

use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::param::Param;

/// How a method is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Immediately.
    Plain,
    /// Submits one signed transaction; the node joins the transactions of a batch.
    Submit,
    /// May wait for an event; rejected in a batch.
    Wait,
    /// Begins or ends a subscription: WebSocket only, rejected in a batch.
    Subscription,
}

/// A JSON-RPC method.
#[derive(Clone, Debug)]
pub struct Method {
    /// `ombra_getBlock`.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// How it is answered.
    pub kind: Kind,
    /// Its parameters, in order.
    pub params: Vec<Param>,
    /// The errors that it can return, in addition to −32602, −32603 and −32052.
    pub errors: Vec<i32>,
    pub(super) result: fn(&mut SchemaGenerator) -> Schema,
}

impl Method {
    /// A method that returns a `T`.
    #[must_use]
    pub fn new<T: JsonSchema>(name: &'static str, summary: &'static str) -> Self {
        Self {
            name,
            summary,
            kind: Kind::Plain,
            params: Vec::new(),
            errors: Vec::new(),
            result: SchemaGenerator::subschema_for::<T>,
        }
    }

    #[must_use]
    pub(super) fn kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    #[must_use]
    pub(super) fn param(mut self, param: Param) -> Self {
        self.params.push(param);
        self
    }

    #[must_use]
    pub(super) fn errors(self, errors: &[i32]) -> Self {
        Self { errors: errors.to_vec(), ..self }
    }
}
