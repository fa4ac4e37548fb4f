//! Somebody with a key who signs transactions.

use anyhow::Context as _;
use types::build::{Envelope, build_tx};
use types::tx::{AgentCall, AgentClaim, AgentRequest};
use types::{Address, Body, Hash, Keypair, transaction};

use crate::workload::{envelope, keys};

pub use fixtures::{
    blob_chunk, blob_finalize, blob_init, cancel, conversation, finish, plain_step, register_miner,
    step, tool_call, transfer, turn,
};

/// A key, and the nonce that its next transaction has.
#[derive(Clone, Debug)]
pub struct Actor {
    pub key: Keypair,
    pub nonce: u64,
}

impl Actor {
    /// Nobody has sent anything with this key yet.
    #[must_use]
    pub const fn new(key: Keypair) -> Self {
        Self { key, nonce: 0 }
    }

    /// The same with another nonce.
    #[must_use]
    pub fn at(&self, nonce: u64) -> Self {
        Self { nonce, ..self.clone() }
    }

    #[must_use]
    pub fn address(&self) -> Address {
        self.key.address()
    }

    /// A signed text with the next nonce, which stays the next one: for what will be refused.
    #[must_use]
    pub fn draft(&self, body: &Body) -> String {
        build_tx(&self.key, body, &envelope(self.nonce))
    }

    /// The same naming the chain, as kinds of fork v8 must.
    #[must_use]
    pub fn draft_on(&self, chain_id: &str, body: &Body) -> String {
        let chain_id = Some(chain_id.to_owned());
        build_tx(&self.key, body, &Envelope { chain_id, ..envelope(self.nonce) })
    }

    /// A signed text with the next nonce, naming the chain.
    pub fn sign_on(&mut self, chain_id: &str, body: &Body) -> String {
        let text = self.draft_on(chain_id, body);
        self.nonce += 1;
        text
    }

    /// A signed text with the next nonce.
    pub fn sign(&mut self, body: &Body) -> String {
        let text = self.draft(body);
        self.nonce += 1;
        text
    }

    /// A payload of any form, signed.
    #[must_use]
    pub fn seal(&self, payload: &str) -> String {
        let hash = Hash::digest(payload.as_bytes());
        transaction::seal(payload, &hash, &self.key.sign(hash.to_string().as_bytes()))
    }

    /// What this sender would ask with its next nonce.
    #[must_use]
    pub fn request(&self, prompt: &str, max_fee: u64, max_steps: u64) -> AgentRequest {
        fixtures::request(self.address(), self.nonce, prompt, max_fee, max_steps)
    }

    /// What this miner would claim.
    #[must_use]
    pub fn claim(&self, agent_run_id: Hash) -> AgentClaim {
        fixtures::claim(self.address(), agent_run_id)
    }

    /// What this requester would ask of three members with its next nonce.
    #[must_use]
    pub fn call(&self, chain_id: &str, agent_id: Hash) -> AgentCall {
        fixtures::call(chain_id, self.address(), self.nonce, agent_id)
    }
}

/// The first development accounts, who have sent nothing yet.
pub fn people<const N: usize>() -> anyhow::Result<[Actor; N]> {
    let keys: [Keypair; N] = keys(N)?.try_into().ok().context("as many keys")?;
    Ok(keys.map(Actor::new))
}
