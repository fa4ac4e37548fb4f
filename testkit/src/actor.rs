//! Somebody with a key who signs transactions, and the plainest fields of each kind.

use anyhow::Context as _;
use types::build::{Envelope, build_tx};
use types::tx::{
    AgentCancel, AgentClaim, AgentFinish, AgentRequest, AgentStep, BlobChunk, BlobFinalize,
    BlobInit, ChatTurn, MinerRegister, ToolCall, Transfer,
};
use types::{Address, Amount, Body, Hash, Keypair, ids};

use crate::workload::{envelope, keys};

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

    /// What this sender would ask with its next nonce.
    #[must_use]
    pub fn request(&self, prompt: &str, max_fee: u64, max_steps: u64) -> AgentRequest {
        let from = self.address().to_string();
        AgentRequest {
            agent_run_id: ids::compute_agent_run_id(&from, self.nonce, prompt),
            conversation_id: conversation(),
            prompt: prompt.to_owned(),
            tools_whitelist: Vec::new(),
            max_fee: Amount::new(max_fee),
            max_steps,
            prompt_blob_id: None,
            model_hint: None,
            protection: types::Late::default(),
            agent: types::Late::default(),
        }
    }

    /// What this miner would claim.
    #[must_use]
    pub fn claim(&self, agent_run_id: Hash) -> AgentClaim {
        AgentClaim {
            agent_run_id,
            miner_address: self.address().into(),
            model_info: "model".to_owned(),
            hardware_tier: "desktop".to_owned(),
        }
    }
}

/// The first development accounts, who have sent nothing yet.
pub fn people<const N: usize>() -> anyhow::Result<[Actor; N]> {
    let keys: [Keypair; N] = keys(N)?.try_into().ok().context("as many keys")?;
    Ok(keys.map(Actor::new))
}

/// The conversation that everything belongs to unless it is said otherwise.
#[must_use]
pub fn conversation() -> Hash {
    Hash::digest(b"conversation")
}

#[must_use]
pub fn transfer(to: Address, micro: u64) -> Body {
    Body::Transfer(Transfer::new(to, Amount::new(micro), Amount::ZERO))
}

#[must_use]
pub fn register(name: &str) -> Body {
    let (name, model_info) = (name.to_owned(), "model".to_owned());
    Body::MinerRegister(MinerRegister { name, capabilities: Vec::new(), model_info })
}

#[must_use]
pub fn turn(content: &str) -> ChatTurn {
    ChatTurn {
        conversation_id: conversation(),
        role: "user".to_owned(),
        content: content.to_owned(),
        content_blob_id: None,
        parent_turn_hash: None,
        agent_run_id: None,
        attachments: None,
    }
}

#[must_use]
pub fn step(agent_run_id: Hash, step_index: u64, output_tokens: u64) -> Body {
    Body::AgentStep(plain_step(agent_run_id, step_index, output_tokens))
}

/// The fields of [`step`].
#[must_use]
pub fn plain_step(agent_run_id: Hash, step_index: u64, output_tokens: u64) -> AgentStep {
    AgentStep {
        agent_run_id,
        step_index,
        output_tokens,
        output_hash: Hash::digest(b"output"),
        thought_blob_id: None,
        tool_calls: None,
        output_blob_id: None,
    }
}

/// A call of a tool that went well.
#[must_use]
pub fn tool_call(name: &str) -> ToolCall {
    ToolCall {
        name: name.to_owned(),
        args_hash: Hash::digest(b"arguments"),
        result_hash: Hash::digest(b"result"),
        duration_ms: 87,
        ok: true,
    }
}

/// An end with what is earned, refunded and burned.
#[must_use]
pub fn finish(agent_run_id: Hash, tokens: u64, [reward, refund, fee]: [u64; 3]) -> AgentFinish {
    let [miner_reward, user_refund, network_fee] = [reward, refund, fee].map(Amount::new);
    AgentFinish {
        agent_run_id,
        total_tokens_out: tokens,
        status: "completed".to_owned(),
        miner_reward,
        user_refund,
        network_fee,
        final_answer_inline: None,
        final_answer_blob_id: None,
    }
}

#[must_use]
pub const fn cancel(agent_run_id: Hash) -> Body {
    Body::AgentCancel(AgentCancel { agent_run_id })
}

/// The announcement of a blob of one chunk with these bytes.
#[must_use]
pub fn blob_init(id: &str, bytes: &[u8]) -> BlobInit {
    BlobInit {
        blob_id: id.to_owned(),
        content_type: "text/plain".to_owned(),
        total_bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        total_chunks: 1,
        content_hash: Hash::digest(bytes),
    }
}

#[must_use]
pub fn blob_chunk(id: &str, chunk_index: u64, bytes: &[u8]) -> Body {
    let (blob_id, chunk_data) = (id.to_owned(), bytes.to_vec());
    Body::BlobChunk(BlobChunk { blob_id, chunk_index, chunk_data })
}

#[must_use]
pub fn blob_finalize(id: &str) -> Body {
    Body::BlobFinalize(BlobFinalize { blob_id: id.to_owned() })
}
