//! Blocks.

use types::{Address, Hash, Header, SealedTx};

use super::Context;
use super::history::missing;
use crate::cursor;
use crate::error::RpcError;
use crate::ports::{Ports, Tip};
use crate::wire::{
    BlockFeesView, BlockList, BlockSelector, BlockSummary, BlockTransactions, BlockView,
    BlocksQuery, FullBlocks, GenesisHeader, ListedBlock, PageOf, RestBlock, RestHeader,
};

/// The most blocks of a list that is counted from its newest.
const LISTED_MAX: u64 = 100;
/// The most whole blocks in one answer.
const WHOLE_MAX: u64 = 500;

/// One block, with its transactions as objects or as hashes.
pub(crate) fn block(
    ports: &Ports,
    block: BlockSelector,
    with_objects: bool,
) -> Result<BlockView, RpcError> {
    let (height, name) = resolve(ports, block)?;
    let shown = height.map(|height| ports.chain.shown(height)).transpose()?.flatten();
    let shown = shown.ok_or_else(|| match height {
        Some(_) => RpcError::not_found("block", name),
        None => missing(ports, "block", name),
    })?;
    BlockView::new(shown, with_objects)
}

/// The height of a block, and how the client named it.
fn resolve(ports: &Ports, block: BlockSelector) -> Result<(Option<u64>, String), RpcError> {
    Ok(match block {
        BlockSelector::Index(index) => (Some(index).filter(|index| *index > 0), index.to_string()),
        BlockSelector::Hash(hash) => (ports.chain.height_of(&hash)?, hash.to_string()),
        BlockSelector::Latest => {
            let height = ports.chain.tip().height;
            (Some(height).filter(|height| *height > 0), "latest".to_owned())
        }
    })
}

/// Summaries of blocks, newest first.
pub(crate) fn blocks(ports: &Ports, query: BlocksQuery) -> Result<PageOf<BlockSummary>, RpcError> {
    let BlocksQuery { from, to, cursor, limit } = query;
    let lowest = from.unwrap_or(1).max(1);
    let Tip { height, earliest, .. } = ports.chain.tip();
    let highest = to.unwrap_or(u64::MAX).min(height);
    let before: Option<u64> = cursor.as_deref().map(cursor::decode).transpose()?;
    let start = before.map_or(highest, |before| highest.min(before.saturating_sub(1)));

    if start >= lowest && start < earliest && height > 0 {
        return Err(RpcError::History { earliest });
    }
    let limit = limit.unwrap_or_default().get();
    let there = lowest.max(earliest);
    let wanted = usize::try_from(start.saturating_add(1).saturating_sub(there));
    let headers = match wanted.unwrap_or(usize::MAX).min(limit) {
        0 => Vec::new(),
        count => ports.transactions.headers(start, count)?,
    };
    let last = headers.last().map(|(_, header)| header.index);
    let items = headers.iter().map(|(hash, header)| BlockSummary::new(*hash, header)).collect();
    let next = last.filter(|last| *last > lowest);
    Ok(PageOf { items, next_cursor: next.as_ref().map(cursor::encode) })
}

/// The header of a block that the chain has, and its hash.
pub(super) fn header(ports: &Ports, height: u64) -> Result<(Hash, Header), RpcError> {
    let found = ports.transactions.headers(height, 1)?;
    found.into_iter().next().ok_or_else(|| missing(ports, "block", height))
}

/// `limit` blocks, newest first, after `offset` newer ones.
pub(crate) fn listed(ports: &Ports, limit: u64, offset: u64) -> Result<BlockList, RpcError> {
    if !(1..=LISTED_MAX).contains(&limit) {
        let expected = format!("a whole number from 1 to {LISTED_MAX}");
        return Err(RpcError::invalid("limit", limit.to_string(), expected));
    }
    let Tip { height, earliest, .. } = ports.chain.tip();
    let newest = height.saturating_sub(offset);
    if newest > 0 && newest < earliest {
        return Err(RpcError::History { earliest });
    }
    let count = limit.min(newest.saturating_add(1).saturating_sub(earliest.max(1)));
    let headers = match usize::try_from(count).unwrap_or(0) {
        0 => Vec::new(),
        count => ports.transactions.headers(newest, count)?,
    };
    let blocks = headers.iter().map(|(hash, header)| ListedBlock::new(*hash, header)).collect();
    Ok(BlockList { blocks, total: height })
}

/// Whole blocks, oldest first.
pub(crate) fn whole(
    context: &Context,
    from: Option<u64>,
    to: Option<u64>,
) -> Result<FullBlocks, RpcError> {
    let ports = &context.ports;
    let Tip { height, earliest, .. } = ports.chain.tip();
    let first = from.unwrap_or(1).max(1);
    let most = first.saturating_add(WHOLE_MAX.saturating_sub(1));
    let last = to.unwrap_or(most);
    if last < first || last > most {
        let expected = format!("a whole number from {first} to {most}");
        return Err(RpcError::invalid("to", last.to_string(), expected));
    }
    if first < earliest && height > 0 {
        return Err(RpcError::History { earliest });
    }
    let (mut blocks, mut bytes, mut next_from) = (Vec::new(), 0_usize, None);
    for index in first..=last.min(height) {
        if bytes >= context.page_bytes_max() {
            next_from = Some(index);
            break;
        }
        let Some(shown) = ports.chain.shown(index)? else { break };
        let texts = shown.block.transactions.iter().map(SealedTx::signed_bytes);
        bytes = bytes.saturating_add(texts.sum());
        blocks.push(rest_block(BlockView::new(shown, true)?));
    }
    // Who did not say where to end has not got all.
    let is_cut = to.is_none() && last < height;
    let next_from = next_from.or_else(|| is_cut.then(|| last.saturating_add(1)));
    Ok(FullBlocks { blocks, total: height, next_from })
}

/// A block by index or hash in the shape of the public network; genesis under the index 0 and its own
/// hash.
pub(crate) fn block_or_genesis(
    context: &Context,
    selector: BlockSelector,
) -> Result<RestBlock, RpcError> {
    match selector {
        BlockSelector::Index(0) => return Ok(genesis(context)),
        BlockSelector::Hash(hash) if hash == context.facts.genesis_hash => {
            return Ok(genesis(context));
        }
        BlockSelector::Index(_) | BlockSelector::Hash(_) | BlockSelector::Latest => {}
    }
    block(&context.ports, selector, true).map(rest_block)
}

/// Genesis is no block, but clients count from it.
pub(crate) fn genesis(context: &Context) -> RestBlock {
    let facts = &context.facts;
    let header = GenesisHeader {
        chain_id: facts.chain_id.clone(),
        index: 0,
        previous_hash: Hash::ZERO,
        timestamp: facts.genesis_time_ms,
        proposer: Address::new([0; 20]),
        tx_count: 0,
    };
    RestBlock {
        header: RestHeader::Genesis(header),
        hash: facts.genesis_hash,
        prev_hash: Hash::ZERO,
        fees: BlockFeesView::default(),
        transactions: BlockTransactions::Full(Vec::new()),
        commit: None,
    }
}

fn rest_block(view: BlockView) -> RestBlock {
    let BlockView { header, hash, fees, transactions, commit } = view;
    let prev_hash = header.previous_hash;
    RestBlock { header: RestHeader::Block(header), hash, prev_hash, fees, transactions, commit }
}
