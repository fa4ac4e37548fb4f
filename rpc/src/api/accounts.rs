//! Accounts, miners, blobs.

use jsonrpsee::proc_macros::rpc;
use types::Address;

use super::{Api, paging};
use crate::error::RpcError;
use crate::ports::Slice;
use crate::wire::{
    AccountTx, AccountView, BlobView, BondView, MinerSelector, MinerView, Page, PageOf,
};

/// The most payments out of a bond that are listed.
const UNBONDING_MAX: usize = 100;

/// Accounts, miners, blobs.
#[rpc(server, namespace = "ombra")]
pub trait AccountsRpc {
    /// An account; zeros if it does not exist.
    #[method(name = "getAccount", blocking)]
    fn account(&self, address: Address) -> Result<AccountView, RpcError>;

    /// The transactions of an account, newest first.
    #[method(name = "getAccountTransactions", blocking)]
    fn account_transactions(
        &self,
        address: Address,
        page: Option<Page>,
    ) -> Result<PageOf<AccountTx>, RpcError>;

    /// What an account has at stake.
    #[method(name = "getBond", blocking)]
    fn bond(&self, address: Address) -> Result<BondView, RpcError>;

    /// The miner directory, in order of addresses.
    #[method(name = "listMiners", blocking)]
    fn miners(&self, page: Option<Page>) -> Result<PageOf<MinerView>, RpcError>;

    /// A miner by address or id.
    #[method(name = "getMiner", blocking)]
    fn miner(&self, miner: MinerSelector) -> Result<MinerView, RpcError>;

    /// A blob's record.
    #[method(name = "getBlob", blocking)]
    fn blob(&self, blob_id: String) -> Result<BlobView, RpcError>;
}

impl AccountsRpcServer for Api {
    fn account(&self, address: Address) -> Result<AccountView, RpcError> {
        let account = self.ports.accounts.account(&address)?;
        let pending = self.ports.projection.account(&address)?;
        let miner = self.ports.directory.miner(&address)?;
        Ok(AccountView::new(address, account, pending, miner.map(MinerView::from)))
    }

    fn bond(&self, address: Address) -> Result<BondView, RpcError> {
        let stake = self.ports.rules.stake(&address, UNBONDING_MAX)?;
        Ok(BondView::new(address, stake))
    }

    fn account_transactions(
        &self,
        address: Address,
        page: Option<Page>,
    ) -> Result<PageOf<AccountTx>, RpcError> {
        let page = page.unwrap_or_default();
        let before = page.position()?;
        let Slice { items, next } =
            self.ports.accounts.transactions(&address, before, page.limit())?;
        let included = self.ports.transactions.at_within(&items, self.page_bytes_max())?;
        let next = paging::next_after(&items, included.len(), next);
        let slice = Slice { items: included, next };
        Ok(paging::page(slice, |included| AccountTx::new(&included, address)))
    }

    fn miners(&self, page: Option<Page>) -> Result<PageOf<MinerView>, RpcError> {
        let page = page.unwrap_or_default();
        let after = page.position()?;
        let slice = self.ports.directory.miners(after, page.limit())?;
        Ok(paging::page(slice, MinerView::from))
    }

    fn miner(&self, miner: MinerSelector) -> Result<MinerView, RpcError> {
        let (entry, name) = match miner {
            MinerSelector::Address(address) => {
                (self.ports.directory.miner(&address)?, address.to_string())
            }
            MinerSelector::Id(id) => (self.ports.directory.miner_by_id(&id)?, id.to_string()),
        };
        entry.map(MinerView::from).ok_or_else(|| RpcError::not_found("miner", name))
    }

    fn blob(&self, blob_id: String) -> Result<BlobView, RpcError> {
        let blob = self.ports.directory.blob(&blob_id)?;
        blob.map(BlobView::from).ok_or_else(|| RpcError::not_found("blob", blob_id))
    }
}
