//! Building and signing transactions, for wallets and tools.
//!
//! [`build_tx`] takes the fields of a kind and returns the signed JSON text. A wallet that signs
//! elsewhere uses [`Unsigned`], which shows the exact text that is hashed and the exact characters
//! to sign, and accepts the signature later.

use crate::fork_vote::{FORK_MEMBER, HEIGHT_MEMBER};
use crate::json::ObjectWriter;
use crate::transaction::{build_payload, seal};
use crate::tx::declare::{Declared, Members};
use crate::tx::{Body, ForkVote, Transfer};
use crate::{Amount, Bid, Hash, Keypair, PublicKey, Signature};

/// The nonce, time and chain of a transaction to build.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// The sender's next nonce.
    pub nonce: u64,
    /// Milliseconds since 1970.
    pub timestamp: u64,
    /// The chain's id, written as the optional member `chainId`.
    pub chain_id: Option<String>,
    /// The offer for a place in a block. Only the members that have a value are written.
    pub bid: Bid,
}

impl Envelope {
    /// The envelope of a transaction that makes no offer for a place in a block.
    #[must_use]
    pub const fn new(nonce: u64, timestamp: u64, chain_id: Option<String>) -> Self {
        let bid = Bid { max_base_fee: None, tip: None };
        Self { nonce, timestamp, chain_id, bid }
    }
}

/// A built transaction that is not signed yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsigned {
    payload: String,
    hash: Hash,
}

impl Unsigned {
    /// Writes the payload in the order of docs/protocol.md section 5. `from` is written as given.
    #[must_use]
    pub fn build(body: &Body, from: &str, public_key: &PublicKey, envelope: &Envelope) -> Self {
        let Envelope { nonce, timestamp, chain_id, bid } = envelope;
        let times = (*nonce, *timestamp);
        let payload = build_payload(body, from, public_key, times, bid, chain_id.as_deref());
        let hash = Hash::digest(payload.as_bytes());
        Self { payload, hash }
    }

    /// Writes a vote for a fork: a TRANSFER of 0 from an account to itself (docs/protocol.md
    /// section 8.1).
    #[must_use]
    pub fn fork_vote(vote: &ForkVote, public_key: &PublicKey, envelope: &Envelope) -> Self {
        let ForkVote { fork, height } = vote;
        let Envelope { nonce, timestamp, chain_id, bid: _ } = envelope;
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

    /// The SHA-256 of the payload.
    #[must_use]
    pub const fn hash(&self) -> Hash {
        self.hash
    }

    /// The 64 characters to sign.
    #[must_use]
    pub fn signing_message(&self) -> String {
        self.hash.to_string()
    }

    /// The signed JSON text with a signature that was made elsewhere.
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

/// Builds and signs a transaction of any kind. The sender is the address of the key.
#[must_use]
pub fn build_tx(key: &Keypair, body: &Body, envelope: &Envelope) -> String {
    let from = key.address().to_string();
    Unsigned::build(body, &from, &key.public_key(), envelope).sign(key)
}

#[cfg(test)]
mod tests;
