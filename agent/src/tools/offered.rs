//! A tool as it is offered: with its compiled schema and the limits that hold here.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::apart::Apart;
use super::arguments::Schema;
use super::tool::{Code, Failure, Limits, Tool};

/// How long a check of arguments may take, its wait for the one before it included.
const CHECK_PATIENCE: Duration = Duration::from_secs(2);

/// A tool with its compiled schema and the limits that hold here.
#[derive(Clone, Debug)]
pub(super) struct Offered {
    pub(super) tool: Arc<dyn Tool>,
    pub(super) schema: Arc<Schema>,
    pub(super) limits: Limits,
    /// Where arguments are checked against a schema of a stranger; none for a schema of our own,
    /// which takes no time.
    pub(super) apart: Option<Apart>,
    /// Whether it is a method of an agent.
    pub(super) is_of_agent: bool,
}

impl Offered {
    /// A method of an agent. Its schema is made of the agent's ABI, so it compiles.
    pub(super) fn of_agent(tool: Arc<dyn Tool>) -> Option<Self> {
        let schema = Arc::new(Schema::compile(&tool.spec().parameters).ok()?);
        let limits = tool.terms().limits;
        Some(Self { tool, schema, limits, apart: None, is_of_agent: true })
    }

    /// Checks arguments against the schema.
    pub(super) async fn check(&self, arguments: &Map<String, Value>) -> Result<(), Failure> {
        let Some(apart) = &self.apart else { return self.schema.check(arguments) };
        let (schema, arguments) = (Arc::clone(&self.schema), arguments.clone());
        let checked = apart.run(CHECK_PATIENCE, move || schema.check(&arguments)).await;
        checked.unwrap_or_else(|| {
            let most = CHECK_PATIENCE.as_millis();
            let message = format!("the arguments were not checked within {most} ms");
            Err(Failure::new(Code::Timeout, message))
        })
    }
}
