//! Offers of miners for executors.

use jsonrpsee::proc_macros::rpc;

use super::{Api, paging};
use crate::error::RpcError;
use crate::ports::OfferFilter;
use crate::wire::{OfferQuery, OfferView, Page, PageOf};

/// The most offers on a page: with each the bond and the work of its miner are looked up.
const OFFERS_MAX: usize = 100;

/// Offers of miners.
#[rpc(server, namespace = "ombra")]
pub trait OffersRpc {
    /// Offers: for one executor those of the largest bonds first, else in the order of miners.
    #[method(name = "listOffers", blocking)]
    fn offers(
        &self,
        filter: Option<OfferQuery>,
        page: Option<Page>,
    ) -> Result<PageOf<OfferView>, RpcError>;
}

impl OffersRpcServer for Api {
    fn offers(
        &self,
        filter: Option<OfferQuery>,
        page: Option<Page>,
    ) -> Result<PageOf<OfferView>, RpcError> {
        let OfferQuery { executor, miner } = filter.unwrap_or_default();
        let filter = OfferFilter { executor: executor.map(|it| it.0), miner: miner.map(|it| it.0) };
        let page = page.unwrap_or_default();
        let limit = page.limit().min(OFFERS_MAX);
        let slice = self.ports.offers.list(&filter, page.position()?, limit)?;
        Ok(paging::page(slice, OfferView::from))
    }
}
