//! Agents and programs that calls need, fetched from the node and kept as long as there is room.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent::executor::{Agent, Library};
use parking_lot::Mutex;
use types::Hash;
use types::agent::{Executor, NESTING_MAX, PROGRAM_BYTES_MAX, Tool};

use crate::chain::{Calls, ChainError};

/// What all agents and programs may take of the memory, by the bytes of their texts: sixteen of the largest
/// programs. The programs of one call have the same bound (docs/market.md section 9.4): with all that it nests,
/// an agent could have every member hold a gigabyte.
const BYTES_MAX: usize = 64 * 1_024 * 1_024;

/// What is kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CacheKey {
    Agent(Hash, String),
    Program(String),
}

#[derive(Clone, Debug)]
enum Content {
    Agent(Arc<Agent>),
    Program(Arc<[u8]>),
}

#[derive(Debug)]
struct CacheEntry {
    content: Content,
    bytes: usize,
    /// The higher, the later it was wanted.
    wanted: u64,
}

#[derive(Debug, Default)]
struct Cached {
    cached: BTreeMap<CacheKey, CacheEntry>,
    bytes: usize,
    wanted: u64,
}

/// Agents and programs that were fetched. None of them ever changes.
#[derive(Debug)]
pub struct AgentCache {
    calls: Arc<dyn Calls>,
    cached: Mutex<Cached>,
    bytes_max: usize,
}

/// Why an agent is not to be had.
#[derive(Debug, thiserror::Error)]
pub enum Unfound {
    /// The node; it may tell later.
    #[error(transparent)]
    Node(#[from] ChainError),
    /// For good.
    #[error("{0}")]
    Never(String),
}

impl AgentCache {
    /// Nothing is fetched yet.
    #[must_use]
    pub fn new(calls: Arc<dyn Calls>) -> Self {
        Self { calls, cached: Mutex::default(), bytes_max: BYTES_MAX }
    }

    /// A version of an agent, with everything that its execution may need: the agents among its tools,
    /// as deep as they nest, and their programs, if these have room together.
    ///
    /// # Errors
    /// [`Unfound`].
    pub async fn gather(&self, id: &Hash, version: &str) -> Result<(Arc<Agent>, Library), Unfound> {
        let agent = self.agent(id, version).await?;
        let (mut library, mut room) = (Library::default(), self.bytes_max);
        let mut level = vec![Arc::clone(&agent)];
        for _ in 0..NESTING_MAX {
            let mut nested = Vec::new();
            for agent in level {
                if let Executor::Wasm { blob_id, .. } = &agent.metadata.executor
                    && library.program(blob_id).is_none()
                {
                    let program = self.program(blob_id).await?;
                    room = room.checked_sub(program.len()).ok_or_else(|| self.too_many())?;
                    library.add_program(blob_id.clone(), program);
                }
                for tool in &agent.metadata.tools {
                    if let Tool::Agent { id, version } = tool
                        && library.agent(id, version.as_str()).is_none()
                    {
                        let below = self.agent(id, version.as_str()).await?;
                        library.add_agent(Arc::clone(&below));
                        nested.push(below);
                    }
                }
            }
            level = nested;
        }
        Ok((agent, library))
    }

    fn too_many(&self) -> Unfound {
        let most = self.bytes_max;
        Unfound::Never(format!(
            "the programs of the agent and of those it uses have more than {most} bytes"
        ))
    }

    async fn agent(&self, id: &Hash, version: &str) -> Result<Arc<Agent>, Unfound> {
        let key = CacheKey::Agent(*id, version.to_owned());
        if let Some(Content::Agent(agent)) = self.find(&key) {
            return Ok(agent);
        }
        let Some(text) = self.calls.metadata(id, version).await? else {
            return Err(Unfound::Never(format!("the chain has no agent {id} {version}")));
        };
        let agent = Agent::read(*id, text.as_bytes())
            .map_err(|error| Unfound::Never(format!("the agent {id} {version}: {error}")))?;
        let read = agent.metadata.version.as_str();
        if read != version {
            let why = format!("the agent {id} {version} has metadata of the version {read}");
            return Err(Unfound::Node(ChainError::Strange(why)));
        }
        let agent = Arc::new(agent);
        self.keep(key, Content::Agent(Arc::clone(&agent)), text.len());
        Ok(agent)
    }

    async fn program(&self, blob: &str) -> Result<Arc<[u8]>, Unfound> {
        let key = CacheKey::Program(blob.to_owned());
        if let Some(Content::Program(program)) = self.find(&key) {
            return Ok(program);
        }
        let bytes_max = usize::try_from(PROGRAM_BYTES_MAX).unwrap_or(usize::MAX);
        let Some(bytes) = self.calls.program(blob, bytes_max).await? else {
            return Err(Unfound::Never(format!("the node does not have the program {blob}")));
        };
        let (length, program): (_, Arc<[u8]>) = (bytes.len(), bytes.into());
        self.keep(key, Content::Program(Arc::clone(&program)), length);
        Ok(program)
    }

    fn find(&self, key: &CacheKey) -> Option<Content> {
        let mut cached = self.cached.lock();
        let wanted = cached.wanted.saturating_add(1);
        cached.wanted = wanted;
        let entry = cached.cached.get_mut(key)?;
        entry.wanted = wanted;
        Some(entry.content.clone())
    }

    /// Keeps something; what was wanted longest ago gives way.
    fn keep(&self, key: CacheKey, content: Content, bytes: usize) {
        let mut cached = self.cached.lock();
        let wanted = cached.wanted;
        cached.bytes = cached.bytes.saturating_add(bytes);
        if let Some(before) = cached.cached.insert(key, CacheEntry { content, bytes, wanted }) {
            cached.bytes = cached.bytes.saturating_sub(before.bytes);
        }
        while cached.bytes > self.bytes_max {
            let oldest = cached.cached.iter().min_by_key(|(_, entry)| entry.wanted);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { break };
            if let Some(entry) = cached.cached.remove(&key) {
                cached.bytes = cached.bytes.saturating_sub(entry.bytes);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn with_room(calls: Arc<dyn Calls>, bytes_max: usize) -> Self {
        Self { bytes_max, ..Self::new(calls) }
    }
}
