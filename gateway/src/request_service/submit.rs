//! The way of a question to the service, whatever interface it came over.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use types::Hash;

use super::{Job, Progress, RequestService};
use crate::keys::Key;
use crate::model::Model;
use crate::openai::{ApiFault, ChatRequest};
use crate::question::Question;
use crate::record::{RequestId, Work};
use crate::store::NewRequest;

/// A question as it came in.
#[derive(Debug)]
pub(crate) struct Submission<'a> {
    /// Whose it is.
    pub(crate) key: Key,
    /// What is asked.
    pub(crate) asked: &'a ChatRequest,
    /// SHA-256 of its body.
    pub(crate) body: Hash,
    /// SHA-256 of the key that makes it idempotent, if it has one.
    pub(crate) name: Option<Hash>,
    /// Whether the client says that it has sent this before.
    pub(crate) is_retry: bool,
    /// When the client gives up.
    pub(crate) deadline: Instant,
}

/// What clients are told where the node cannot be asked. Only the log says why: errors name the address of
/// the node.
pub(crate) fn away(error: &dyn std::error::Error) -> ApiFault {
    tracing::warn!(%error, "the node cannot be asked");
    ApiFault::node_away("it does not answer as it should")
}

/// Waits for what the node says, as long as the client waits.
pub(super) async fn in_time<T>(
    deadline: Instant,
    reads: impl Future<Output = Result<T, ApiFault>>,
) -> Result<T, ApiFault> {
    let late = |_elapsed| Err(ApiFault::node_away("it does not answer in time"));
    timeout_at(deadline, reads).await.unwrap_or_else(late)
}

impl RequestService {
    /// Says what a question costs at most, and takes it in.
    ///
    /// # Errors
    /// Why it is not taken in.
    pub(crate) async fn submit(
        self: &Arc<Self>,
        entry: Submission<'_>,
    ) -> Result<(RequestId, watch::Receiver<Progress>), ApiFault> {
        let Submission { key, asked, body, name, is_retry, deadline } = entry;
        let model = self.settings.model(&asked.model);
        let model = model.map_err(|why| ApiFault::no_such_model(&asked.model, &why))?;
        if !self.is_open() {
            return Err(ApiFault::node_away(
                "the gateway is still finishing work from before its start",
            ));
        }
        let reads = async {
            let (prices, _) = self.prices().await.map_err(|error| away(&error))?;
            if let Model::Agent { id, version } = &model
                && !self.node.has_agent(id, version).await.map_err(|error| away(&error))?
            {
                return Err(ApiFault::no_such_model(
                    &asked.model,
                    "the chain does not have this agent",
                ));
            }
            let balance_micro =
                self.node.balance_micro(&self.wallet()).await.map_err(|error| away(&error))?;
            Ok((prices, balance_micro))
        };
        let (prices, balance_micro) = in_time(deadline, reads).await?;
        let question = Question::new(asked, model, &self.settings, prices)?;
        let new = NewRequest {
            key,
            body,
            name,
            is_retry,
            model: asked.model.clone(),
            work: Work::Run,
            max_fee_micro: question.max_fee_micro,
            micro: question.micro(prices),
            balance_micro,
        };
        self.take(new, Job::Ask(question)).await
    }
}
