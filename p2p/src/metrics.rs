//! What this network did so far, as numbers.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Numbers of the transaction network. Clones share the numbers.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Connected peers.
    pub peers: Gauge,
    /// Peers that are kept out.
    pub banned: Gauge,
    /// Transactions of the own pool that were published.
    pub published: Counter,
    /// Transactions of the own pool that could not be published; peers pull them.
    pub unpublished: Counter,
    /// Messages from peers.
    pub messages: Counter,
    /// Messages from peers that were forwarded.
    pub accepted: Counter,
    /// Messages from peers that were not forwarded and are nobody's fault.
    pub ignored: Counter,
    /// Messages from peers that broke a rule which their sender could check.
    pub rejected: Counter,
    /// Messages from peers that found no room before the own pool.
    pub no_room: Counter,
    /// Messages that were left unread, because their senders bring what no pool takes.
    pub unread: Counter,
    /// Transactions that were pulled from peers and taken.
    pub pulled: Counter,
    /// Questions of peers that were answered.
    pub answered: Counter,
    /// Questions of peers that came too fast or found no room.
    pub unanswered: Counter,
    /// Questions of peers about the chain that were answered from the database.
    pub sync_answered: Counter,
    /// Bytes of these answers.
    pub sync_bytes: Counter,
    /// Questions of peers about the chain that came too fast or found no room.
    pub sync_refused: Counter,
    /// Connections to nodes of another chain or genesis.
    pub strangers: Counter,
    /// Connections that a limit or a ban refused.
    pub refused: Counter,
    /// Times that this node reached itself.
    pub own: Counter,
    /// Offences that led to a ban.
    pub bans: Counter,
}

impl Counters {
    /// Registers all numbers, for Prometheus, as `p2p_…`.
    pub fn register(&self, registry: &mut Registry) {
        let Self {
            peers,
            banned,
            published,
            unpublished,
            messages,
            accepted,
            ignored,
            rejected,
            no_room,
            unread,
            pulled,
            answered,
            unanswered,
            sync_answered,
            sync_bytes,
            sync_refused,
            strangers,
            refused,
            own,
            bans,
        } = self.clone();
        let registry = registry.sub_registry_with_prefix("p2p");
        registry.register("peers", "Connected peers", peers);
        registry.register("banned", "Banned peers", banned);
        registry.register("published", "Own transactions published", published);
        registry.register("unpublished", "Own transactions left to the pull", unpublished);
        registry.register("messages", "Messages from peers", messages);
        registry.register("messages_accepted", "Messages forwarded", accepted);
        registry.register("messages_ignored", "Messages that were nobody's fault", ignored);
        registry.register("messages_rejected", "Messages that broke a rule", rejected);
        registry.register("messages_no_room", "Messages that found no room", no_room);
        registry.register("messages_unread", "Messages of peers without credit", unread);
        registry.register("pulled", "Transactions pulled from peers and taken", pulled);
        registry.register("questions_answered", "Questions of peers answered", answered);
        registry.register("questions_unanswered", "Questions of peers refused", unanswered);
        registry.register("sync_answered", "Questions about the chain answered", sync_answered);
        registry.register("sync_bytes", "Bytes of answers about the chain", sync_bytes);
        registry.register("sync_refused", "Questions about the chain refused", sync_refused);
        registry.register("strangers", "Connections to nodes of another network", strangers);
        registry.register("connections_refused", "Connections refused by limit or ban", refused);
        registry.register("own_dials", "Times that this node reached itself", own);
        registry.register("bans", "Offences that led to a ban", bans);
    }
}
