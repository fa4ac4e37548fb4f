//! Ids that anybody can compute.

use jsonrpsee::proc_macros::rpc;
use types::{Address, Hash, ids};

use super::Api;
use crate::error::RpcError;
use crate::wire::ConversationId;

/// Ids that anybody can compute.
#[rpc(server, namespace = "ombra")]
pub trait ComputeRpc {
    /// The id of the run that an AGENT_REQUEST asks for.
    #[method(name = "computeAgentRunId")]
    fn agent_run_id(&self, from: String, nonce: u64, prompt: String) -> Result<Hash, RpcError>;

    /// The id of a new conversation, with the time that it was computed with.
    #[method(name = "computeConversationId")]
    fn conversation_id(
        &self,
        creator: String,
        seed: Option<String>,
        now: Option<u64>,
    ) -> Result<ConversationId, RpcError>;

    /// The id of an agent.
    #[method(name = "computeAgentId")]
    fn agent_id(&self, owner: String, name: String) -> Result<Hash, RpcError>;

    /// The hash of a content.
    #[method(name = "computeContentHash")]
    fn content_hash(&self, content: String) -> Result<Hash, RpcError>;
}

impl ComputeRpcServer for Api {
    fn agent_run_id(&self, from: String, nonce: u64, prompt: String) -> Result<Hash, RpcError> {
        Address::parse(&from).map_err(|e| RpcError::invalid("from", e.got, e.expected))?;
        Ok(ids::compute_agent_run_id(&from, nonce, &prompt))
    }

    fn conversation_id(
        &self,
        creator: String,
        seed: Option<String>,
        now: Option<u64>,
    ) -> Result<ConversationId, RpcError> {
        let now = now.unwrap_or_else(|| self.ports.clock.now_ms());
        let conversation_id = ids::compute_conversation_id(&creator, seed.as_deref(), now);
        Ok(ConversationId { conversation_id, now })
    }

    fn agent_id(&self, owner: String, name: String) -> Result<Hash, RpcError> {
        let owner =
            Address::parse(&owner).map_err(|e| RpcError::invalid("owner", e.got, e.expected))?;
        Ok(ids::compute_agent_id(&owner, &name))
    }

    fn content_hash(&self, content: String) -> Result<Hash, RpcError> {
        Ok(ids::compute_content_hash(&content))
    }
}
