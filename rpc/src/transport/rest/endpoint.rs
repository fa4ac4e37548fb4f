//! One endpoint: what it takes, what it answers, and the function that does it. The routes and the
//! OpenAPI document are both made of these, so neither knows what the other does not.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::params;
use crate::error::RpcError;
use crate::service::Context;

/// Makes the schema of a type.
type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// Reads parameters, and writes the answer as JSON.
type Read = Box<dyn Fn(&Context, &RestQuery) -> Result<Vec<u8>, RpcError> + Send + Sync>;

/// An endpoint that reads.
pub(super) struct Endpoint {
    /// With the names of its parameters: `/api/chain/block/{index}`.
    pub(super) path: &'static str,
    /// What it does, in one sentence.
    pub(super) summary: &'static str,
    /// Objects with a member for each parameter.
    pub(super) path_params: SchemaOf,
    pub(super) query_params: SchemaOf,
    pub(super) answer: SchemaOf,
    read: Read,
}

/// What a client asked an endpoint with, as texts.
#[derive(Clone, Debug, Default)]
pub(super) struct RestQuery {
    /// The parameters in the path, in the form of a query.
    pub(super) path: String,
    /// The query.
    pub(super) query: String,
}

/// No parameters.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

impl Endpoint {
    /// `read` is given the parameters of the path and of the query.
    pub(super) fn new<P, Q, A>(
        path: &'static str,
        summary: &'static str,
        read: fn(&Context, P, Q) -> Result<A, RpcError>,
    ) -> Self
    where
        P: DeserializeOwned + JsonSchema + 'static,
        Q: DeserializeOwned + JsonSchema + 'static,
        A: Serialize + JsonSchema + 'static,
    {
        Self {
            path,
            summary,
            path_params: P::json_schema,
            query_params: Q::json_schema,
            answer: SchemaGenerator::subschema_for::<A>,
            read: Box::new(move |context, asked| {
                let answer =
                    read(context, params::read(&asked.path)?, params::read(&asked.query)?)?;
                serde_json::to_vec(&answer).map_err(|error| {
                    tracing::error!(path, %error, "an answer could not be written");
                    RpcError::Internal
                })
            }),
        }
    }

    /// The answer to what was asked. May touch the disk.
    pub(super) fn read(&self, context: &Context, asked: &RestQuery) -> Result<Vec<u8>, RpcError> {
        (self.read)(context, asked)
    }
}
