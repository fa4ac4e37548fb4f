//! Signed transactions, and the nonce, time and chain id that go into them.

use serde_json::value::RawValue;
use types::build::Unsigned;
use types::tx::{AgentRequest, Protection, RunOfAgent};
use types::{Amount, Body, ForkVote, Hash, Keypair, ids};

pub use types::build::Envelope;

use crate::{ChainIdentity, Client, ClientError, OtherChain};

/// A signed transaction: the text to send, byte for byte as it was built, and its hash.
#[derive(Clone, Debug)]
pub struct Signed {
    json: Box<RawValue>,
    hash: Hash,
}

impl Signed {
    /// Builds and signs a transaction from the key's own address.
    ///
    /// # Panics
    /// Never: the builders write valid JSON.
    #[must_use]
    pub fn new(keypair: &Keypair, envelope: &Envelope, body: &Body) -> Self {
        let from = keypair.address().to_string();
        Self::sign(keypair, &Unsigned::build(body, &from, &keypair.public_key(), envelope))
    }

    /// Builds and signs a vote for a fork (docs/protocol.md section 8.1).
    ///
    /// # Panics
    /// Never: the builders write valid JSON.
    #[must_use]
    pub fn fork_vote(keypair: &Keypair, envelope: &Envelope, vote: &ForkVote) -> Self {
        Self::sign(keypair, &Unsigned::fork_vote(vote, &keypair.public_key(), envelope))
    }

    fn sign(keypair: &Keypair, unsigned: &Unsigned) -> Self {
        let json = RawValue::from_string(unsigned.sign(keypair))
            .expect("the builders of transactions write valid JSON");
        Self { json, hash: unsigned.hash() }
    }

    /// The transaction's hash.
    #[must_use]
    pub const fn hash(&self) -> Hash {
        self.hash
    }

    /// The signed object as text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.json.get()
    }

    /// The signed object for a JSON document, its text unchanged.
    #[must_use]
    pub fn json(&self) -> &RawValue {
        &self.json
    }
}

/// What a submitter chooses about a run; its id follows from the sender, the nonce and the prompt.
#[derive(Clone, Debug)]
pub struct Request {
    /// The conversation it belongs to.
    pub conversation_id: Hash,
    /// The question.
    pub prompt: String,
    /// Tools that the miner may use.
    pub tools_whitelist: Vec<String>,
    /// The escrow, micro-OMBRA.
    pub max_fee: Amount,
    /// The highest number of steps, 1 to 200.
    pub max_steps: u64,
    /// A finalised blob that continues the prompt.
    pub prompt_blob_id: Option<String>,
    /// The model wished for.
    pub model_hint: Option<String>,
    /// How the run is protected; nothing before fork v7.
    pub protection: Protection,
    /// The published agent of which it is a run, and its version; nothing before fork v8.
    pub agent: Option<(Hash, String)>,
}

/// The least bond that a claim locks where clients protect a run by default, micro-OMBRA.
const CLAIM_BOND_MIN: Amount = Amount::new(100_000);
/// How much more than the escrow such a bond is: as much as refusing costs the submitter.
const CLAIM_BOND_MORE: Amount = Amount::new(10_000);
/// How long clients have a reward held by default, in milliseconds: ten minutes.
pub const REFUSE_MS_DEFAULT: u64 = 600_000;

/// The bond that a claim of a run with this escrow locks where nothing else is said: at least what its
/// miner could earn by an answer that is refused, and what refusing it costs.
#[must_use]
pub fn claim_bond_default(max_fee: Amount) -> Amount {
    max_fee.checked_add(CLAIM_BOND_MORE).unwrap_or(max_fee).max(CLAIM_BOND_MIN)
}

impl Request {
    /// The transaction's body, with the run's id for this sender and nonce (docs/protocol.md section 5.2).
    #[must_use]
    pub fn into_body(self, keypair: &Keypair, nonce: u64) -> AgentRequest {
        let from = keypair.address().to_string();
        let (agent_id, agent_version) = self.agent.unzip();
        AgentRequest {
            agent_run_id: ids::compute_agent_run_id(&from, nonce, &self.prompt),
            conversation_id: self.conversation_id,
            prompt: self.prompt,
            tools_whitelist: self.tools_whitelist,
            max_fee: self.max_fee,
            max_steps: self.max_steps,
            prompt_blob_id: self.prompt_blob_id,
            model_hint: self.model_hint,
            protection: self.protection.into(),
            agent: RunOfAgent { agent_id, agent_version }.into(),
        }
    }
}

impl Client {
    /// The next envelope of a key for a chain: the nonce after all pending transactions, and the
    /// chain's id.
    ///
    /// # Errors
    /// When the node is not reachable, and [`ClientError::OtherChain`] if it is of another chain.
    pub async fn envelope(
        &self,
        keypair: &Keypair,
        chain: &ChainIdentity,
        timestamp_ms: u64,
    ) -> Result<Envelope, ClientError> {
        let account = self.account(&keypair.address()).await?;
        let got = self.chain_info().await?.chain();
        if got != *chain {
            let other = OtherChain { expected: chain.clone(), got };
            return Err(ClientError::OtherChain(Box::new(other)));
        }
        Ok(Envelope::new(account.pending_nonce, timestamp_ms, Some(chain.chain_id.clone())))
    }
}

#[cfg(test)]
mod tests {
    //! The signed text is what the vectors say and is sent unchanged.

    use types::tx::Transfer;
    use types::{Amount, Body};

    use super::{Envelope, Request, Signed, claim_bond_default};
    use crate::Phrase;

    const GOLDEN: &str = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about";

    fn golden() -> types::Keypair {
        Phrase::parse(GOLDEN).unwrap().derive(0).unwrap()
    }

    #[test]
    fn the_golden_transfer_has_the_published_hash_and_signature() {
        let to = "5bb5c50f185363cf913f93a18c6837c20d720a69".parse().unwrap();
        let transfer = Transfer::new(to, Amount::new(1_000_000), Amount::new(10_000));
        let envelope = Envelope::new(0, 1_715_990_000_000, None);
        let signed = Signed::new(&golden(), &envelope, &Body::Transfer(transfer));
        assert_eq!(
            "eb884fc4e54391df6b40a9f96ef5a301d80da83e043b15006550881389220b83",
            signed.hash().to_string()
        );
        let signature = "eaeba1e252185d7640de268c88755d61fdddf6d2a399ae57fd45984c94ceee93df9b36d933f50add8cee9f5e859477fb19b51a03a6db6bda64ccd18b935c6307";
        assert!(signed.text().ends_with(&format!(r#""signature":"{signature}"}}"#)));
        assert_eq!(signed.text(), serde_json::to_string(signed.json()).unwrap());
    }

    #[test]
    fn a_request_names_the_run_that_follows_from_sender_nonce_and_prompt() {
        let request = Request {
            conversation_id: types::Hash::ZERO,
            prompt: "What is my balance?".into(),
            tools_whitelist: vec![],
            max_fee: Amount::new(100),
            max_steps: 1,
            prompt_blob_id: None,
            model_hint: None,
            protection: types::tx::Protection::default(),
            agent: None,
        };
        assert_eq!(
            "731003a8a724720b12c81fa536adc996230f4a8f892df43cfba3c8696383b942",
            request.into_body(&golden(), 7).agent_run_id.to_string()
        );
    }
    #[test]
    fn the_bond_of_a_claim_is_more_than_the_escrow_and_at_least_a_tenth_of_an_ombra() {
        for (max_fee, bond) in [
            (0, 100_000),
            (90_000, 100_000),
            (90_001, 100_001),
            (1_000_000, 1_010_000),
            (u64::MAX, u64::MAX),
        ] {
            assert_eq!(Amount::new(bond), claim_bond_default(Amount::new(max_fee)), "{max_fee}");
        }
    }
}
