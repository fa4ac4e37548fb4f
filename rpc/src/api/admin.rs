//! What an operator may do, on the Unix socket only.

use jsonrpsee::core::async_trait;
use jsonrpsee::proc_macros::rpc;

use super::Api;
use crate::error::RpcError;
use crate::ports::{AdminError, PeerChange};
use crate::wire::{PeerQuery, PeerView};

/// What an operator may do.
#[rpc(server, namespace = "admin")]
pub trait AdminRpc {
    /// The log filter in force.
    #[method(name = "logFilter")]
    fn log_filter(&self) -> Result<String, RpcError>;

    /// Replaces the log filter; answers the one in force.
    #[method(name = "setLogFilter")]
    fn set_log_filter(&self, filter: String) -> Result<String, RpcError>;

    /// Drops every waiting transaction; answers how many.
    #[method(name = "flushPool", blocking)]
    fn flush_pool(&self) -> Result<u64, RpcError>;

    /// The connected peers.
    #[method(name = "peers")]
    fn peers(&self) -> Result<Vec<PeerView>, RpcError>;

    /// Connects to a peer, disconnects from one, or keeps one out; answers the connected peers.
    #[method(name = "changePeer")]
    async fn change_peer(&self, change: PeerQuery) -> Result<Vec<PeerView>, RpcError>;
}

#[async_trait]
impl AdminRpcServer for Api {
    fn log_filter(&self) -> Result<String, RpcError> {
        Ok(self.ports.admin.log_filter())
    }

    fn set_log_filter(&self, filter: String) -> Result<String, RpcError> {
        self.ports.admin.set_log_filter(&filter)?;
        tracing::info!(filter, "log filter replaced");
        Ok(self.ports.admin.log_filter())
    }

    fn flush_pool(&self) -> Result<u64, RpcError> {
        let dropped = self.ports.admin.flush_pool()?;
        tracing::warn!(dropped, "pool flushed");
        Ok(dropped)
    }

    fn peers(&self) -> Result<Vec<PeerView>, RpcError> {
        Ok(self.ports.network.peers().into_iter().map(PeerView::from).collect())
    }

    async fn change_peer(&self, change: PeerQuery) -> Result<Vec<PeerView>, RpcError> {
        let change = peer_change(change)?;
        self.ports.admin.change_peer(change).await?;
        Ok(self.ports.network.peers().into_iter().map(PeerView::from).collect())
    }
}

/// How long a ban lasts unless it is told, in seconds.
const BAN_SECONDS: u64 = 3_600;

/// The one thing that is asked.
fn peer_change(query: PeerQuery) -> Result<PeerChange, RpcError> {
    let PeerQuery { add, add_gossip, remove, ban, seconds, unban } = query;
    if seconds.is_some() && ban.is_none() {
        return Err(RpcError::invalid("seconds", "no ban", "seconds together with ban"));
    }
    let seconds = seconds.unwrap_or(BAN_SECONDS);
    let asked = [
        add.map(PeerChange::Add),
        add_gossip.map(PeerChange::AddGossip),
        remove.map(PeerChange::Remove),
        ban.map(|peer_id| PeerChange::Ban { peer_id, seconds }),
        unban.map(PeerChange::Unban),
    ];
    let mut asked = asked.into_iter().flatten();
    match (asked.next(), asked.next()) {
        (Some(change), None) => Ok(change),
        (first, _) => {
            let got = if first.is_some() { "several" } else { "nothing" };
            let expected = "one of add, addGossip, remove, ban and unban";
            Err(RpcError::invalid("change", got, expected))
        }
    }
}

impl From<AdminError> for RpcError {
    fn from(error: AdminError) -> Self {
        match error {
            AdminError::Invalid { field, got, expected } => Self::invalid(field, got, expected),
            AdminError::Fault(fault) => fault.into(),
        }
    }
}
