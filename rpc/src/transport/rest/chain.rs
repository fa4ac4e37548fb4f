//! Blocks, transactions, accounts, the pool.

use super::endpoint::{Endpoint, Nothing};
use super::params::{
    AddressPath, BlockName, BlockPath, HashPath, LimitQuery, OffsetQuery, RangeQuery, SearchPath,
    parse_name,
};
use crate::error::RpcError;
use crate::service::{Context, accounts, blocks, chain, pool, rules, search, stats, transactions};
use crate::wire::{
    BalanceView, BlockList, BlockSelector, FeeEstimate, Found, FullBlocks, HeightView, MempoolView,
    Page, PageOf, PunishedKeyView, RestAccount, RestBlock, RestTx, StatsView,
};

/// Blocks in a list if the client does not say.
const BLOCKS_DEFAULT: u64 = 20;
/// Transactions of the pool in one answer, if the client does not say.
const MEMPOOL_DEFAULT: usize = 100;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new("/api/chain/height", "Get the height of the chain", height),
        Endpoint::new("/api/chain/stats", "Get statistics of the chain", stats),
        Endpoint::new("/api/chain/genesis", "Get the genesis in the shape of a block", genesis),
        Endpoint::new("/api/chain/block/{index}", "Get a block by index or hash", block),
        Endpoint::new("/api/chain/block/hash/{hash}", "Get a block by hash", block_by_hash),
        Endpoint::new("/api/chain/blocks", "List blocks, newest first", blocks),
        Endpoint::new(
            "/api/chain/blocks-full",
            "List blocks with their transactions, oldest first",
            blocks_full,
        ),
        Endpoint::new(
            "/api/chain/tx/{hash}",
            "Get a transaction, pending, included or dropped",
            transaction,
        ),
        Endpoint::new(
            "/api/chain/account/{address}",
            "Get an account; all values are zero if it does not exist",
            account,
        ),
        Endpoint::new(
            "/api/chain/punished-keys",
            "List the keys of validators that lost their power permanently",
            punished_keys,
        ),
        Endpoint::new("/api/chain/fee-estimate", "Get the fees of recent transfers", fee_estimate),
        Endpoint::new(
            "/api/chain/search/{query}",
            "Search for a block, a transaction, an account, a run or a conversation",
            search,
        ),
        Endpoint::new("/api/chain/mempool", "List the transactions that wait for a block", mempool),
        Endpoint::new("/api/mempool", "List the transactions that wait for a block", mempool),
        Endpoint::new("/api/wallet/balance/{address}", "Get the balance of an account", balance),
    ]
}

fn height(context: &Context, _: Nothing, _: Nothing) -> Result<HeightView, RpcError> {
    Ok(chain::height(&context.ports))
}

fn stats(context: &Context, _: Nothing, _: Nothing) -> Result<StatsView, RpcError> {
    stats::stats(context)
}

fn genesis(context: &Context, _: Nothing, _: Nothing) -> Result<RestBlock, RpcError> {
    Ok(blocks::genesis(context))
}

fn block(context: &Context, path: BlockPath, _: Nothing) -> Result<RestBlock, RpcError> {
    let selector = match path.index {
        BlockName::Index(index) => BlockSelector::Index(index),
        BlockName::Hash(hash) => BlockSelector::Hash(hash),
    };
    blocks::block_or_genesis(context, selector)
}

fn block_by_hash(context: &Context, path: HashPath, _: Nothing) -> Result<RestBlock, RpcError> {
    blocks::block_or_genesis(context, BlockSelector::Hash(path.hash.0))
}

fn blocks(context: &Context, _: Nothing, query: OffsetQuery) -> Result<BlockList, RpcError> {
    let limit = query.limit.unwrap_or(BLOCKS_DEFAULT);
    blocks::listed(&context.ports, limit, query.offset.unwrap_or(0))
}

fn blocks_full(context: &Context, _: Nothing, query: RangeQuery) -> Result<FullBlocks, RpcError> {
    blocks::whole(context, query.from, query.to)
}

fn transaction(context: &Context, path: HashPath, _: Nothing) -> Result<RestTx, RpcError> {
    transactions::transaction_with_place(context, path.hash.0)
}

fn account(context: &Context, path: AddressPath, _: Nothing) -> Result<RestAccount, RpcError> {
    accounts::account_with_recent(context, path.address.0)
}

fn balance(context: &Context, path: AddressPath, _: Nothing) -> Result<BalanceView, RpcError> {
    accounts::balance(&context.ports, path.address.0)
}

fn punished_keys(
    context: &Context,
    _: Nothing,
    page: Page,
) -> Result<PageOf<PunishedKeyView>, RpcError> {
    rules::punished_keys(&context.ports, &page)
}

fn fee_estimate(context: &Context, _: Nothing, _: Nothing) -> Result<FeeEstimate, RpcError> {
    rules::transfer_fees(context)
}

fn mempool(context: &Context, _: Nothing, query: LimitQuery) -> Result<MempoolView, RpcError> {
    Ok(pool::first_pending(context, query.or(MEMPOOL_DEFAULT)))
}

fn search(context: &Context, path: SearchPath, _: Nothing) -> Result<Found, RpcError> {
    match parse_name(&path.query) {
        Some(name) => search::search(context, name),
        None => Ok(Found::None(())),
    }
}
