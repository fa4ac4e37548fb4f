//! Blocks.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use types::vrf::Proof;
use types::{Address, Amount, BlockFees, Hash, Header, SealedBlock, SealedTx, Signature};

use super::{AddressText, AmountText, HashText, SignatureText, TxObject, VrfProofText};
use crate::error::RpcError;
use crate::ports::{Certificate, ShownBlock};

/// A block header. The members are in the order in which they are hashed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeaderView {
    /// The id of the chain.
    pub chain_id: String,
    /// The height of the block.
    pub index: u64,
    /// The hash of the previous block; the genesis hash for block 1.
    #[schemars(with = "HashText")]
    pub previous_hash: Hash,
    /// The time of the block, in milliseconds since 1970.
    pub timestamp: u64,
    /// The address of the validator that made the block.
    #[schemars(with = "AddressText")]
    pub proposer: Address,
    /// The Merkle root of the transaction hashes.
    #[schemars(with = "HashText")]
    pub tx_root: Hash,
    /// The root of the authenticated state after the previous block.
    #[schemars(with = "HashText")]
    pub state_root: Hash,
    /// The amount that the block burned.
    #[schemars(with = "AmountText")]
    pub tokens_burned: Amount,
    /// The number of transactions in the block.
    pub tx_count: u64,
    /// A random value that nobody could know before the proposer made the block. Present from v7
    /// on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub randomness: Option<Hash>,
    /// The proof that `randomness` comes from the proposer's key, which can produce no other value.
    /// Present from v7 on.
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

/// The commit certificate that made a block final.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Commit {
    /// The height of the block.
    pub height: u64,
    /// The round that decided the block.
    pub round: u32,
    /// The hash of the block.
    #[schemars(with = "HashText")]
    pub block_hash: Hash,
    /// The precommits, in the order of the validators' addresses.
    pub signatures: Vec<CommitEntry>,
}

/// The precommit of one validator.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitEntry {
    /// The address of the validator.
    #[schemars(with = "AddressText")]
    pub address: Address,
    /// The validator's signature.
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
    /// The signed transaction objects.
    Full(#[schemars(with = "Vec<TxObject>")] Vec<Box<RawValue>>),
    /// The transaction hashes.
    Hashes(#[schemars(with = "Vec<HashText>")] Vec<Hash>),
}

/// The fees of a block. Before v7, all members are absent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockFeesView {
    /// The base fee of the block, in micro-OMBRA per KiB. Present from v7 on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub base_fee: Option<Amount>,
    /// The inclusion fees that the block's transactions burned; part of `tokensBurned`. Present
    /// from v7 on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub inclusion_fees: Option<Amount>,
    /// The tips that the proposer received, without the fees of transfers. Present from v7 on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub tips: Option<Amount>,
    /// The base fee of the next block. Present from v7 on.
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
    /// The members of the header.
    #[serde(flatten)]
    pub header: HeaderView,
    /// The hash of the header, which identifies the block.
    #[schemars(with = "HashText")]
    pub hash: Hash,
    /// The fees of the block.
    #[serde(flatten)]
    pub fees: BlockFeesView,
    /// The transactions in the order of execution, as objects or as hashes.
    pub transactions: BlockTransactions,
    /// The commit certificate of the block.
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

/// A stored transaction as a JSON value. Nothing has parsed it since it was stored.
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
    /// The height of the block.
    pub index: u64,
    /// The hash of the block.
    #[schemars(with = "HashText")]
    pub hash: Hash,
    /// The time of the block, in milliseconds since 1970.
    pub timestamp: u64,
    /// The address of the validator that made the block.
    #[schemars(with = "AddressText")]
    pub proposer: Address,
    /// The number of transactions in the block.
    pub tx_count: u64,
    /// The amount that the block burned.
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
