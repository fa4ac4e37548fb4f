//! What a client of the WebSocket asks for.

use std::sync::Arc;

use serde::Deserialize;
use types::Address;

use crate::admission::Client;
use crate::error::RpcError;
use crate::service::events::Keys;
use crate::service::{Context, miners};
use crate::wire::{AddressText, EventKind, HashText};

/// What can be heard.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Channel {
    Blocks,
    Txs,
    Mempool,
    Agent,
    Chat,
}

impl Channel {
    /// The kind of events, and what each is called.
    pub(super) const fn events(self) -> (EventKind, &'static str) {
        match self {
            Self::Blocks => (EventKind::Blocks, "block"),
            Self::Txs => (EventKind::Transactions, "tx"),
            Self::Mempool => (EventKind::Pool, "mempool"),
            Self::Agent => (EventKind::AgentRuns, "agent"),
            Self::Chat => (EventKind::Chat, "chat"),
        }
    }
}

/// What a client wants.
#[derive(Deserialize)]
#[serde(tag = "action", rename_all = "camelCase")]
pub(super) enum Action {
    Subscribe(Topic),
    Unsubscribe(Topic),
    Ping,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Topic {
    pub(super) channel: Channel,
    address: Option<AddressText>,
    miner_id: Option<HashText>,
}

/// A subscription: a channel, and whose events.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Subscription {
    pub(super) channel: Channel,
    address: Option<Address>,
    miner: Option<Address>,
}

impl Subscription {
    pub(super) fn wants(&self, keys: &Keys) -> bool {
        let is_of = |whose: Address, keys: &[Option<Address>]| keys.contains(&Some(whose));
        let everybody = [keys.from, keys.to, keys.submitter, keys.miner];
        self.address.is_none_or(|address| is_of(address, &everybody))
            && self.miner.is_none_or(|miner| is_of(miner, &[keys.from, keys.miner]))
    }
}

/// The subscription that is meant.
pub(super) async fn resolve(
    context: &Arc<Context>,
    client: &Client,
    topic: Topic,
) -> Result<Subscription, RpcError> {
    let Topic { channel, address, miner_id } = topic;
    if channel == Channel::Blocks && (address.is_some() || miner_id.is_some()) {
        return Err(RpcError::invalid("channel", "blocks", "no address and no minerId with it"));
    }
    let miner = match miner_id {
        Some(HashText(id)) => {
            let read = move |context: &Context| miners::address_of(&context.ports, &id);
            Some(context.read(client, read).await?)
        }
        None => None,
    };
    Ok(Subscription { channel, address: address.map(|address| address.0), miner })
}
