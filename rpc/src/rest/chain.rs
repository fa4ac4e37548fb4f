//! Blocks, transactions, accounts, the pool.

use types::{Address, Hash, SealedTx};

use super::endpoint::{Endpoint, Nothing};
use super::params::{
    AddressPath, BlockName, BlockPath, HashPath, LimitQuery, Name, OffsetQuery, RangeQuery,
    SearchPath,
};
use super::{Rest, place};
use crate::api::accounts::AccountsRpcServer;
use crate::api::chain::ChainRpcServer;
use crate::api::runs::RunsRpcServer;
use crate::error::RpcError;
use crate::ports::{Slice, Tip};
use crate::wire::{
    AccountTx, BalanceView, BlockFeesView, BlockList, BlockName as BlockNameView, BlockSelector,
    BlockTransactions, BlockView, ConversationHit, FeeEstimate, Found, FullBlocks, GenesisHeader,
    HeightView, ListedBlock, MempoolView, Page, PageOf, PunishedKeyView, RestAccount, RestBlock,
    RestHeader, RestTx, StatsView, tx_object,
};

/// Blocks in a list if the client does not say, and at most.
const BLOCKS_DEFAULT: u64 = 20;
const BLOCKS_MAX: u64 = 100;
/// Whole blocks in one answer.
const FULL_BLOCKS_MAX: u64 = 500;
/// Blocks, and runs, that [`StatsView`] looks at.
const RECENT: usize = 100;
/// Transactions of an account that are told with it.
const RECENT_TXS: usize = 20;
/// Transactions of the pool in one answer, if the client does not say.
const MEMPOOL_DEFAULT: usize = 100;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new("/api/chain/height", "How high the chain is", height),
        Endpoint::new("/api/chain/stats", "Figures of the chain", stats),
        Endpoint::new("/api/chain/genesis", "Genesis, in the shape of a block", genesis),
        Endpoint::new("/api/chain/block/{index}", "A block by index or hash", block),
        Endpoint::new("/api/chain/block/hash/{hash}", "A block by hash", block_by_hash),
        Endpoint::new("/api/chain/blocks", "Blocks, newest first", blocks),
        Endpoint::new("/api/chain/blocks-full", "Whole blocks, oldest first", blocks_full),
        Endpoint::new("/api/chain/tx/{hash}", "A transaction, pending or included", transaction),
        Endpoint::new(
            "/api/chain/account/{address}",
            "An account; zeros if it does not exist",
            account,
        ),
        Endpoint::new(
            "/api/chain/punished-keys",
            "Keys of validators that lost their power for good",
            punished_keys,
        ),
        Endpoint::new("/api/chain/fee-estimate", "What transfers paid lately", fee_estimate),
        Endpoint::new("/api/chain/search/{query}", "What has this name", search),
        Endpoint::new("/api/chain/mempool", "What waits for a block", mempool),
        Endpoint::new("/api/mempool", "What waits for a block", mempool),
        Endpoint::new("/api/wallet/balance/{address}", "What an account holds", balance),
    ]
}

fn height(rest: &Rest, _: Nothing, _: Nothing) -> Result<HeightView, RpcError> {
    let Tip { height, hash, timestamp, .. } = rest.ports().chain.tip();
    Ok(HeightView { height, latest_block: BlockNameView { index: height, hash, timestamp } })
}

fn stats(rest: &Rest, _: Nothing, _: Nothing) -> Result<StatsView, RpcError> {
    let Tip { height, hash, .. } = rest.ports().chain.tip();
    let headers = match height {
        0 => Vec::new(),
        _ => rest.ports().transactions.headers(height, RECENT)?,
    };
    let mut proposers: Vec<_> = headers.iter().map(|(_, header)| header.proposer).collect();
    proposers.sort_unstable();
    proposers.dedup();
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    Ok(StatsView {
        height,
        latest_block_hash: hash,
        total_miners: rest.census()?.miners,
        recent_tx_count: headers.iter().map(|(_, header)| header.tx_count).sum(),
        recent_rewards: rest.recent_rewards(RECENT)?,
        active_proposers: count(proposers.len()),
        p2p_peers: count(rest.ports().network.peers().len()),
    })
}

fn genesis(rest: &Rest, _: Nothing, _: Nothing) -> Result<RestBlock, RpcError> {
    Ok(genesis_block(rest))
}

/// Genesis is no block, but clients count from it.
fn genesis_block(rest: &Rest) -> RestBlock {
    let facts = &rest.api().facts;
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

fn block(rest: &Rest, path: BlockPath, _: Nothing) -> Result<RestBlock, RpcError> {
    let selector = match path.index {
        BlockName::Index(0) => return Ok(genesis_block(rest)),
        BlockName::Hash(hash) if hash == rest.api().facts.genesis_hash => {
            return Ok(genesis_block(rest));
        }
        BlockName::Index(index) => BlockSelector::Index(index),
        BlockName::Hash(hash) => BlockSelector::Hash(hash),
    };
    ChainRpcServer::block(rest.api(), selector, Some(true)).map(rest_block)
}

fn block_by_hash(rest: &Rest, path: HashPath, _: Nothing) -> Result<RestBlock, RpcError> {
    block(rest, BlockPath { index: BlockName::Hash(path.hash.0) }, Nothing {})
}

fn rest_block(view: BlockView) -> RestBlock {
    let BlockView { header, hash, fees, transactions, commit } = view;
    let prev_hash = header.previous_hash;
    RestBlock { header: RestHeader::Block(header), hash, prev_hash, fees, transactions, commit }
}

fn blocks(rest: &Rest, _: Nothing, query: OffsetQuery) -> Result<BlockList, RpcError> {
    let limit = query.limit.unwrap_or(BLOCKS_DEFAULT);
    if !(1..=BLOCKS_MAX).contains(&limit) {
        let expected = format!("a whole number from 1 to {BLOCKS_MAX}");
        return Err(RpcError::invalid("limit", limit.to_string(), expected));
    }
    let Tip { height, earliest, .. } = rest.ports().chain.tip();
    let newest = height.saturating_sub(query.offset.unwrap_or(0));
    if newest > 0 && newest < earliest {
        return Err(RpcError::History { earliest });
    }
    let count = limit.min(newest.saturating_add(1).saturating_sub(earliest.max(1)));
    let headers = match usize::try_from(count).unwrap_or(0) {
        0 => Vec::new(),
        count => rest.ports().transactions.headers(newest, count)?,
    };
    let blocks = headers.iter().map(|(hash, header)| ListedBlock::new(*hash, header)).collect();
    Ok(BlockList { blocks, total: height })
}

fn blocks_full(rest: &Rest, _: Nothing, query: RangeQuery) -> Result<FullBlocks, RpcError> {
    let Tip { height, earliest, .. } = rest.ports().chain.tip();
    let from = query.from.unwrap_or(1).max(1);
    let most = from.saturating_add(FULL_BLOCKS_MAX.saturating_sub(1));
    let to = query.to.unwrap_or(most);
    if to < from || to > most {
        let expected = format!("a whole number from {from} to {most}");
        return Err(RpcError::invalid("to", to.to_string(), expected));
    }
    if from < earliest && height > 0 {
        return Err(RpcError::History { earliest });
    }
    let (mut blocks, mut bytes, mut next_from) = (Vec::new(), 0_usize, None);
    for index in from..=to.min(height) {
        if bytes >= rest.api().page_bytes_max() {
            next_from = Some(index);
            break;
        }
        let Some(shown) = rest.ports().chain.shown(index)? else { break };
        let texts = shown.block.transactions.iter().map(SealedTx::signed_bytes);
        bytes = bytes.saturating_add(texts.sum());
        blocks.push(rest_block(BlockView::new(shown, true)?));
    }
    // Who did not say where to end has not got all.
    let is_cut = query.to.is_none() && to < height;
    let next_from = next_from.or_else(|| is_cut.then(|| to.saturating_add(1)));
    Ok(FullBlocks { blocks, total: height, next_from })
}

fn transaction(rest: &Rest, path: HashPath, _: Nothing) -> Result<RestTx, RpcError> {
    find_tx(rest, path.hash.0)?.ok_or_else(|| rest.api().missing("transaction", path.hash.0))
}

fn find_tx(rest: &Rest, hash: Hash) -> Result<Option<RestTx>, RpcError> {
    rest.api().hub.find(&hash)?.map(place::beside).transpose()
}

fn account(rest: &Rest, path: AddressPath, _: Nothing) -> Result<RestAccount, RpcError> {
    let address = path.address.0;
    let view = AccountsRpcServer::account(rest.api(), address)?;
    let waiting = rest.ports().pool.content_from(&address);
    let pending = waiting.pending.len().saturating_add(waiting.queued.len());
    let escrowed = rest.api().hub.escrows().of(rest.ports(), &address)?;
    // Where the list goes back beyond the node's blocks, what is here is told all the same.
    let places = match rest.ports().accounts.transactions(&address, None, RECENT_TXS) {
        Ok(Slice { items, .. }) => items,
        Err(fault) if fault.missing.is_some() => Vec::new(),
        Err(fault) => return Err(fault.into()),
    };
    let included = rest.ports().transactions.at_within(&places, rest.api().page_bytes_max())?;
    let recent = included.iter().map(|included| AccountTx::new(included, address)).collect();
    let pending = u64::try_from(pending).unwrap_or(u64::MAX);
    Ok(RestAccount::new(view, pending, escrowed, recent))
}

fn balance(rest: &Rest, path: AddressPath, _: Nothing) -> Result<BalanceView, RpcError> {
    let address = path.address.0;
    let account = rest.ports().accounts.account(&address)?;
    let nonce = rest.ports().projection.account(&address)?.nonce;
    let balance_ombra = account.balance.ombra();
    Ok(BalanceView { balance: account.balance, balance_ombra, nonce })
}

fn punished_keys(rest: &Rest, _: Nothing, page: Page) -> Result<PageOf<PunishedKeyView>, RpcError> {
    ChainRpcServer::punished_keys(rest.api(), Some(page))
}

fn fee_estimate(rest: &Rest, _: Nothing, _: Nothing) -> Result<FeeEstimate, RpcError> {
    rest.fees().estimate(rest.ports())
}

fn mempool(rest: &Rest, _: Nothing, query: LimitQuery) -> Result<MempoolView, RpcError> {
    let counts = rest.ports().pool.counts().into_iter();
    let total = counts.map(|(_, count)| count.pending.saturating_add(count.queued)).sum();
    let (mut pending, mut bytes) = (Vec::new(), 0_usize);
    for tx in rest.ports().pool.pending(query.or(MEMPOOL_DEFAULT)) {
        if bytes >= rest.api().page_bytes_max() {
            break;
        }
        bytes = bytes.saturating_add(tx.signed_bytes());
        pending.push(tx_object(&tx));
    }
    Ok(MempoolView { total, pending })
}

fn search(rest: &Rest, path: SearchPath, _: Nothing) -> Result<Found, RpcError> {
    match Name::parse(&path.query) {
        Some(Name::Index(index)) => Ok(find_block(rest, index)?.unwrap_or(Found::None(()))),
        Some(Name::Address(address)) => {
            let view = AccountsRpcServer::account(rest.api(), address)?;
            Ok(Found::Account(Box::new(view)))
        }
        Some(Name::Hash(hash)) => find_hash(rest, hash),
        None => Ok(Found::None(())),
    }
}

fn find_block(rest: &Rest, index: u64) -> Result<Option<Found>, RpcError> {
    let Tip { height, earliest, .. } = rest.ports().chain.tip();
    if index == 0 || index < earliest || index > height {
        return Ok(None);
    }
    let headers = rest.ports().transactions.headers(index, 1)?;
    let listed = headers.first().map(|(hash, header)| ListedBlock::new(*hash, header));
    Ok(listed.map(|block| Found::Block(Box::new(block))))
}

fn find_hash(rest: &Rest, hash: Hash) -> Result<Found, RpcError> {
    if let Some(index) = rest.ports().chain.height_of(&hash)?
        && let Some(found) = find_block(rest, index)?
    {
        return Ok(found);
    }
    if let Some(tx) = find_tx(rest, hash)? {
        return Ok(Found::Tx(tx));
    }
    if rest.ports().runs.run(&hash)?.is_some() {
        return Ok(Found::AgentRun(Box::new(RunsRpcServer::agent_run(rest.api(), hash)?)));
    }
    if let Some(entry) = rest.ports().directory.miner_by_id(&hash)? {
        let view = AccountsRpcServer::account(rest.api(), entry.miner.address)?;
        return Ok(Found::Account(Box::new(view)));
    }
    if let Some(conversation) = find_conversation(rest, hash)? {
        return Ok(Found::Conversation(Box::new(conversation)));
    }
    Ok(Found::None(()))
}

fn find_conversation(rest: &Rest, id: Hash) -> Result<Option<ConversationHit>, RpcError> {
    let one = Page { cursor: None, limit: Some(crate::wire::PageLimit::ONE) };
    let turns = RunsRpcServer::conversation(rest.api(), id, Some(one))?;
    let first_turn = turns.items.into_iter().next();
    let filter = crate::ports::RunFilter { conversation_id: Some(id), ..Default::default() };
    let has_runs = || rest.ports().runs.list(&filter, None, 1).map(|slice| !slice.items.is_empty());
    let is_known = first_turn.is_some() || has_runs()?;
    Ok(is_known.then_some(ConversationHit { conversation_id: id, first_turn }))
}
