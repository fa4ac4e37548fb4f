//! Every method with its parameters, result and errors: what `rpc.discover` tells, what parameters
//! are checked against, and what metrics are labelled with.

mod bind;
mod builder;
mod list;
mod openrpc;
mod param;

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};

pub(crate) use bind::{bind, count_elements};
pub(crate) use builder::Builder;
pub use builder::builder_signatures;
pub use openrpc::document;
pub use param::Param;
pub(crate) use param::describe;

/// How a method is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// At once.
    Plain,
    /// Takes one signed transaction; calls in a batch are joined.
    Submit,
    /// May wait for something to happen; refused in a batch.
    Wait,
    /// Begins or ends a subscription: WebSocket only, refused in a batch.
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
    /// The errors it answers with, besides −32602, −32603 and −32052.
    pub errors: Vec<i32>,
    result: fn(&mut SchemaGenerator) -> Schema,
}

impl Method {
    /// A method that answers with a `T`.
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
    fn kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    #[must_use]
    fn param(mut self, param: Param) -> Self {
        self.params.push(param);
        self
    }

    #[must_use]
    fn errors(self, errors: &[i32]) -> Self {
        Self { errors: errors.to_vec(), ..self }
    }
}

/// A set of methods by name.
#[derive(Clone, Debug)]
pub struct Registry {
    methods: BTreeMap<&'static str, Method>,
}

impl Registry {
    /// What the network port serves.
    #[must_use]
    pub fn public() -> Self {
        Self::of(list::public())
    }

    /// What the operator's socket serves.
    #[must_use]
    pub fn admin() -> Self {
        Self::of(list::admin())
    }

    fn of(methods: Vec<Method>) -> Self {
        Self { methods: methods.into_iter().map(|method| (method.name, method)).collect() }
    }

    /// The method of that name.
    #[must_use]
    pub fn method(&self, name: &str) -> Option<&Method> {
        self.methods.get(name)
    }

    /// Every method, by name.
    pub fn methods(&self) -> impl Iterator<Item = &Method> {
        self.methods.values()
    }
}
