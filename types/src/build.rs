//! Building and signing transactions, for wallets and tools.
//!
//! The functions named `build_…_tx` take a kind's fields and give the signed JSON text. A wallet
//! that signs elsewhere uses [`Unsigned`]: it shows the exact text that is hashed and the exact
//! characters that are signed, and takes the signature afterwards.

use crate::fork_vote::{FORK_MEMBER, ForkVote, HEIGHT_MEMBER};
use crate::json::ObjectWriter;
use crate::transaction::{build_payload, seal};
use crate::tx::{
    AgentCancel, AgentClaim, AgentFinish, AgentRequest, AgentStep, BlobChunk, BlobFinalize,
    BlobInit, Body, ChatTurn, Kind, MinerRegister, Transfer, ValidatorVote,
};
use crate::{Amount, Hash, Keypair, PublicKey, Signature};

/// Nonce, time and chain of a transaction to be built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// The account's next nonce.
    pub nonce: u64,
    /// Milliseconds since 1970.
    pub timestamp: u64,
    /// Written as the optional member `chainId` if given.
    pub chain_id: Option<String>,
}

/// A transaction that waits for its signature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsigned {
    payload: String,
    hash: Hash,
}

impl Unsigned {
    /// Writes the payload in the order of docs/protocol.md section 5. `from` is written as given.
    #[must_use]
    pub fn build(body: &Body, from: &str, public_key: &PublicKey, envelope: &Envelope) -> Self {
        let Envelope { nonce, timestamp, chain_id } = envelope;
        let times = (*nonce, *timestamp);
        let payload = build_payload(body, from, public_key, times, chain_id.as_deref());
        let hash = Hash::digest(payload.as_bytes());
        Self { payload, hash }
    }

    /// Writes a vote for a fork: a TRANSFER of nothing from an account to itself (docs/protocol.md
    /// section 8.1).
    #[must_use]
    pub fn fork_vote(vote: &ForkVote, public_key: &PublicKey, envelope: &Envelope) -> Self {
        let ForkVote { fork, height } = vote;
        let Envelope { nonce, timestamp, chain_id } = envelope;
        let address = public_key.address();
        let mut payload = String::with_capacity(512);
        let mut object = ObjectWriter::new(&mut payload);
        object.string("type", Transfer::TYPE);
        object.display("from", &address);
        Transfer::new(address, Amount::ZERO, Amount::ZERO).write_required(&mut object);
        object.integer("nonce", *nonce);
        object.integer("timestamp", *timestamp);
        object.string(FORK_MEMBER, fork);
        object.integer(HEIGHT_MEMBER, *height);
        if let Some(chain_id) = chain_id {
            object.string("chainId", chain_id);
        }
        object.display("publicKey", public_key);
        object.end();
        let hash = Hash::digest(payload.as_bytes());
        Self { payload, hash }
    }

    /// The exact text that is hashed.
    #[must_use]
    pub fn payload(&self) -> &str {
        &self.payload
    }

    /// SHA-256 of the payload.
    #[must_use]
    pub const fn hash(&self) -> Hash {
        self.hash
    }

    /// The 64 characters to sign.
    #[must_use]
    pub fn signing_message(&self) -> String {
        self.hash.to_string()
    }

    /// The signed JSON text with a signature made elsewhere.
    #[must_use]
    pub fn attach(&self, signature: &Signature) -> String {
        seal(&self.payload, &self.hash, signature)
    }

    /// The signed JSON text.
    #[must_use]
    pub fn sign(&self, key: &Keypair) -> String {
        self.attach(&key.sign(self.signing_message().as_bytes()))
    }
}

/// Builds and signs a transaction of any kind; the sender is the key's address.
#[must_use]
pub fn build_tx(key: &Keypair, body: &Body, envelope: &Envelope) -> String {
    let from = key.address().to_string();
    Unsigned::build(body, &from, &key.public_key(), envelope).sign(key)
}

/// A signed CHAT_TURN.
#[must_use]
pub fn build_chat_turn_tx(key: &Keypair, fields: ChatTurn, envelope: &Envelope) -> String {
    build_tx(key, &Body::ChatTurn(fields), envelope)
}

/// A signed AGENT_REQUEST.
#[must_use]
pub fn build_agent_request_tx(key: &Keypair, fields: AgentRequest, envelope: &Envelope) -> String {
    build_tx(key, &Body::AgentRequest(fields), envelope)
}

/// A signed AGENT_CLAIM.
#[must_use]
pub fn build_agent_claim_tx(key: &Keypair, fields: AgentClaim, envelope: &Envelope) -> String {
    build_tx(key, &Body::AgentClaim(fields), envelope)
}

/// A signed AGENT_STEP.
#[must_use]
pub fn build_agent_step_tx(key: &Keypair, fields: AgentStep, envelope: &Envelope) -> String {
    build_tx(key, &Body::AgentStep(fields), envelope)
}

/// A signed AGENT_FINISH.
#[must_use]
pub fn build_agent_finish_tx(key: &Keypair, fields: AgentFinish, envelope: &Envelope) -> String {
    build_tx(key, &Body::AgentFinish(fields), envelope)
}

/// A signed AGENT_CANCEL.
#[must_use]
pub fn build_agent_cancel_tx(key: &Keypair, fields: AgentCancel, envelope: &Envelope) -> String {
    build_tx(key, &Body::AgentCancel(fields), envelope)
}

/// A signed TRANSFER.
#[must_use]
pub fn build_transfer_tx(key: &Keypair, fields: Transfer, envelope: &Envelope) -> String {
    build_tx(key, &Body::Transfer(fields), envelope)
}

/// A signed MINER_REGISTER.
#[must_use]
pub fn build_miner_register_tx(
    key: &Keypair,
    fields: MinerRegister,
    envelope: &Envelope,
) -> String {
    build_tx(key, &Body::MinerRegister(fields), envelope)
}

/// A signed SOCIAL_BLOB_INIT.
#[must_use]
pub fn build_blob_init_tx(key: &Keypair, fields: BlobInit, envelope: &Envelope) -> String {
    build_tx(key, &Body::BlobInit(fields), envelope)
}

/// A signed SOCIAL_BLOB_CHUNK.
#[must_use]
pub fn build_blob_chunk_tx(key: &Keypair, fields: BlobChunk, envelope: &Envelope) -> String {
    build_tx(key, &Body::BlobChunk(fields), envelope)
}

/// A signed SOCIAL_BLOB_FINALIZE.
#[must_use]
pub fn build_blob_finalize_tx(key: &Keypair, fields: BlobFinalize, envelope: &Envelope) -> String {
    build_tx(key, &Body::BlobFinalize(fields), envelope)
}

/// A signed VALIDATOR_VOTE.
#[must_use]
pub fn build_validator_vote_tx(
    key: &Keypair,
    fields: ValidatorVote,
    envelope: &Envelope,
) -> String {
    build_tx(key, &Body::ValidatorVote(fields), envelope)
}

#[cfg(test)]
mod tests;
