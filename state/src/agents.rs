//! Agents of the market as queries ask for them: one with a version, the versions of one, and lists.

use types::agent::Document;
use types::{Address, Agent, AgentVersion, Hash};

use crate::error::StorageError;
use crate::table::{Key, Table};
use crate::tables::{AgentTexts, AgentVersions, Agents, AgentsByOwner};
use crate::view::{self, Range, Read};

/// The most agents that a page of a list looks at.
pub const LOOKED_MAX: usize = 50;

/// The most bytes of metadata that it reads, unless the first agent alone has more. Anybody may ask for a
/// page, and an agent may have 64 KiB of metadata.
pub const LOOKED_BYTES_MAX: u64 = 65_536;

/// An agent with one of its versions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The agent.
    pub agent: Agent,
    /// The version.
    pub version: AgentVersion,
    /// The version's metadata.
    pub text: String,
}

/// Which agents; conditions that are given must all hold of the latest version.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// Whose.
    pub owner: Option<Address>,
    /// With this tag.
    pub tag: Option<String>,
    /// That need this executor.
    pub executor: Option<String>,
    /// With this text in name, description or tags, whatever the case of its letters.
    pub text: Option<String>,
    /// Whether answers of two miners can be compared.
    pub is_deterministic: Option<bool>,
}

/// A page of a list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listed {
    /// The agents with their latest versions, in the order of ids.
    pub agents: Vec<Found>,
    /// The agent after which the next page goes on; none at the end.
    pub next: Option<Hash>,
}

const BROKEN: StorageError =
    StorageError::Inconsistent { what: "an agent lacks a version, or a version its metadata" };

/// An agent with one of its versions, the latest if none is named.
///
/// # Errors
/// [`StorageError`] if the database fails.
pub fn find(
    state: &dyn Read,
    id: &Hash,
    version: Option<&str>,
) -> Result<Option<Found>, StorageError> {
    let Some(agent) = view::get::<Agents>(state, id)? else { return Ok(None) };
    let key = (*id, version.unwrap_or(&agent.latest).to_owned());
    match view::get::<AgentVersions>(state, &key)? {
        Some(version) => with_text(state, agent, version).map(Some),
        None if version.is_some() => Ok(None),
        None => Err(BROKEN),
    }
}

fn with_text(state: &dyn Read, agent: Agent, version: AgentVersion) -> Result<Found, StorageError> {
    let key = (agent.agent_id, version.version.clone());
    let text = view::get::<AgentTexts>(state, &key)?.ok_or(BROKEN)?;
    Ok(Found { agent, version, text })
}

/// At most so many versions of an agent from one on, or from the latest, in descending precedence. None
/// if there is no such agent or version.
///
/// # Errors
/// [`StorageError`] if the database fails.
pub fn versions(
    state: &dyn Read,
    id: &Hash,
    from: Option<&str>,
    limit: usize,
) -> Result<Option<Vec<AgentVersion>>, StorageError> {
    let Some(agent) = view::get::<Agents>(state, id)? else { return Ok(None) };
    let mut next = Some(from.unwrap_or(&agent.latest).to_owned());
    let mut versions: Vec<AgentVersion> = Vec::new();
    while let Some(name) = next.filter(|_| versions.len() < limit) {
        let Some(version) = view::get::<AgentVersions>(state, &(*id, name))? else {
            return if versions.is_empty() { Ok(None) } else { Err(BROKEN) };
        };
        next = version.previous.clone();
        versions.push(version);
    }
    Ok(Some(versions))
}

/// Agents after one of them, at most so many. Looks at no more than [`LOOKED_MAX`], and at no other once
/// their metadata has [`LOOKED_BYTES_MAX`], so a page may have few agents, or none, and go on.
///
/// # Errors
/// [`StorageError`] if the database fails.
pub fn list(
    state: &dyn Read,
    filter: &Filter,
    after: Option<&Hash>,
    limit: usize,
) -> Result<Listed, StorageError> {
    let ids = ids(state, filter.owner.as_ref(), after, LOOKED_MAX.saturating_add(1))?;
    // Once for all agents.
    let filter = Filter { text: filter.text.as_deref().map(str::to_lowercase), ..filter.clone() };
    let mut listed = Listed::default();
    let (mut last, mut bytes) = (None, 0_u64);
    for (looked, id) in ids.into_iter().enumerate() {
        if looked >= LOOKED_MAX || listed.agents.len() >= limit {
            listed.next = last;
            return Ok(listed);
        }
        let agent = view::get::<Agents>(state, &id)?.ok_or(BROKEN)?;
        let key = (id, agent.latest.clone());
        let version = view::get::<AgentVersions>(state, &key)?.ok_or(BROKEN)?;
        bytes = bytes.saturating_add(version.metadata_bytes);
        if last.is_some() && bytes > LOOKED_BYTES_MAX {
            listed.next = last;
            return Ok(listed);
        }
        last = Some(id);
        if filter.may_take(&version) {
            let found = with_text(state, agent, version)?;
            if filter.takes(&found) {
                listed.agents.push(found);
            }
        }
    }
    Ok(listed)
}

/// The ids of agents, of one owner or of all, after one of them.
fn ids(
    state: &dyn Read,
    owner: Option<&Address>,
    after: Option<&Hash>,
    limit: usize,
) -> Result<Vec<Hash>, StorageError> {
    let prefix = owner.map(Address::as_bytes).map_or(&[][..], |bytes| bytes.as_slice());
    let mut from = [prefix, after.map_or(&[][..], |id| id.as_bytes().as_slice())].concat();
    if after.is_some() {
        from.push(0);
    }
    let to = [prefix, &[0xff; 33]].concat();
    let table = if owner.is_some() { AgentsByOwner::ID } else { Agents::ID };
    let rows = state.scan_raw(table, Range { from: &from, to: Some(&to), limit })?;
    let id = |(key, _): &(Vec<u8>, Vec<u8>)| key.get(prefix.len()..).and_then(Hash::from_bytes);
    rows.iter().map(|row| id(row).ok_or(BROKEN)).collect()
}

impl Filter {
    /// Whether the version fulfils the conditions that need no metadata.
    fn may_take(&self, version: &AgentVersion) -> bool {
        self.is_deterministic.is_none_or(|wanted| wanted == version.is_deterministic)
            && self.executor.as_ref().is_none_or(|wanted| version.executors.contains(wanted))
    }

    /// Whether an agent fulfils those that need it. The text of the filter is in lower case.
    fn takes(&self, found: &Found) -> bool {
        let Self { tag, text, .. } = self;
        let Found { agent, version: _, text: metadata } = found;
        if tag.is_none() && text.is_none() {
            return true;
        }
        // It was read when it was registered.
        let Ok(document) = Document::read(metadata.as_bytes()) else { return false };
        let has_tag = |wanted: &String| document.tags().any(|tag| tag == wanted);
        let says = |wanted: &String| {
            let has = |text: &str| text.to_lowercase().contains(wanted);
            has(&agent.name) || document.description().is_some_and(has) || document.tags().any(has)
        };
        tag.as_ref().is_none_or(has_tag) && text.as_ref().is_none_or(says)
    }
}
