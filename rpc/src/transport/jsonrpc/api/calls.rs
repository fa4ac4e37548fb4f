//! Calls of agents.

use jsonrpsee::Extensions;
use jsonrpsee::core::async_trait;
use jsonrpsee::proc_macros::rpc;
use types::Hash;

use crate::admission::Client;
use crate::error::RpcError;
use crate::service::{Context, calls, compute, randomness};
use crate::wire::{
    CallQuery, CallState, CallView, CallWaitOptions, CommitmentQuery, Page, PageOf, RandomnessView,
};

/// Calls of agents.
#[rpc(server, namespace = "ombra")]
pub trait CallsRpc {
    /// Returns a call with its members and the texts of its transactions.
    #[method(name = "getCall", blocking)]
    fn call(&self, call_id: Hash) -> Result<CallView, RpcError>;

    /// Returns calls, newest first, without members and texts.
    #[method(name = "listCalls", blocking)]
    fn calls(
        &self,
        filter: Option<CallQuery>,
        page: Option<Page>,
    ) -> Result<PageOf<CallState>, RpcError>;

    /// Returns a call as soon as it is decided or settled. If the time runs out, the answer shows
    /// the call as it is.
    #[method(name = "waitForCall", with_extensions)]
    async fn wait_for_call(
        &self,
        call_id: Hash,
        options: Option<CallWaitOptions>,
    ) -> Result<CallView, RpcError>;

    /// Returns the randomness of a block, with the data to verify it.
    #[method(name = "getRandomness", blocking)]
    fn randomness(&self, height: u64) -> Result<RandomnessView, RpcError>;

    /// Computes the id of the call that an AGENT_CALL makes.
    #[method(name = "computeCallId")]
    fn call_id(&self, from: String, nonce: u64) -> Result<Hash, RpcError>;

    /// Computes the commitment to a member's answer.
    #[method(name = "computeCommitment")]
    fn commitment(&self, answer: CommitmentQuery) -> Result<Hash, RpcError>;
}

#[async_trait]
impl CallsRpcServer for Context {
    fn call(&self, call_id: Hash) -> Result<CallView, RpcError> {
        calls::call(&self.ports, call_id)
    }

    fn calls(
        &self,
        filter: Option<CallQuery>,
        page: Option<Page>,
    ) -> Result<PageOf<CallState>, RpcError> {
        calls::calls(&self.ports, &filter.unwrap_or_default(), &page.unwrap_or_default())
    }

    async fn wait_for_call(
        &self,
        extensions: &Extensions,
        call_id: Hash,
        options: Option<CallWaitOptions>,
    ) -> Result<CallView, RpcError> {
        let share = extensions.get::<Client>().ok_or(RpcError::Internal)?.share();
        calls::wait_for_call(self, share, call_id, options.unwrap_or_default()).await
    }

    fn randomness(&self, height: u64) -> Result<RandomnessView, RpcError> {
        randomness::randomness(self, height)
    }

    fn call_id(&self, from: String, nonce: u64) -> Result<Hash, RpcError> {
        compute::call_id(self, &from, nonce)
    }

    fn commitment(&self, answer: CommitmentQuery) -> Result<Hash, RpcError> {
        compute::commitment(&answer)
    }
}
