//! The chain, its blocks, its money, its rules.

use jsonrpsee::proc_macros::rpc;

use crate::error::RpcError;
use crate::service::{Context, blocks, chain, proofs, rules};
use crate::wire::{
    BlockSelector, BlockSummary, BlockView, BlocksQuery, ChainInfo, FeeSchedule, ForksView,
    InclusionEstimate, Page, PageOf, ParamsView, ProofQuery, ProofView, PunishedKeyView,
    SupplyView, ValidatorView,
};

/// The chain and its blocks.
#[rpc(server, namespace = "ombra")]
pub trait ChainRpc {
    /// Returns the chain's identity and state.
    #[method(name = "chainInfo", blocking)]
    fn chain_info(&self) -> Result<ChainInfo, RpcError>;

    /// Returns a block, with its transactions as objects or as hashes.
    #[method(name = "getBlock", blocking)]
    fn block(&self, block: BlockSelector, full: Option<bool>) -> Result<BlockView, RpcError>;

    /// Returns summaries of blocks, newest first.
    #[method(name = "getBlocks", blocking)]
    fn blocks(&self, query: Option<BlocksQuery>) -> Result<PageOf<BlockSummary>, RpcError>;

    /// Returns the counters of the money supply.
    #[method(name = "getSupply", blocking)]
    fn supply(&self) -> Result<SupplyView, RpcError>;

    /// Returns the current prices and limits.
    #[method(name = "feeSchedule", blocking)]
    fn fee_schedule(&self) -> Result<FeeSchedule, RpcError>;

    /// Estimates the fees of a transaction in the next block.
    #[method(name = "feeEstimate", blocking)]
    fn fee_estimate(&self, size: Option<u64>) -> Result<InclusionEstimate, RpcError>;

    /// Returns the validators of a height; those of the latest block if none is given.
    #[method(name = "getValidators", blocking)]
    fn validators(&self, height: Option<u64>) -> Result<Vec<ValidatorView>, RpcError>;

    /// Returns the keys of validators that lost their power permanently, in the order of keys.
    #[method(name = "listPunishedKeys", blocking)]
    fn punished_keys(&self, page: Option<Page>) -> Result<PageOf<PunishedKeyView>, RpcError>;

    /// Returns the upcoming forks: votes, and fixed heights.
    #[method(name = "forks", blocking)]
    fn forks(&self) -> Result<ForksView, RpcError>;

    /// Returns the parameters that votes can change: values, bounds, votes, and decided values.
    #[method(name = "params", blocking)]
    fn params(&self) -> Result<ParamsView, RpcError>;

    /// Returns a Merkle proof that clients can check without the node.
    #[method(name = "getProof", blocking)]
    fn proof(&self, of: ProofQuery) -> Result<ProofView, RpcError>;
}

impl ChainRpcServer for Context {
    fn chain_info(&self) -> Result<ChainInfo, RpcError> {
        chain::chain_info(self)
    }

    fn block(&self, block: BlockSelector, full: Option<bool>) -> Result<BlockView, RpcError> {
        blocks::block(&self.ports, block, full.unwrap_or(true))
    }

    fn blocks(&self, query: Option<BlocksQuery>) -> Result<PageOf<BlockSummary>, RpcError> {
        blocks::blocks(&self.ports, query.unwrap_or_default())
    }

    fn supply(&self) -> Result<SupplyView, RpcError> {
        chain::supply(&self.ports)
    }

    fn fee_schedule(&self) -> Result<FeeSchedule, RpcError> {
        rules::fee_schedule(&self.ports)
    }

    fn fee_estimate(&self, size: Option<u64>) -> Result<InclusionEstimate, RpcError> {
        rules::inclusion_estimate(self, size)
    }

    fn validators(&self, height: Option<u64>) -> Result<Vec<ValidatorView>, RpcError> {
        chain::validators(&self.ports, height)
    }

    fn punished_keys(&self, page: Option<Page>) -> Result<PageOf<PunishedKeyView>, RpcError> {
        rules::punished_keys(&self.ports, &page.unwrap_or_default())
    }

    fn forks(&self) -> Result<ForksView, RpcError> {
        rules::forks(self)
    }

    fn params(&self) -> Result<ParamsView, RpcError> {
        rules::params(&self.ports)
    }

    fn proof(&self, of: ProofQuery) -> Result<ProofView, RpcError> {
        proofs::proof(&self.ports, of)
    }
}
