//! Agent runs, their steps, conversations.

use jsonrpsee::proc_macros::rpc;
use types::Hash;

use crate::error::RpcError;
use crate::service::{Context, conversations, runs};
use crate::wire::{Page, PageOf, RunQuery, RunView, SettlementView, StepView, TurnView};

/// Agent runs and conversations.
#[rpc(server, namespace = "ombra")]
pub trait RunsRpc {
    /// Returns a run.
    #[method(name = "getAgentRun", blocking)]
    fn agent_run(&self, agent_run_id: Hash) -> Result<RunView, RpcError>;

    /// Returns the steps of a run in the order of their indexes.
    #[method(name = "getAgentSteps", blocking)]
    fn agent_steps(
        &self,
        agent_run_id: Hash,
        page: Option<Page>,
    ) -> Result<PageOf<StepView>, RpcError>;

    /// Returns runs, newest first.
    #[method(name = "listAgentRuns", blocking)]
    fn agent_runs(
        &self,
        filter: Option<RunQuery>,
        page: Option<Page>,
    ) -> Result<PageOf<RunView>, RpcError>;

    /// Returns the turns of a conversation in the order of the chain.
    #[method(name = "getConversation", blocking)]
    fn conversation(
        &self,
        conversation_id: Hash,
        page: Option<Page>,
    ) -> Result<PageOf<TurnView>, RpcError>;

    /// Returns a turn of a conversation.
    #[method(name = "getChatTurn", blocking)]
    fn chat_turn(&self, hash: Hash) -> Result<TurnView, RpcError>;

    /// Returns the amounts that an AGENT_FINISH of the run must state now, including pending steps.
    #[method(name = "settlement", blocking)]
    fn settlement(&self, agent_run_id: Hash) -> Result<SettlementView, RpcError>;
}

impl RunsRpcServer for Context {
    fn agent_run(&self, agent_run_id: Hash) -> Result<RunView, RpcError> {
        runs::agent_run(&self.ports, &agent_run_id)
    }

    fn agent_steps(
        &self,
        agent_run_id: Hash,
        page: Option<Page>,
    ) -> Result<PageOf<StepView>, RpcError> {
        runs::agent_steps(self, &agent_run_id, &page.unwrap_or_default())
    }

    fn agent_runs(
        &self,
        filter: Option<RunQuery>,
        page: Option<Page>,
    ) -> Result<PageOf<RunView>, RpcError> {
        runs::agent_runs(self, filter.unwrap_or_default(), &page.unwrap_or_default())
    }

    fn conversation(
        &self,
        conversation_id: Hash,
        page: Option<Page>,
    ) -> Result<PageOf<TurnView>, RpcError> {
        conversations::conversation(self, &conversation_id, &page.unwrap_or_default())
    }

    fn chat_turn(&self, hash: Hash) -> Result<TurnView, RpcError> {
        conversations::chat_turn(&self.ports, hash)
    }

    fn settlement(&self, agent_run_id: Hash) -> Result<SettlementView, RpcError> {
        runs::settlement(&self.ports, &agent_run_id)
    }
}
