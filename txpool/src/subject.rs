//! What a transaction is about, so that those that hang together can fall together.

#![expect(clippy::disallowed_types, reason = "subjects are looked up and counted, never listed")]

use std::collections::{BTreeSet, HashMap};

use types::tx::Subject;
use types::{Body, Code, Hash, Transaction};

/// Whether a rejection says that its sender has no business with the subject: then the sender's later
/// transactions about it cannot be right either. (Any other rejection may be about one transaction
/// alone, and the sender may put another one in its place.)
pub(crate) const fn is_about_the_subject(code: Code) -> bool {
    matches!(
        code,
        Code::RunIdMismatch
            | Code::RunExists
            | Code::RunNotFound
            | Code::RunNotPending
            | Code::RunNotActive
            | Code::NotRunMiner
            | Code::NotSubmitter
            | Code::MinerExcluded
            | Code::BlobNotFound
            | Code::BlobExists
            | Code::NotBlobOwner
            | Code::NotValidator
    )
}

/// The executable transactions about each subject, or how many there are.
#[derive(Debug, Default)]
pub(crate) struct Subjects {
    /// Runs, and what is about them.
    runs: BTreeSet<(Hash, Hash)>,
    /// Runs, and claims of them.
    claims: BTreeSet<(Hash, Hash)>,
    blobs: HashMap<String, usize>,
    calls: HashMap<Hash, usize>,
    /// Agents, and what is about them.
    agents: BTreeSet<(Hash, Hash)>,
    validators: BTreeSet<Hash>,
}

impl Subjects {
    pub(crate) fn add(&mut self, tx: &Transaction) {
        if let Some(agent) = agent_of_run(tx) {
            self.agents.insert((agent, tx.hash()));
        }
        if let Body::AgentClaim(claim) = tx.body() {
            self.claims.insert((claim.agent_run_id, tx.hash()));
        }
        let count = match tx.body().subject() {
            Some(Subject::Run(id)) => {
                self.runs.insert((id, tx.hash()));
                return;
            }
            Some(Subject::Blob(id)) => self.blobs.entry(id.to_owned()).or_default(),
            Some(Subject::Call(id)) => self.calls.entry(id).or_default(),
            Some(Subject::Agent(id)) => {
                self.agents.insert((id, tx.hash()));
                return;
            }
            Some(Subject::Validators) => {
                self.validators.insert(tx.hash());
                return;
            }
            None => return,
        };
        *count = count.saturating_add(1);
    }

    pub(crate) fn remove(&mut self, tx: &Transaction) {
        if let Some(agent) = agent_of_run(tx) {
            self.agents.remove(&(agent, tx.hash()));
        }
        if let Body::AgentClaim(claim) = tx.body() {
            self.claims.remove(&(claim.agent_run_id, tx.hash()));
        }
        let (count, subject) = match tx.body().subject() {
            Some(Subject::Run(id)) => {
                self.runs.remove(&(id, tx.hash()));
                return;
            }
            Some(Subject::Blob(id)) => (self.blobs.get_mut(id), Subject::Blob(id)),
            Some(Subject::Call(id)) => (self.calls.get_mut(&id), Subject::Call(id)),
            Some(Subject::Agent(id)) => {
                self.agents.remove(&(id, tx.hash()));
                return;
            }
            Some(Subject::Validators) => {
                self.validators.remove(&tx.hash());
                return;
            }
            None => return,
        };
        let Some(count) = count else { return };
        *count = count.saturating_sub(1);
        if *count > 0 {
            return;
        }
        match subject {
            Subject::Blob(id) => drop(self.blobs.remove(id)),
            Subject::Call(id) => drop(self.calls.remove(&id)),
            Subject::Run(_) | Subject::Agent(_) | Subject::Validators => {}
        }
    }

    /// Whether an executable transaction is about it.
    pub(crate) fn has(&self, subject: Subject<'_>) -> bool {
        match subject {
            Subject::Run(id) => self.of_run(id).next().is_some(),
            Subject::Blob(id) => self.blobs.contains_key(id),
            Subject::Call(id) => self.calls.contains_key(&id),
            Subject::Agent(id) => self.of_agent(id).next().is_some(),
            Subject::Validators => !self.validators.is_empty(),
        }
    }

    /// The executable transactions that are about a run.
    pub(crate) fn of_run(&self, id: Hash) -> impl Iterator<Item = Hash> {
        about(&self.runs, id)
    }

    /// Whether a claim of the run is executable.
    pub(crate) fn has_claim_of(&self, run: Hash) -> bool {
        about(&self.claims, run).next().is_some()
    }

    /// The executable transactions that are about an agent, requests for runs of it included.
    pub(crate) fn of_agent(&self, id: Hash) -> impl Iterator<Item = Hash> {
        about(&self.agents, id)
    }

    /// The executable transactions that are about the validators.
    pub(crate) fn of_validators(&self) -> impl Iterator<Item = Hash> {
        self.validators.iter().copied()
    }
}

/// The transactions in pairs of a subject and a transaction that are about the subject.
fn about(pairs: &BTreeSet<(Hash, Hash)>, subject: Hash) -> impl Iterator<Item = Hash> {
    let those = pairs.range((subject, Hash::ZERO)..);
    those.take_while(move |(other, _)| *other == subject).map(|(_, tx)| *tx)
}

/// The agent that a request wants a run of, beside which it is about the run.
fn agent_of_run(tx: &Transaction) -> Option<Hash> {
    let Body::AgentRequest(request) = tx.body() else { return None };
    request.agent.get().ok()?.agent_id
}
