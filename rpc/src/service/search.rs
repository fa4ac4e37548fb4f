//! What has a name.

use types::{Address, Hash};

use super::{Context, accounts, conversations, runs, transactions};
use crate::error::RpcError;
use crate::ports::{Ports, Tip};
use crate::wire::{Found, ListedBlock};

/// A name that a client searches for, by its form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Name {
    /// Digits: a block.
    Index(u64),
    /// 64 hex characters: a block, a transaction, a run, a conversation or a miner.
    Hash(Hash),
    /// An account.
    Address(Address),
}

/// What has this name.
pub(crate) fn search(context: &Context, name: Name) -> Result<Found, RpcError> {
    let ports = &context.ports;
    match name {
        Name::Index(index) => Ok(find_block(ports, index)?.unwrap_or(Found::None(()))),
        Name::Address(address) => {
            let view = accounts::account(ports, address)?;
            Ok(Found::Account(Box::new(view)))
        }
        Name::Hash(hash) => find_hash(context, hash),
    }
}

fn find_block(ports: &Ports, index: u64) -> Result<Option<Found>, RpcError> {
    let Tip { height, earliest, .. } = ports.chain.tip();
    if index == 0 || index < earliest || index > height {
        return Ok(None);
    }
    let headers = ports.transactions.headers(index, 1)?;
    let listed = headers.first().map(|(hash, header)| ListedBlock::new(*hash, header));
    Ok(listed.map(|block| Found::Block(Box::new(block))))
}

fn find_hash(context: &Context, hash: Hash) -> Result<Found, RpcError> {
    let ports = &context.ports;
    if let Some(index) = ports.chain.height_of(&hash)?
        && let Some(found) = find_block(ports, index)?
    {
        return Ok(found);
    }
    if let Some(tx) = transactions::find_with_place(context, &hash)? {
        return Ok(Found::Tx(tx));
    }
    if ports.runs.run(&hash)?.is_some() {
        return Ok(Found::AgentRun(Box::new(runs::agent_run(ports, &hash)?)));
    }
    if let Some(entry) = ports.directory.miner_by_id(&hash)? {
        let view = accounts::account(ports, entry.miner.address)?;
        return Ok(Found::Account(Box::new(view)));
    }
    if let Some(conversation) = conversations::find(context, hash)? {
        return Ok(Found::Conversation(Box::new(conversation)));
    }
    Ok(Found::None(()))
}
