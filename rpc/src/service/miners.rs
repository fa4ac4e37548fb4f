//! The miner directory.

use types::{Address, Hash};

use super::paging;
use crate::error::RpcError;
use crate::ports::{Ports, Slice};
use crate::wire::{MinerSelector, MinerView, Page, PageOf};

/// The directory, in order of addresses.
pub(crate) fn miners(ports: &Ports, page: &Page) -> Result<PageOf<MinerView>, RpcError> {
    let after = page.position()?;
    let slice = ports.directory.miners(after, page.limit())?;
    Ok(paging::page(slice, MinerView::from))
}

/// The miners after an address, in order of addresses.
pub(crate) fn miners_after(
    ports: &Ports,
    after: Option<Address>,
    limit: usize,
) -> Result<Vec<MinerView>, RpcError> {
    let Slice { items, .. } = ports.directory.miners(after, limit)?;
    Ok(items.into_iter().map(MinerView::from).collect())
}

/// A miner by address or id.
pub(crate) fn miner(ports: &Ports, miner: MinerSelector) -> Result<MinerView, RpcError> {
    let (entry, name) = match miner {
        MinerSelector::Address(address) => (ports.directory.miner(&address)?, address.to_string()),
        MinerSelector::Id(id) => (ports.directory.miner_by_id(&id)?, id.to_string()),
    };
    entry.map(MinerView::from).ok_or_else(|| RpcError::not_found("miner", name))
}

/// The account of a miner by its id.
pub(crate) fn address_of(ports: &Ports, id: &Hash) -> Result<Address, RpcError> {
    let entry = ports.directory.miner_by_id(id)?;
    entry.map(|entry| entry.miner.address).ok_or_else(|| RpcError::not_found("miner", id))
}
