//! Agents as calls see them (docs/protocol.md section 5.18).

use std::str::FromStr;

use types::agent::ExecutorId;
use types::call::Call;
use types::{AgentVersion, Code, Hash, Rejection};

use crate::error::{StorageError, TxError};
use crate::tables::{AgentVersions, Agents};
use crate::view::{self, Read};

const NO_EXECUTOR: StorageError =
    StorageError::Inconsistent { what: "a version of an agent names what is no executor" };

/// The version of an agent that a call names, or AGENT_NOT_FOUND, or AGENT_RETIRED.
pub(crate) fn callable(
    state: &dyn Read,
    id: &Hash,
    version: &str,
) -> Result<AgentVersion, TxError> {
    let not_found = |field, got: &dyn std::fmt::Display, expected: &str| {
        Rejection::new(Code::AgentNotFound, field, got, expected)
    };
    let Some(agent) = view::get::<Agents>(state, id)? else {
        return Err(not_found("agentId", id, "the id of an agent").into());
    };
    let Some(found) = view::get::<AgentVersions>(state, &(*id, version.to_owned()))? else {
        let rejection = not_found("agentVersion", &version, "a version of the agent");
        return Err(rejection.with("agentId", id).with("latest", agent.latest).into());
    };
    if agent.is_retired {
        let expected = "an agent that takes calls";
        return Err(Rejection::new(Code::AgentRetired, "agentId", id, expected).into());
    }
    Ok(found)
}

/// What a miner must have to run a version of an agent.
///
/// # Errors
/// [`StorageError::Inconsistent`] if its record names what is no executor.
pub(crate) fn executors(version: &AgentVersion) -> Result<Vec<ExecutorId>, StorageError> {
    let read = |id: &String| ExecutorId::from_str(id).map_err(|_fault| NO_EXECUTOR);
    version.executors.iter().map(read).collect()
}

/// What a member of a call must have.
///
/// # Errors
/// [`StorageError`] if the database fails or the version is gone.
pub(crate) fn executors_of(state: &dyn Read, call: &Call) -> Result<Vec<ExecutorId>, StorageError> {
    const GONE: StorageError =
        StorageError::Inconsistent { what: "a call of a version of an agent that is not there" };
    let key = (call.agent_id, call.agent_version.clone());
    executors(&view::get::<AgentVersions>(state, &key)?.ok_or(GONE)?)
}
