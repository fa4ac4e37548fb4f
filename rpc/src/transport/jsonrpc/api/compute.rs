//! Ids that anyone can compute.

use jsonrpsee::proc_macros::rpc;
use types::Hash;

use crate::error::RpcError;
use crate::service::{Context, compute};
use crate::wire::ConversationId;

/// Ids that anyone can compute.
#[rpc(server, namespace = "ombra")]
pub trait ComputeRpc {
    /// Computes the id of the run that an AGENT_REQUEST requests.
    #[method(name = "computeAgentRunId")]
    fn agent_run_id(&self, from: String, nonce: u64, prompt: String) -> Result<Hash, RpcError>;

    /// Computes the id of a new conversation, and returns it with the time used.
    #[method(name = "computeConversationId")]
    fn conversation_id(
        &self,
        creator: String,
        seed: Option<String>,
        now: Option<u64>,
    ) -> Result<ConversationId, RpcError>;

    /// Computes the id of an agent.
    #[method(name = "computeAgentId")]
    fn agent_id(&self, owner: String, name: String) -> Result<Hash, RpcError>;

    /// Computes the hash of a text.
    #[method(name = "computeContentHash")]
    fn content_hash(&self, content: String) -> Result<Hash, RpcError>;
}

impl ComputeRpcServer for Context {
    fn agent_run_id(&self, from: String, nonce: u64, prompt: String) -> Result<Hash, RpcError> {
        compute::agent_run_id(&from, nonce, &prompt)
    }

    fn conversation_id(
        &self,
        creator: String,
        seed: Option<String>,
        now: Option<u64>,
    ) -> Result<ConversationId, RpcError> {
        Ok(compute::conversation_id(&self.ports, &creator, seed.as_deref(), now))
    }

    fn agent_id(&self, owner: String, name: String) -> Result<Hash, RpcError> {
        compute::agent_id(&owner, &name)
    }

    fn content_hash(&self, content: String) -> Result<Hash, RpcError> {
        Ok(compute::content_hash(&content))
    }
}
