//! Accounts, miners, blobs.

use jsonrpsee::proc_macros::rpc;
use types::Address;

use crate::error::RpcError;
use crate::service::{Context, accounts, blobs, miners};
use crate::wire::{
    AccountTx, AccountView, BlobView, BondView, MinerSelector, MinerView, Page, PageOf,
};

/// Accounts, miners, blobs.
#[rpc(server, namespace = "ombra")]
pub trait AccountsRpc {
    /// Returns an account. All values are zero if it does not exist.
    #[method(name = "getAccount", blocking)]
    fn account(&self, address: Address) -> Result<AccountView, RpcError>;

    /// Returns the transactions of an account, newest first.
    #[method(name = "getAccountTransactions", blocking)]
    fn account_transactions(
        &self,
        address: Address,
        page: Option<Page>,
    ) -> Result<PageOf<AccountTx>, RpcError>;

    /// Returns the bond of an account, and its statistics as a submitter.
    #[method(name = "getBond", blocking)]
    fn bond(&self, address: Address) -> Result<BondView, RpcError>;

    /// Returns the miner directory in the order of addresses.
    #[method(name = "listMiners", blocking)]
    fn miners(&self, page: Option<Page>) -> Result<PageOf<MinerView>, RpcError>;

    /// Returns a miner by address or id.
    #[method(name = "getMiner", blocking)]
    fn miner(&self, miner: MinerSelector) -> Result<MinerView, RpcError>;

    /// Returns the record of a blob.
    #[method(name = "getBlob", blocking)]
    fn blob(&self, blob_id: String) -> Result<BlobView, RpcError>;
}

impl AccountsRpcServer for Context {
    fn account(&self, address: Address) -> Result<AccountView, RpcError> {
        accounts::account(&self.ports, address)
    }

    fn account_transactions(
        &self,
        address: Address,
        page: Option<Page>,
    ) -> Result<PageOf<AccountTx>, RpcError> {
        accounts::transactions(self, address, &page.unwrap_or_default())
    }

    fn bond(&self, address: Address) -> Result<BondView, RpcError> {
        accounts::bond(&self.ports, address)
    }

    fn miners(&self, page: Option<Page>) -> Result<PageOf<MinerView>, RpcError> {
        miners::miners(&self.ports, &page.unwrap_or_default())
    }

    fn miner(&self, miner: MinerSelector) -> Result<MinerView, RpcError> {
        miners::miner(&self.ports, miner)
    }

    fn blob(&self, blob_id: String) -> Result<BlobView, RpcError> {
        blobs::blob(&self.ports, &blob_id)
    }
}
