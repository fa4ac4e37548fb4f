//! AGENT_REGISTER: publish an agent, or a version of one (docs/protocol.md section 5.18).
//!
//! Refused with AGENT_METADATA for a text that breaks rule 1 of docs/market.md, then with
//! AGENT_ID_MISMATCH, then with AGENT_METADATA for the other rules, in this order.

use std::cmp::Ordering;

use types::agent::{
    Document, MetadataFault, NESTING_MAX, PROGRAM_BYTES_MAX, Pending, Question, Version,
};
use types::ids::compute_agent_id;
use types::tx::AgentRegister;
use types::{
    Address, Agent, AgentVersion, Amount, Code, Event, Hash, Rejection, Transaction, TxLocation,
};

use super::{Cost, Kind};
use crate::chain::FirstAgent;
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::ledger;
use crate::rules::Rules;
use crate::tables::{AgentTexts, AgentVersions, Agents, AgentsByOwner, Blobs};
use crate::view::{self, Read};
use crate::work;

/// The most executors that the agents among an agent's tools may need in all: a miner offers for at
/// most 64, and an election looks at each.
const NESTED_EXECUTORS_MAX: usize = 15;

/// The agent as it was, and the version that is new.
pub(crate) struct Plan {
    agent: Option<Agent>,
    owner: Address,
    name: String,
    version: AgentVersion,
    text: String,
    /// How many agents are among its tools.
    nested: u64,
    fee: Amount,
}

impl Kind for AgentRegister {
    type Plan = Plan;

    fn cost(&self, _: &Transaction, _: &dyn Read, rules: &Rules) -> Result<Cost, StorageError> {
        Ok(Cost { field: "balance", total: fee(rules, self.metadata.len()) })
    }

    fn check(
        &self,
        tx: &Transaction,
        state: &dyn Read,
        ctx: &Context<'_>,
    ) -> Result<Plan, TxError> {
        let agent = Published { id: Some(self.agent_id), owner: tx.from(), text: &self.metadata };
        let plan = plan(&agent, state, ctx.rules.params.royalty_max)?;
        let fee = fee(ctx.rules, self.metadata.len()).unwrap_or(Amount::MAX);
        Ok(Plan { fee, ..plan })
    }

    fn work(plan: &Plan) -> u64 {
        // The agent, its version, the text, the owner's row, a program, and the agents among the tools.
        work::rows(plan.nested.saturating_add(6))
            .saturating_add(work::bytes(plan.version.metadata_bytes, work::METADATA_KIB))
    }

    fn apply(plan: Plan, draft: &mut Draft, ctx: &Context<'_>) -> Result<Event, StorageError> {
        ledger::burn(draft, plan.fee)?;
        store(plan, draft, ctx.location(), ctx.timestamp)
    }
}

/// What somebody publishes.
struct Published<'a> {
    /// The id that it is to have; that of owner and name if none is named.
    id: Option<Hash>,
    owner: Address,
    text: &'a str,
}

/// Checks what is published. Nothing is paid for it in the plan.
fn plan(published: &Published<'_>, state: &dyn Read, royalty_max: Amount) -> Result<Plan, TxError> {
    let Published { id, owner, text } = *published;
    let document = Document::read(text.as_bytes()).map_err(Rejection::from)?;
    if let (Some(id), Some(name)) = (id, document.name()) {
        check_id(id, owner, name)?;
    }
    let agent_id = id.or_else(|| Some(compute_agent_id(&owner, document.name()?)));
    let agent_id = agent_id.unwrap_or(Hash::ZERO);
    let checked = document.check(royalty_max);
    let agent = view::get::<Agents>(state, &agent_id)?;
    let mut nested = Nested::default();
    for pending in &checked.pending {
        answer(pending, agent.as_ref(), state, &mut nested)?;
    }
    let metadata = checked.outcome.map_err(Rejection::from)?;
    let (executors, manifests) = nested.with(&metadata);
    let version = AgentVersion {
        agent_id,
        version: metadata.version.to_string(),
        previous: agent.as_ref().map(|agent| agent.latest.clone()),
        owner,
        executors,
        manifests,
        selectors: metadata.methods.iter().map(|method| method.selector().0).collect(),
        tools: metadata.tools.iter().map(ToString::to_string).collect(),
        royalty: metadata.royalty,
        is_deterministic: metadata.is_deterministic(),
        nesting: nested.depth.saturating_add(1),
        metadata_hash: Hash::digest(text.as_bytes()),
        metadata_bytes: u64::try_from(text.len()).unwrap_or(u64::MAX),
        // Set where the block is known.
        registered_at: 0,
        tx: TxLocation { height: 0, position: 0 },
    };
    let (text, name, nested) = (text.to_owned(), metadata.name, nested.count);
    Ok(Plan { agent, owner, name, version, text, nested, fee: Amount::ZERO })
}

/// Puts what was checked into the state.
fn store(
    plan: Plan,
    draft: &mut Draft,
    tx: TxLocation,
    timestamp: u64,
) -> Result<Event, StorageError> {
    const MANY: StorageError = StorageError::Inconsistent { what: "an agent's versions overflow" };
    let Plan { agent, owner, name, mut version, text, nested: _, fee: _ } = plan;
    let agent_id = version.agent_id;
    version.registered_at = timestamp;
    version.tx = tx;
    let mut agent = agent.unwrap_or_else(|| {
        draft.insert::<AgentsByOwner>(&(owner, agent_id), &());
        let latest = String::new();
        Agent {
            agent_id,
            owner,
            name,
            latest,
            versions: 0,
            is_retired: false,
            registered_at: timestamp,
            changed_at: timestamp,
        }
    });
    agent.latest.clone_from(&version.version);
    agent.versions = agent.versions.checked_add(1).ok_or(MANY)?;
    agent.is_retired = false;
    agent.changed_at = timestamp;
    draft.put::<Agents>(&agent_id, &agent);
    let key = (agent_id, version.version.clone());
    draft.put::<AgentVersions>(&key, &version);
    draft.put::<AgentTexts>(&key, &text);
    Ok(Event::AgentRegistered { agent_id, owner, version: version.version })
}

/// Publishes an agent of the genesis, as AGENT_REGISTER would, but that nobody pays for it. `position` is its
/// place among the agents of the genesis.
///
/// # Errors
/// [`TxError`]: the rule that it breaks, or a fault of the database.
pub(crate) fn publish_first(
    draft: &mut Draft,
    agent: &FirstAgent,
    royalty_max: Amount,
    (time, position): (u64, u32),
) -> Result<(), TxError> {
    let published = Published { id: None, owner: agent.owner, text: &agent.metadata };
    let plan = plan(&published, draft, royalty_max)?;
    store(plan, draft, TxLocation { height: 0, position }, time)?;
    Ok(())
}

/// What registering a text of so many bytes burns.
fn fee(rules: &Rules, bytes: usize) -> Option<Amount> {
    let bytes = u64::try_from(bytes).ok()?;
    let by_size = rules.params.agent_register_fee_per_byte.checked_mul(bytes)?;
    by_size.checked_add(rules.params.agent_register_fee)
}

fn check_id(agent_id: Hash, owner: Address, name: &str) -> Result<(), Rejection> {
    let expected = compute_agent_id(&owner, name);
    if agent_id == expected {
        return Ok(());
    }
    Err(Rejection::new(Code::AgentIdMismatch, "agentId", agent_id, expected))
}

/// What agents among the tools bring with them.
#[derive(Default)]
struct Nested {
    count: u64,
    /// How deep they nest.
    depth: u8,
    executors: Vec<String>,
    manifests: Vec<Hash>,
}

impl Nested {
    fn add(&mut self, version: &AgentVersion) {
        self.count = self.count.saturating_add(1);
        self.depth = self.depth.max(version.nesting);
        add_new(&mut self.executors, &version.executors);
        add_new(&mut self.manifests, &version.manifests);
    }

    /// The executors and manifests of an agent with these among its tools, its own first.
    fn with(&self, metadata: &types::agent::Metadata) -> (Vec<String>, Vec<Hash>) {
        let mut executors = vec![metadata.executor.to_string()];
        add_new(&mut executors, &self.executors);
        let mut manifests: Vec<Hash> = metadata.executor.manifest().into_iter().collect();
        add_new(&mut manifests, &self.manifests);
        (executors, manifests)
    }
}

/// Appends what is not there yet.
fn add_new<T: PartialEq + Clone>(to: &mut Vec<T>, from: &[T]) {
    for item in from {
        if !to.contains(item) {
            to.push(item.clone());
        }
    }
}

/// Whether what only the state knows holds.
fn answer(
    pending: &Pending,
    agent: Option<&Agent>,
    state: &dyn Read,
    nested: &mut Nested,
) -> Result<(), TxError> {
    let Pending { path, rule, question } = pending;
    let refuse = |found: String| {
        let (path, expected) = (path.clone(), question.to_string());
        Err(Rejection::from(MetadataFault { path, rule: *rule, expected, found }).into())
    };
    match question {
        Question::Newer(version) => match agent {
            Some(agent) if !is_newer(version, &agent.latest)? => refuse(agent.latest.clone()),
            Some(_) | None => Ok(()),
        },
        Question::Program { blob_id } => match view::get::<Blobs>(state, blob_id)? {
            None => refuse("no such blob".to_owned()),
            Some(blob) if !blob.is_final => refuse("a blob that is not final".to_owned()),
            Some(blob) if blob.total_bytes > PROGRAM_BYTES_MAX => {
                refuse(format!("{} bytes", blob.total_bytes))
            }
            Some(_) => Ok(()),
        },
        Question::Nested { id, version } => {
            let key = (*id, version.to_string());
            let Some(version) = view::get::<AgentVersions>(state, &key)? else {
                return refuse("no such version".to_owned());
            };
            if !version.is_deterministic {
                return refuse("a version that is not deterministic".to_owned());
            }
            if version.nesting >= NESTING_MAX {
                return refuse(format!("a version that nests {} deep", version.nesting));
            }
            nested.add(&version);
            if nested.executors.len() > NESTED_EXECUTORS_MAX {
                return refuse(format!("more than {NESTED_EXECUTORS_MAX} executors of tools"));
            }
            Ok(())
        }
    }
}

/// Whether a version has precedence over the latest one, which has it over all others.
fn is_newer(version: &Version, latest: &str) -> Result<bool, StorageError> {
    const BROKEN: StorageError =
        StorageError::Inconsistent { what: "an agent's latest version is no version" };
    let latest = Version::parse(latest).map_err(|_no_version| BROKEN)?;
    Ok(version.precedence(&latest) == Ordering::Greater)
}
