//! What a client checks of blocks by itself: headers by their certificates, and rows of the state by the
//! root that a header carries (docs/protocol.md section 14.3).

use consensus::{Certificate, ValidatorSet};
use serde::Deserialize;
use serde_json::{Value, json};
use state::table::{Key, Table, decode_value};
use store::tree::{Proof, ProofLeaf};
use types::sign_bytes::Domain;
use types::{Address, Amount, Hash, Header, PublicKey, Randomness};
use wallet::{Answer, Client};

use crate::client::CliError;

/// A header as the interface shows it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    chain_id: String,
    index: u64,
    previous_hash: Hash,
    timestamp: u64,
    proposer: Address,
    tx_root: Hash,
    state_root: Hash,
    tokens_burned: Amount,
    tx_count: u64,
    randomness: Option<Hash>,
    randomness_proof: Option<String>,
}

/// The header in what a node tells.
fn header(told: &Value) -> Result<Header, String> {
    let shown = Shown::deserialize(told).map_err(|error| format!("no header: {error}"))?;
    let proof = shown.randomness_proof.map(|text| text.parse()).transpose();
    let proof = proof.map_err(|error| format!("no proof of randomness: {error}"))?;
    let randomness = shown.randomness.zip(proof);
    Ok(Header {
        chain_id: shown.chain_id,
        index: shown.index,
        previous_hash: shown.previous_hash,
        timestamp: shown.timestamp,
        proposer: shown.proposer,
        tx_root: shown.tx_root,
        state_root: shown.state_root,
        tokens_burned: shown.tokens_burned,
        tx_count: shown.tx_count,
        randomness: randomness.map(|(value, proof)| Randomness { value, proof }),
    })
}

/// A validator as the interface shows it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Member {
    address: Address,
    public_key: PublicKey,
    power: u64,
}

/// The validators of a height, as the node names them.
struct Validators {
    members: Vec<Member>,
    set: ValidatorSet,
}

/// A header that more than two thirds of the validators have signed.
pub(super) struct Certified {
    pub(super) header: Header,
    /// The key of its proposer.
    pub(super) proposer_key: PublicKey,
}

/// A node of a chain, of which headers are checked.
pub(super) struct Checker<'a> {
    client: &'a Client,
    domain: Domain,
}

impl<'a> Checker<'a> {
    pub(super) async fn of(client: &'a Client) -> Result<Self, CliError> {
        let told: Answer = client.call("ombra_chainInfo", json!([])).await?;
        let text = |key: &str| told[key].as_str().unwrap_or_default();
        let genesis_hash = Hash::parse(text("genesisHash"))
            .map_err(|error| CliError::Failed(format!("the node's genesisHash: {error}")))?;
        let v7_from = told["forks"]["v7"].as_u64();
        let domain = Domain { chain_id: text("chainId").into(), genesis_hash, v7_from };
        Ok(Self { client, domain })
    }

    /// The chain's name.
    pub(super) fn chain_id(&self) -> &str {
        &self.domain.chain_id
    }

    /// The randomness that a block's is made of.
    pub(super) async fn randomness_before(&self, height: u64) -> Result<Hash, String> {
        let Some(before) = height.checked_sub(1).filter(|before| *before > 0) else {
            return Ok(self.domain.genesis_hash);
        };
        let before = self.block(before).await?;
        Ok(before.header.randomness.map_or(self.domain.genesis_hash, |it| it.value))
    }

    /// The header of a block.
    pub(super) async fn block(&self, height: u64) -> Result<Certified, String> {
        let asked = self.client.call("ombra_getBlock", (height, false)).await;
        let told: Answer = asked.map_err(|error| error.to_string())?;
        self.certified(&told, &told["commit"], height).await
    }

    /// A header and the certificate that it comes with.
    async fn certified(
        &self,
        told: &Value,
        commit: &Value,
        height: u64,
    ) -> Result<Certified, String> {
        let header = header(told)?;
        let certificate =
            Certificate::deserialize(commit).map_err(|error| format!("no certificate: {error}"))?;
        let is_of_it = certificate.height == height && header.index == height;
        if !is_of_it || certificate.block_hash != header.hash() {
            return Err(format!("the certificate is not that of header {}", header.hash()));
        }
        let Validators { members, set } = self.validators(height).await?;
        certificate.verify(&self.domain, &set).map_err(|error| error.to_string())?;
        let proposer = members.iter().find(|it| it.address == header.proposer);
        let proposer = proposer.ok_or("the proposer is not a validator at this height")?;
        let is_its = Address::from_public_key(&proposer.public_key) == proposer.address;
        let proposer_key = proposer.public_key;
        is_its
            .then_some(Certified { header, proposer_key })
            .ok_or_else(|| format!("the key {proposer_key} is not that of {}", proposer.address))
    }

    async fn validators(&self, height: u64) -> Result<Validators, String> {
        let asked = self.client.call("ombra_getValidators", [height]).await;
        let told: Answer = asked.map_err(|error| error.to_string())?;
        let members = Vec::<Member>::deserialize(&*told).map_err(|error| error.to_string())?;
        let keys = members.iter().map(|it| (it.public_key, it.power));
        let set = ValidatorSet::new(keys).map_err(|error| error.to_string())?;
        Ok(Validators { members, set })
    }

    /// A row of the state, by the proof that the node gives for `target`, and the height whose state it is.
    pub(super) async fn row<T: Table>(
        &self,
        target: &Value,
        key: &T::Key,
    ) -> Result<(T::Value, u64), String> {
        let asked = self.client.call("ombra_getProof", [target]).await;
        let told: Answer = asked.map_err(|error| error.to_string())?;
        let height = told["header"]["index"].as_u64().ok_or("the proof names no header")?;
        let Certified { header, .. } =
            self.certified(&told["header"], &told["commit"], height).await?;
        let hash = |value: &Value| {
            let text = value.as_str().unwrap_or_default();
            Hash::parse(text).map_err(|error| error.to_string())
        };
        let leaf = |leaf: &Value| -> Result<ProofLeaf, String> {
            let (key_hash, value_hash) = (hash(&leaf["key"])?, hash(&leaf["valueHash"])?);
            Ok(ProofLeaf { key_hash, value_hash })
        };
        let leaf = told.get("leaf").filter(|it| !it.is_null()).map(leaf).transpose()?;
        let siblings = told["siblings"].as_array().into_iter().flatten();
        let siblings = siblings.map(hash).collect::<Result<Vec<Hash>, String>>()?;
        let value = told["value"].as_str().and_then(|hex| const_hex::decode(hex).ok());
        let value = value.ok_or("the proof is a proof of absence")?;
        let proof = Proof { leaf, siblings };
        let verified = proof.verify(header.state_root, T::ID, &key.to_bytes(), Some(&value));
        verified.map_err(|error| error.to_string())?;
        let row = decode_value::<T>(&value).map_err(|error| error.to_string())?;
        Ok((row, height.saturating_sub(1)))
    }
}
