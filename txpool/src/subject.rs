//! What a transaction is about, so that those that hang together can fall together.

#![expect(clippy::disallowed_types, reason = "subjects are looked up and counted, never listed")]

use std::collections::{BTreeSet, HashMap};

use types::tx::Subject;
use types::{Body, Code, Hash, PublicKey, Transaction};

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

/// What only one of several senders can have.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Contested {
    /// A pending run: it is claimed once, or cancelled.
    Run(Hash),
    /// The appeal of a call.
    Appeal(Hash),
    /// A validator's key, which is punished once.
    Key(PublicKey),
    /// The id of a blob.
    Blob(String),
    /// That an agent takes calls, which its owner can end.
    Agent(Hash),
}

impl Contested {
    /// What a transaction takes from all others.
    fn taken_by(body: &Body) -> Option<Self> {
        if let Body::AgentClaim(claim) = body {
            return Some(Self::Run(claim.agent_run_id));
        }
        if let Body::AgentCancel(cancel) = body {
            return Some(Self::Run(cancel.agent_run_id));
        }
        if let Body::CallAppeal(appeal) = body {
            return Some(Self::Appeal(appeal.call_id));
        }
        if let Body::Evidence(evidence) = body {
            return Some(Self::Key(evidence.validator_key));
        }
        if let Body::BlobInit(init) = body {
            return Some(Self::Blob(init.blob_id.clone()));
        }
        if let Body::AgentRetire(retire) = body {
            return Some(Self::Agent(retire.agent_id));
        }
        None
    }

    /// What a transaction that is refused with this code did not get, because another one may have taken it.
    pub(crate) fn missed_by(tx: &Transaction, code: Code) -> Option<Self> {
        let agent = if let Body::AgentCall(call) = tx.body() {
            Some(call.agent_id)
        } else {
            agent_of_run(tx)
        };
        let contested = agent.map(Self::Agent).or_else(|| Self::taken_by(tx.body()))?;
        let expected = match &contested {
            Self::Run(_) => Code::RunNotPending,
            Self::Appeal(_) => Code::AppealClosed,
            Self::Key(_) => Code::EvidenceInvalid,
            Self::Blob(_) => Code::BlobExists,
            Self::Agent(_) => Code::AgentRetired,
        };
        (code == expected).then_some(contested)
    }
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
    /// What is taken, and by what.
    taken: BTreeSet<(Contested, Hash)>,
}

impl Subjects {
    pub(crate) fn add(&mut self, tx: &Transaction) {
        self.taken.extend(Contested::taken_by(tx.body()).map(|contested| (contested, tx.hash())));
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
        if let Some(contested) = Contested::taken_by(tx.body()) {
            self.taken.remove(&(contested, tx.hash()));
        }
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

    /// The executable transactions that take what several want.
    pub(crate) fn takers(&self, contested: Contested) -> impl Iterator<Item = Hash> {
        let from = (contested, Hash::ZERO);
        let those = self.taken.range(from.clone()..);
        those.take_while(move |(other, _)| *other == from.0).map(|(_, tx)| *tx)
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
