//! What an operator may do.

use crate::error::RpcError;
use crate::ports::{PeerChange, Ports};
use crate::wire::PeerQuery;

/// How long a ban lasts if the operator does not say, in seconds.
const BAN_SECONDS: u64 = 3_600;

/// The log filter in force.
pub(crate) fn log_filter(ports: &Ports) -> String {
    ports.admin.log_filter()
}

/// Replaces the log filter; answers the one in force.
pub(crate) fn set_log_filter(ports: &Ports, filter: &str) -> Result<String, RpcError> {
    ports.admin.set_log_filter(filter)?;
    tracing::info!(filter, "log filter replaced");
    Ok(ports.admin.log_filter())
}

/// Drops every waiting transaction; answers how many.
pub(crate) fn flush_pool(ports: &Ports) -> Result<u64, RpcError> {
    let dropped = ports.admin.flush_pool()?;
    tracing::warn!(dropped, "pool flushed");
    Ok(dropped)
}

/// Connects to a peer, disconnects from one, or keeps one out.
pub(crate) async fn change_peer(ports: &Ports, change: PeerQuery) -> Result<(), RpcError> {
    let change = peer_change(change)?;
    Ok(ports.admin.change_peer(change).await?)
}

/// The one change that the operator requests.
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
