//! The language model inside this process, for commands that execute agents themselves.

use std::path::PathBuf;
use std::sync::Arc;

use agent::backend::{Embedded, EmbeddedConfig};
use agent::executor::{Agent, Model};
use types::Hash;
use types::agent::{NESTING_MAX, Tool};

use super::CliError;

/// Whether a language model is asked, by the agent or by one among its tools, which `find` knows.
pub(super) fn is_needed(agent: &Agent, find: &dyn Fn(&Hash, &str) -> Option<Arc<Agent>>) -> bool {
    is_needed_within(agent, find, NESTING_MAX)
}

/// Agents that are not published may be tools of each other: more than `levels` are not looked at.
fn is_needed_within(
    agent: &Agent,
    find: &dyn Fn(&Hash, &str) -> Option<Arc<Agent>>,
    levels: u8,
) -> bool {
    let Some(below) = levels.checked_sub(1) else { return false };
    let asks = |tool: &Tool| match tool {
        Tool::Agent { id, version } => {
            find(id, version.as_str()).is_some_and(|nested| is_needed_within(&nested, find, below))
        }
        Tool::BuiltIn(_) => false,
    };
    agent.metadata.executor.manifest().is_some() || agent.metadata.tools.iter().any(asks)
}

/// Opens a file with a model, or the one that this program knows, which takes about a second.
///
/// # Errors
/// [`CliError::Usage`] if there is no such file, or it is no model.
pub(crate) fn open(file: Option<PathBuf>) -> Result<Arc<dyn Model>, CliError> {
    let pinned = file.is_none();
    let config = EmbeddedConfig { file, pinned, ..EmbeddedConfig::default() };
    let opened = Embedded::open(&config).map_err(|error| CliError::Usage(error.to_string()))?;
    Ok(Arc::new(opened.for_market()))
}
