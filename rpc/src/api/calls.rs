//! Calls of agents.

use jsonrpsee::proc_macros::rpc;
use types::Hash;

use crate::error::RpcError;
use crate::wire::{
    CallQuery, CallState, CallView, CallWaitOptions, CommitmentQuery, Page, PageOf, RandomnessView,
};

/// Calls of agents.
#[rpc(server, namespace = "ombra")]
pub trait CallsRpc {
    /// A call with its members and the texts of its transactions.
    #[method(name = "getCall", blocking)]
    fn call(&self, call_id: Hash) -> Result<CallView, RpcError>;

    /// Calls, newest first, without members and texts.
    #[method(name = "listCalls", blocking)]
    fn calls(
        &self,
        filter: Option<CallQuery>,
        page: Option<Page>,
    ) -> Result<PageOf<CallState>, RpcError>;

    /// A call, as soon as it is decided or settled. When the time is over, it is answered as it is.
    #[method(name = "waitForCall", with_extensions)]
    async fn wait_for_call(
        &self,
        call_id: Hash,
        options: Option<CallWaitOptions>,
    ) -> Result<CallView, RpcError>;

    /// The randomness of a block, with what is needed to check it.
    #[method(name = "getRandomness", blocking)]
    fn randomness(&self, height: u64) -> Result<RandomnessView, RpcError>;

    /// The id of the call that an AGENT_CALL makes.
    #[method(name = "computeCallId")]
    fn call_id(&self, from: String, nonce: u64) -> Result<Hash, RpcError>;

    /// What hides a member's answer.
    #[method(name = "computeCommitment")]
    fn commitment(&self, answer: CommitmentQuery) -> Result<Hash, RpcError>;
}
