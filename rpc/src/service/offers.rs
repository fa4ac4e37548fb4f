//! Offers of miners for executors.

use super::paging;
use crate::error::RpcError;
use crate::ports::{OfferFilter, Ports};
use crate::wire::{OfferQuery, OfferView, Page, PageOf};

/// The most offers on a page. For each, the node looks up the bond and the calls of its miner.
const OFFERS_MAX: usize = 100;

/// Returns offers: for one executor the largest bonds first, otherwise in the order of miners.
pub(crate) fn offers(
    ports: &Ports,
    query: OfferQuery,
    page: &Page,
) -> Result<PageOf<OfferView>, RpcError> {
    let OfferQuery { executor, miner } = query;
    let filter = OfferFilter { executor: executor.map(|it| it.0), miner: miner.map(|it| it.0) };
    let limit = page.limit().min(OFFERS_MAX);
    let slice = ports.offers.list(&filter, page.position()?, limit)?;
    Ok(paging::page(slice, OfferView::from))
}
