//! Blocks.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use types::vrf::Proof;
use types::{Address, Amount, BlockFees, Hash, Header, SealedBlock, SealedTx, Signature};

use super::{AddressText, AmountText, HashText, SignatureText, TxObject, VrfProofText};
use crate::error::RpcError;
use crate::ports::{Certificate, ShownBlock};

/// A header, in the order in which it is hashed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeaderView {
    /// The chain's name.
    pub chain_id: String,
    /// The height.
    pub index: u64,
    /// The hash of the block before; the genesis hash for block 1.
    #[schemars(with = "HashText")]
    pub previous_hash: Hash,
    /// Block time.
    pub timestamp: u64,
    /// The validator that made the block.
    #[schemars(with = "AddressText")]
    pub proposer: Address,
    /// Merkle root over the transactions' hashes.
    #[schemars(with = "HashText")]
    pub tx_root: Hash,
    /// Root of the authenticated state after the previous block.
    #[schemars(with = "HashText")]
    pub state_root: Hash,
    /// What the block burned.
    #[schemars(with = "AmountText")]
    pub tokens_burned: Amount,
    /// How many transactions it has.
    pub tx_count: u64,
    /// From v7 on: what nobody could know before the proposer made the block.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub randomness: Option<Hash>,
    /// From v7 on: that `randomness` comes from the proposer's key and could not be another.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<VrfProofText>")]
    pub randomness_proof: Option<Proof>,
}

impl From<&Header> for HeaderView {
    fn from(header: &Header) -> Self {
        let Header {
            chain_id,
            index,
            previous_hash,
            timestamp,
            proposer,
            tx_root,
            state_root,
            tokens_burned,
            tx_count,
            randomness,
        } = header;
        Self {
            chain_id: chain_id.clone(),
            index: *index,
            previous_hash: *previous_hash,
            timestamp: *timestamp,
            proposer: *proposer,
            tx_root: *tx_root,
            state_root: *state_root,
            tokens_burned: *tokens_burned,
            tx_count: *tx_count,
            randomness: randomness.map(|it| it.value),
            randomness_proof: randomness.map(|it| it.proof),
        }
    }
}

/// The certificate that made a block final.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Commit {
    /// The block's index.
    pub height: u64,
    /// The round that decided it.
    pub round: u32,
    /// The block.
    #[schemars(with = "HashText")]
    pub block_hash: Hash,
    /// Precommits, in order of addresses.
    pub signatures: Vec<CommitEntry>,
}

/// One validator's precommit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitEntry {
    /// The validator.
    #[schemars(with = "AddressText")]
    pub address: Address,
    /// Its signature.
    #[schemars(with = "SignatureText")]
    pub signature: Signature,
}

impl From<Certificate> for Commit {
    fn from(certificate: Certificate) -> Self {
        let Certificate { height, round, block_hash, signatures } = certificate;
        let signatures = signatures
            .into_iter()
            .map(|(address, signature)| CommitEntry { address, signature })
            .collect();
        Self { height, round, block_hash, signatures }
    }
}

/// The transactions of a block.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum BlockTransactions {
    /// Signed objects.
    Full(#[schemars(with = "Vec<TxObject>")] Vec<Box<RawValue>>),
    /// Their hashes.
    Hashes(#[schemars(with = "Vec<HashText>")] Vec<Hash>),
}

/// What the places in a block cost; no member before v7.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockFeesView {
    /// From v7 on: the base fee of the block, in micro-OMBRA per KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub base_fee: Option<Amount>,
    /// From v7 on: what its transactions burned for their places; a part of `tokensBurned`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub inclusion_fees: Option<Amount>,
    /// From v7 on: the tips of its transactions for the proposer, those of transfers not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub tips: Option<Amount>,
    /// From v7 on: the base fee of the next block.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub next_base_fee: Option<Amount>,
}

impl From<Option<BlockFees>> for BlockFeesView {
    fn from(fees: Option<BlockFees>) -> Self {
        let Some(BlockFees { base_fee, burned, tips, next_base_fee }) = fees else {
            return Self::default();
        };
        Self {
            base_fee: Some(Amount::new(base_fee)),
            inclusion_fees: Some(burned),
            tips: Some(tips),
            next_base_fee: Some(Amount::new(next_base_fee)),
        }
    }
}

/// A block.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockView {
    /// The header's members.
    #[serde(flatten)]
    pub header: HeaderView,
    /// The header's hash: the block's name.
    #[schemars(with = "HashText")]
    pub hash: Hash,
    /// What places in it cost.
    #[serde(flatten)]
    pub fees: BlockFeesView,
    /// Objects or hashes, in order of execution.
    pub transactions: BlockTransactions,
    /// The certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
}

impl BlockView {
    /// The view of a committed block.
    ///
    /// # Errors
    /// [`RpcError::Internal`] if a stored text is not JSON, which is logged.
    pub(crate) fn new(shown: ShownBlock, with_objects: bool) -> Result<Self, RpcError> {
        let ShownBlock { block, certificate, fees } = shown;
        let SealedBlock { header, hash, transactions } = block;
        let transactions = if with_objects {
            BlockTransactions::Full(transactions.iter().map(sealed).collect::<Result<_, _>>()?)
        } else {
            BlockTransactions::Hashes(transactions.iter().map(SealedTx::hash).collect())
        };
        let commit = certificate.map(Commit::from);
        let (header, fees) = (HeaderView::from(&header), BlockFeesView::from(fees));
        Ok(Self { header, hash, fees, transactions, commit })
    }
}

/// A stored transaction as a JSON value. Nobody has looked into it since it was stored.
fn sealed(tx: &SealedTx) -> Result<Box<RawValue>, RpcError> {
    RawValue::from_string(tx.to_json()).map_err(|error| {
        tracing::error!(hash = %tx.hash(), %error, "a stored transaction is not JSON");
        RpcError::Internal
    })
}

/// A block in a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockSummary {
    /// The height.
    pub index: u64,
    /// Its name.
    #[schemars(with = "HashText")]
    pub hash: Hash,
    /// Block time.
    pub timestamp: u64,
    /// The validator that made it.
    #[schemars(with = "AddressText")]
    pub proposer: Address,
    /// How many transactions it has.
    pub tx_count: u64,
    /// What it burned.
    #[schemars(with = "AmountText")]
    pub tokens_burned: Amount,
}

impl BlockSummary {
    /// The summary of a header with its hash.
    #[must_use]
    pub const fn new(hash: Hash, header: &Header) -> Self {
        Self {
            index: header.index,
            hash,
            timestamp: header.timestamp,
            proposer: header.proposer,
            tx_count: header.tx_count,
            tokens_burned: header.tokens_burned,
        }
    }
}
