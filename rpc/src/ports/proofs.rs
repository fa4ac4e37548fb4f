//! Merkle proofs.

use types::agent::ExecutorId;
use types::{Address, Hash, Header};

use super::{Certificate, PortFault};

/// What a proof is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProofTarget {
    /// An account.
    Account(Address),
    /// A run.
    AgentRun(Hash),
    /// The validators of the next heights.
    Validators,
    /// What an account has at stake as a miner.
    Bond(Address),
    /// A miner's offer for an executor.
    Offer(Address, ExecutorId),
    /// An agent.
    Agent(Hash),
    /// A call.
    Call(Hash),
}

/// That a key has a value, or none, in an authenticated state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proof {
    /// The key in the tree.
    pub key: Hash,
    /// The authenticated bytes at the key; none proves absence.
    pub value: Option<Vec<u8>>,
    /// The key and value hash of the leaf that the path ends in, if it ends in one.
    pub leaf: Option<(Hash, Hash)>,
    /// Hashes of the siblings on the path, from the leaf to the root.
    pub siblings: Vec<Hash>,
    /// The root that the path leads to.
    pub state_root: Hash,
    /// The header that carries the root.
    pub header: Header,
    /// The certificate of that header.
    pub certificate: Certificate,
}

/// Merkle proofs.
pub trait Proofs: Send + Sync {
    /// A proof in the newest state whose root a committed header carries; none if there is no
    /// such header yet.
    ///
    /// # Errors
    /// [`PortFault`].
    fn prove(&self, target: &ProofTarget) -> Result<Option<Proof>, PortFault>;
}
