//! AGENT_RETIRE: let an agent take no more calls (docs/protocol.md section 5.19).
//!
//! Refused with AGENT_NOT_FOUND, NOT_AGENT_OWNER, AGENT_RETIRED, in this order.

use types::tx::AgentRetire;
use types::{Agent, Code, Event, Rejection, Transaction};

use super::Kind;
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::tables::Agents;
use crate::view::{self, Read};
use crate::work;

/// The agent as it was.
pub(crate) struct Plan {
    agent: Agent,
}

impl Kind for AgentRetire {
    type Plan = Plan;

    fn check(&self, tx: &Transaction, state: &dyn Read, _: &Context<'_>) -> Result<Plan, TxError> {
        let id = &self.agent_id;
        let Some(agent) = view::get::<Agents>(state, id)? else {
            let expected = "the id of an agent";
            return Err(Rejection::new(Code::AgentNotFound, "agentId", id, expected).into());
        };
        if agent.owner != tx.from() {
            let rejection = Rejection::new(Code::NotAgentOwner, "from", tx.from(), agent.owner);
            return Err(rejection.with("agentId", id).into());
        }
        if agent.is_retired {
            let expected = "an agent that is not retired yet";
            return Err(Rejection::new(Code::AgentRetired, "agentId", id, expected).into());
        }
        Ok(Plan { agent })
    }

    fn work(_: &Plan) -> u64 {
        work::rows(2)
    }

    fn apply(plan: Plan, draft: &mut Draft, ctx: &Context<'_>) -> Result<Event, StorageError> {
        let Plan { mut agent } = plan;
        agent.is_retired = true;
        agent.changed_at = ctx.timestamp;
        draft.put::<Agents>(&agent.agent_id, &agent);
        Ok(Event::AgentRetired { agent_id: agent.agent_id })
    }
}
