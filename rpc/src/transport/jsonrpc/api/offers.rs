//! Offers of miners for executors.

use jsonrpsee::proc_macros::rpc;

use crate::error::RpcError;
use crate::service::{Context, offers};
use crate::wire::{OfferQuery, OfferView, Page, PageOf};

/// Offers of miners.
#[rpc(server, namespace = "ombra")]
pub trait OffersRpc {
    /// Returns offers: for one executor the largest bonds first, otherwise in the order of miners.
    #[method(name = "listOffers", blocking)]
    fn offers(
        &self,
        filter: Option<OfferQuery>,
        page: Option<Page>,
    ) -> Result<PageOf<OfferView>, RpcError>;
}

impl OffersRpcServer for Context {
    fn offers(
        &self,
        filter: Option<OfferQuery>,
        page: Option<Page>,
    ) -> Result<PageOf<OfferView>, RpcError> {
        offers::offers(&self.ports, filter.unwrap_or_default(), &page.unwrap_or_default())
    }
}
